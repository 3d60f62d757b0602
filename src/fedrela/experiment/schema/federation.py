"""The table ``[federation]``: what the parties of a private federation agree on; and a node's own file, ``node.toml``.

A configuration without this table describes a simulation: one source, cut into the shards of clients. With it every
node has its own samples, and ``[data]`` says only how inputs are scaled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import PlainValidator, model_validator

from fedrela.data.sources import find_source
from fedrela.errors import ArgumentError
from fedrela.experiment.schema.data import DataConfig, source_options, source_root
from fedrela.experiment.schema.table import ConfigTable, Fault, a_part, one_of, raise_any, setting
from fedrela.text import not_one_of, shown

FORMS = ("images", "numbers", "tokens")
PLACES = ("server", "clients", "both")
COUNTED = ("test", "counts")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
KEY = re.compile(r"((?:ssh-ed25519|ecdsa-sha2-nistp(?:256|384|521)) [A-Za-z0-9+/]+={0,2})(?: .*)?")
LARGEST_SIDE = 1_000_000


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
    if not isinstance(value, list | tuple):
        raise ArgumentError(f"expected a list of integers, the shape of one sample, got {shown(value)}")
    for i, size in enumerate(value):
        if type(size) is not int or not 1 <= size <= LARGEST_SIDE:
            raise ArgumentError(f"expected an integer from 1 to {LARGEST_SIDE}, got {shown(size)}", item=(i,))
    return tuple(value)


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
    """What all parties agree on: who they are, what classes and samples are, what may be asked, where to score."""

    nodes: Annotated[tuple[str, ...], PlainValidator(_nodes)] = setting(
        ..., "names of all nodes; the place in this list is a node's number, also when another one leaves"
    )
    classes: Texts = setting(..., "names of the classes, in the order of their numbers")
    shape: Annotated[tuple[int, ...], PlainValidator(_shape)] = setting((), "of one sample, channels first")
    form: Annotated[str, one_of(FORMS)] = setting("images", "images of bytes, arrays of numbers, or tokens (integers)")
    white: int = setting(255, "the largest value that a pixel can have", ge=1, le=255)
    columns: Texts = setting((), "of a table, in order; a category has one column per value, name=value")
    encoded: Texts = setting((), "those of the columns that are 0 or 1 and are not standardised")
    statistics: bool = setting(
        False, "each node is asked once for count, mean and spread per channel or column, to scale inputs alike"
    )
    evaluate: Annotated[str, one_of(PLACES)] = setting(
        "server", "where the model is scored: on a test set of the server, by clients on their own, or both"
    )
    groups: Annotated[str | dict[str, tuple[str, ...]], PlainValidator(_groups)] = setting(
        "test",
        "classes reported together: a table of groups, or head, medium and tail by the server's test set (test) or by "
        "the sum of the counts that nodes agree to report (counts)",
    )
    largest: int = setting(0, "no node has more samples; required if the size of an exchange depends on it", ge=0)
    keys: Words = setting({}, "each node's public key, as in its .pub file, with which it proves its name")

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
                yield Fault(("keys", name), f"is the key of {other!r} too; each node has its own")

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
    told = "set it to true if nodes may report count, mean and spread"
    if federation.columns and data.standardize == "pooled" and not federation.statistics:
        what = f"data.standardize is 'pooled'; {told}, or set that to local or none"
        yield Fault(("federation", "statistics"), what)
    if federation.has_channels and data.scaling == "fit" and not federation.statistics:
        yield Fault(
            ("federation", "statistics"), f"data.scaling is 'fit'; {told}, or set that to mean and std or local"
        )


class NodePolicy(ConfigTable):
    """What the owner of a node's data permits; if the federation asks for more, the stricter of the two applies."""

    refuse: Texts = setting((), "what this node does not send, by the names that fedrela check shows")
    statistics: bool = setting(True, "report count, mean and spread per channel or column, if the federation asks")
    counts: bool = setting(False, "report the number of samples per class, if the federation asks")
    confusion: bool = setting(False, "report the confusion matrix on its own test samples; false: only hits and count")
    enabled: bool = setting(True, "false: this node never re-labels")
    tau: float = setting(1.0, "largest tau", ge=0, le=1)
    max_fraction: float = setting(1.0, "largest share of the labels that may change", ge=0, le=1)
    min_agreement: float = setting(0.0, "if the model confirms a smaller share of the labels, none moves", ge=0, le=1)
    forbidden: Annotated[tuple[tuple[str, str], ...], PlainValidator(lambda value: _moves(value))] = setting(
        (), "moves that may not happen, as pairs of class names [from, to]"
    )
    absent: bool = setting(True, "false: no move into a class that this node does not have")
    keep: Annotated[tuple[int, ...], PlainValidator(lambda value: _rows(value))] = setting(
        (), "training samples whose label is proven and stays, by number from 0"
    )


def _rows(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise ArgumentError(f"expected a list of rows, got {shown(value)}")
    for i, row in enumerate(value):
        if type(row) is not int or row < 0:
            raise ArgumentError(f"expected a row from 0, got {shown(row)}", item=(i,))
    return tuple(value)


def _moves(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list | tuple):
        raise ArgumentError(f"expected a list of pairs of class names [from, to], got {shown(value)}")
    for i, pair in enumerate(value):
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            raise ArgumentError(f"expected a pair of class names [from, to], got {shown(pair)}", item=(i,))
    return tuple((pair[0], pair[1]) for pair in value)


class NodeConfig(ConfigTable):
    """A node's own file: where its samples lie, its names for the classes, and what it permits."""

    name: str | None = setting(None, "the node's name in the federation")
    source: Annotated[str, a_part(lambda: find_source)] = setting(..., "any data source, or your own, module:name")
    root: Annotated[Path | None, PlainValidator(source_root)] = setting(
        None, "where the files of the source lie, relative to this file"
    )
    options: Annotated[dict[str, Any], PlainValidator(source_options)] = setting({}, "options of this source")
    test_share: float | None = setting(
        None, "share of every class held back for tests; left out: the source's own test part", ge=0, le=1
    )
    classes: Words = setting({}, "this node's names for the federation's classes")
    key: Annotated[Path | None, PlainValidator(source_root)] = setting(
        None, "the node's private key, which proves its name"
    )
    policy: NodePolicy = setting(NodePolicy(), "what this node permits")
