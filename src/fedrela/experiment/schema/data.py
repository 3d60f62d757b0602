"""The table ``[data]``: a source with its options, its imbalance, its partition."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self, Union, get_args, get_origin, get_type_hints

from pydantic import PlainValidator, TypeAdapter, ValidationError, ValidationInfo, model_validator

from fedrela.data.federation import AS_IT_IS, TEN_CLIENTS
from fedrela.data.imbalance import Imbalance
from fedrela.data.partition import PartitionPlan
from fedrela.data.sources import SOURCES
from fedrela.data.standardize import MODES
from fedrela.errors import ArgumentError
from fedrela.experiment.schema.problems import KINDS
from fedrela.experiment.schema.table import FULL, ConfigTable, Fault, one_of, options_table, raise_any, setting
from fedrela.metrics.groups import PROTOCOLS, evaluation_groups
from fedrela.text import shown, unknown


def plain_option(value: Any) -> Any:
    """Check that a value is a plain one or a list of plain ones, and return it with a tuple for a list."""
    several = isinstance(value, list | tuple)
    for i, item in enumerate(value if several else [value]):
        if not isinstance(item, str | bool | int | float) or (isinstance(item, float) and not math.isfinite(item)):
            what = f"expected text, a finite number, true or false, or a list of these, got {shown(item)}"
            raise ArgumentError(what, item=(i,) if several else ())
    return tuple(value) if several else value


def check_options(source: str, options: Mapping[str, Any]) -> None:
    """Raise where a source does not have an option, or takes a value of another type."""
    own, hints = SOURCES[source].options, get_type_hints(SOURCES[source].load)
    faults = []
    for name, value in options.items():
        if name not in own:
            faults.append(Fault(("options", name), unknown("option", name, own, f"source {source!r}"), "key"))
        elif what := misfit(value, hints[name]):
            faults.append(Fault(("options", name), what))
    raise_any(faults)


def misfit(value: Any, hint: Any) -> str:
    """Say what a type hint wants where a value is something else; empty where it fits.

    >>> misfit("9", int | None), misfit(9, float)
    ("expected an integer, got '9'", '')
    """
    try:
        TypeAdapter(hint).validate_python(value, strict=True)
    except ValidationError:
        return f"expected {' or '.join(_words(hint))}, got {shown(value)}"
    return ""


def _words(hint: Any) -> Iterator[str]:
    """Yield what each type of a union is called, but for `None`, which is an option left out."""
    for part in get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,):
        if get_origin(part):
            yield f"a list, each item {' or '.join(_words(get_args(part)[0]))}"
        elif part is not types.NoneType:
            yield KINDS[part]


def _root(value: Any, info: ValidationInfo) -> Path | None:
    """Resolve a path against the folder of the configuration; no part of it is expanded or replaced."""
    if value is None:
        return None
    if not isinstance(value, str | Path):
        raise ArgumentError(f"expected a path, got {shown(value)}")
    if not str(value) or any(ord(ch) < 32 for ch in str(value)):
        what = "expected a path of at least one character and without control characters"
        raise ArgumentError(f"{what}, got {shown(str(value))}")
    return Path((info.context or {}).get("folder", ""), value).absolute()


class DataConfig(ConfigTable):
    """Which data, how imbalanced, and how they lie with the clients."""

    source: Annotated[str, one_of(SOURCES)] = setting("digits", "the data set")
    root: Annotated[Path | None, PlainValidator(_root)] = setting(
        None, "where the files of the source lie, relative to the configuration file"
    )
    options: dict[str, Annotated[Any, PlainValidator(plain_option)]] = setting({}, "what this source alone can be told")
    imbalance: Annotated[Imbalance, options_table(Imbalance, strict=True), FULL] = setting(
        AS_IT_IS, "how many samples of each class are left"
    )
    partition: Annotated[PartitionPlan, options_table(PartitionPlan, strict=True), FULL] = setting(
        TEN_CLIENTS, "which client gets which samples"
    )
    validation: float = setting(
        0.0, "share of each client's samples held out, original labels, never trained on", ge=0, lt=1
    )
    standardize: Annotated[str, one_of(MODES)] = setting(
        "pooled", "numbers of a table: with statistics pooled over clients, each client's own, or not at all"
    )
    protocol: Annotated[str, one_of(PROTOCOLS)] = setting(
        "counts", "how classes are sorted into head, medium and tail for evaluation"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_options(self.source, self.options)
        if self.imbalance.kind == "step":
            evaluation_groups([1], minority=[], protocol=self.protocol)
        return self
