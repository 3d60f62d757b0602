"""The table ``[federation]``: what the parties of a private federation agree on; and a node's own file, ``node.toml``.

A configuration without this table describes a simulation: one source, cut into the shards of clients. With it every
node has its own samples, and ``[data]`` says only how inputs are scaled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import PlainValidator, model_validator

from fedrela.core.limits import OwnerLimits
from fedrela.data.sources import find_source
from fedrela.errors import ArgumentError
from fedrela.experiment.schema.config_table import (
    ConfigTable,
    Fault,
    component_name,
    one_of,
    options_table,
    raise_any,
    setting,
    sizes,
)
from fedrela.experiment.schema.data import DataConfig, source_options, source_root
from fedrela.options import option
from fedrela.text import not_one_of, shown

FORMS = ("images", "numbers", "tokens")
PLACES = ("server", "clients", "both")
COUNTED = ("test", "counts")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
KEY = re.compile(r"((?:ssh-ed25519|ecdsa-sha2-nistp(?:256|384|521)) [A-Za-z0-9+/]+={0,2})(?: .*)?")


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ArgumentError(f"expected a list of names, got {shown(value)}")
    for i, name in enumerate(value):
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise ArgumentError(f"expected a name, printable and not empty, got {shown(name)}", item=(i,))
        if name in value[:i]:
            raise ArgumentError(f"{name!r} is listed twice", item=(i,))
    return tuple(value)


def _nodes(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    if not names:
        raise ArgumentError("expected at least one node")
    for i, name in enumerate(names):
        if not NAME.fullmatch(name):
            what = "expected up to 64 letters, digits, dots, dashes and underscores, a letter or digit first"
            raise ArgumentError(f"{what}, got {shown(name)}", item=(i,))
    return names


def _shape(value: Any) -> tuple[int, ...]:
    return sizes(value, "the shape of one sample")


def _groups(value: Any) -> str | dict[str, tuple[str, ...]]:
    if isinstance(value, str):
        if value in COUNTED:
            return value
        raise ArgumentError(not_one_of(value, COUNTED, ", or a table of groups with their classes,"))
    if not isinstance(value, Mapping) or not value:
        raise ArgumentError(f"expected test, counts, or a table of groups with their classes, got {shown(value)}")
    return {str(name): _texts(members) for name, members in value.items()}


def _words(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(word, str) for word in value.values()):
        raise ArgumentError(f"expected a table name -> text, got {shown(value)}")
    return {str(name): word for name, word in value.items()}


Texts = Annotated[tuple[str, ...], PlainValidator(_texts)]
Words = Annotated[dict[str, str], PlainValidator(_words)]


class FederationConfig(ConfigTable):
    """What all parties agree on: nodes, classes, form of samples, what nodes report, where to evaluate."""

    nodes: Annotated[tuple[str, ...], PlainValidator(_nodes)] = setting(
        ..., "names of all nodes; the position in this list is a node's number, so a node that leaves stays listed"
    )
    classes: Texts = setting(..., "names of the classes, in the order of their numbers")
    shape: Annotated[tuple[int, ...], PlainValidator(_shape)] = setting((), "of one sample, channels first")
    form: Annotated[str, one_of(FORMS)] = setting(
        "images", "images (uint8), numbers (float arrays) or tokens (integers)"
    )
    pixel_max: int = setting(255, "largest value of a pixel", ge=1, le=255)
    columns: Texts = setting((), "of a table, in order; a category has one column per value, name=value")
    encoded: Texts = setting((), "columns of 0 and 1, which are not standardised")
    statistics: bool = setting(
        False, "each node is asked once for count, mean and spread per channel or column, to scale inputs alike"
    )
    evaluate: Annotated[str, one_of(PLACES)] = setting(
        "server", "where the model is evaluated: on the server's test set, on the clients' own test samples, or both"
    )
    groups: Annotated[str | dict[str, tuple[str, ...]], PlainValidator(_groups)] = setting(
        "test",
        "classes reported together: a table of groups, or head, medium and tail by the server's test set (test) or by "
        "the sum of the counts that nodes agree to report (counts)",
    )
    largest: int = setting(
        0, "largest number of samples of a node; required if the size of an exchange depends on it", ge=0
    )
    keys: Words = setting({}, "each node's public key, as in its .pub file, to verify its name")

    @model_validator(mode="after")
    def _check(self) -> Self:
        raise_any(self._faults())
        return self

    def _faults(self) -> Iterator[Fault]:
        if len(self.classes) < 2:
            yield Fault(("classes",), f"expected at least two classes, got {len(self.classes)}")
        if bool(self.shape) == bool(self.columns):
            yield Fault(("shape",), "expected either the shape of one sample, or the columns of a table")
        if self.shape and self.form == "images" and len(self.shape) != 3:
            yield Fault(("shape",), f"expected channels, height and width of images, got {len(self.shape)} numbers")
        for name, known, what in (("encoded", self.columns, "columns"), ("keys", self.nodes, "nodes")):
            for each in getattr(self, name):
                if each not in known:
                    yield Fault((name,), f"{each!r} is not one of the {what}")
        yield from self._key_faults()
        yield from self._group_faults()

    def _key_faults(self) -> Iterator[Fault]:
        found: dict[str, str] = {}
        for name in self.nodes if self.keys else ():
            if name not in self.keys:
                yield Fault(("keys",), f"{name!r} has none; expected a key for each node, or no keys at all")
            elif not (key := KEY.fullmatch(self.keys[name].strip())):
                yield Fault(("keys", name), "expected the text of a .pub file, ecdsa (nistp256, 384, 521) or ed25519")
            elif (other := found.setdefault(key[1], name)) != name:
                yield Fault(("keys", name), f"is also the key of {other!r}; expected a different key for each node")

    def _group_faults(self) -> Iterator[Fault]:
        if isinstance(self.groups, str):
            if self.groups == "test" and self.evaluate == "clients":
                yield Fault(("groups",), "the server has no test set to count; expected counts, or a table of groups")
            return
        members = [name for names in self.groups.values() for name in names]
        for name in self.classes:
            if members.count(name) != 1:
                yield Fault(("groups",), f"expected class {name!r} in one group, found it in {members.count(name)}")
        for name in members:
            if name not in self.classes:
                yield Fault(("groups",), f"{name!r} is not one of the classes")

    @property
    def has_channels(self) -> bool:
        """Whether samples are images or series, which are scaled per channel."""
        return len(self.shape) > 1 and self.form != "tokens"


def statistics_faults(data: DataConfig, federation: FederationConfig) -> Iterator[Fault]:
    """Yield the statistics that ``[data]`` needs from all nodes and that they did not agree to report."""
    advice = "set it to true if nodes may report count, mean and spread"
    if federation.columns and data.standardize == "pooled" and not federation.statistics:
        what = f"data.standardize is 'pooled'; {advice}, or set that to local or none"
        yield Fault(("federation", "statistics"), what)
    if federation.has_channels and data.scaling == "fit" and not federation.statistics:
        yield Fault(
            ("federation", "statistics"), f"data.scaling is 'fit'; {advice}, or set that to mean and std or local"
        )


@dataclass(frozen=True, kw_only=True)
class NodePolicy(OwnerLimits):
    """What the owner of a node's data permits; if the federation asks for more, the stricter of the two applies."""

    refuse: tuple[str, ...] = option(
        (), "what this node never sends, by the names that fedrela check shows", check=_texts, form="a list of names"
    )
    statistics: bool = option(True, "report count, mean and spread per channel or column, if the federation asks")
    counts: bool = option(False, "report the number of samples per class, if the federation asks")
    confusion: bool = option(False, "report the confusion matrix on its own test samples; false: only hits and count")


class NodeConfig(ConfigTable):
    """A node's own file: where its samples are, its names for the classes, and what it permits."""

    name: str | None = setting(None, "the node's name in the federation")
    source: Annotated[str, component_name(lambda: find_source)] = setting(
        ..., "any data source, or your own, module:name"
    )
    root: Annotated[Path | None, PlainValidator(source_root)] = setting(
        None, "where the files of the source are, relative to this file"
    )
    options: Annotated[dict[str, Any], PlainValidator(source_options)] = setting({}, "options of this source")
    test_share: float | None = setting(
        None, "share of every class held out for testing; left out: the source's own test part", ge=0, le=1
    )
    classes: Words = setting({}, "this node's names for the federation's classes")
    key: Annotated[Path | None, PlainValidator(source_root)] = setting(
        None, "the node's private key, which proves its name"
    )
    policy: Annotated[NodePolicy, options_table(NodePolicy)] = setting(NodePolicy(), "what this node permits")
