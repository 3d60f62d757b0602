"""The table ``[data]``: a source with its options, its imbalance, its partition.

Types and ranges are stated in the schema. What a kind needs is stated once, by `fedrela.data.Imbalance` and
`fedrela.data.partition.plan.PartitionPlan`, which are built while their tables are checked; likewise which protocols go
with minority classes, by `fedrela.metrics.groups.evaluation_groups`.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self, Union, get_args, get_origin, get_type_hints

from pydantic import Field, PlainValidator, ValidationInfo, model_validator

from fedrela.data.imbalance import KINDS as IMBALANCE_KINDS
from fedrela.data.imbalance import SIDES, Imbalance, class_order, minority_classes
from fedrela.data.partition import dirichlet, iid
from fedrela.data.partition.by_dirichlet import LARGEST_NUMPY_SEED, SCHEMES
from fedrela.data.partition.plan import KINDS as PARTITION_KINDS
from fedrela.data.partition.plan import PartitionPlan
from fedrela.data.sources import SOURCES
from fedrela.data.standardize import MODES
from fedrela.engine.options import MOST_CLIENTS, MOST_SAMPLES
from fedrela.experiment.schema.table import BrokenRuleError, ConfigTable, Fault, one_of
from fedrela.metrics.groups import PROTOCOLS, evaluation_groups
from fedrela.text import shown, unknown

_KINDS = {str: "text", int: "an integer", float: "a number", bool: "true or false"}


def plain_option(value: Any) -> Any:
    """Check that a value is a plain one or a list of plain ones, and return it with a tuple for a list."""
    items = enumerate(value) if isinstance(value, list | tuple) else [(None, value)]
    for i, item in items:
        if not isinstance(item, str | bool | int | float) or (isinstance(item, float) and not math.isfinite(item)):
            what = f"expected text, a finite number, true or false, or a list of these, got {shown(item)}"
            raise BrokenRuleError(Fault(() if i is None else (i,), "value", what))
    return tuple(value) if isinstance(value, list | tuple) else value


def check_options(source: str, options: Mapping[str, Any]) -> None:
    """Complain of options that a source does not have, and of values of another type than it takes."""
    own, hints = SOURCES[source].options, get_type_hints(SOURCES[source].load)
    faults = []
    for name, value in options.items():
        if name not in own:
            faults.append(Fault(("options", name), "key", unknown("option", name, own, f"source {source!r}")))
        elif what := misfit(value, hints[name]):
            faults.append(Fault(("options", name), "value", what))
    if faults:
        raise BrokenRuleError(*faults)


def misfit(value: Any, hint: Any) -> str:
    """Say what a type hint wants where a value is something else; empty where it fits.

    >>> misfit("9", int | None), misfit(9, float)
    ("expected an integer, got '9'", '')
    """
    return "" if _fits(value, hint) else f"expected {' or '.join(_words(hint))}, got {shown(value)}"


def _parts(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, without `None`, which is an option left out."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return tuple(part for part in parts if part is not types.NoneType)


def _fits(value: Any, hint: Any) -> bool:
    for part in _parts(hint):
        if get_origin(part):  # a sequence
            fits = isinstance(value, tuple) and all(_fits(item, get_args(part)[0]) for item in value)
        elif isinstance(value, bool) or part is bool:
            fits = part is bool and isinstance(value, bool)
        else:
            fits = isinstance(value, int | float if part is float else part)
        if fits:
            return True
    return False


def _words(hint: Any) -> Iterator[str]:
    for part in _parts(hint):
        inner = " or ".join(_words(get_args(part)[0])) if get_origin(part) else ""
        yield f"a list, each item {inner}" if inner else _KINDS[part]


ORDERS = ("natural", "random")


def _ids_or(needed: str, other: Callable[[Any], Any]) -> PlainValidator:
    """Return the rule that a value is a list of class ids, or something else that `other` returns, or None."""

    def check(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            found = other(value)
            if found is None:
                raise BrokenRuleError(Fault((), "value", f"expected {needed}, got {shown(value)}"))
            return found
        for i, c in enumerate(value):
            if isinstance(c, bool) or not isinstance(c, int) or c < 0:
                raise BrokenRuleError(Fault((i,), "value", f"expected a class id >= 0, got {shown(c)}"))
        return tuple(value)

    return PlainValidator(check)


def _share(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value <= 1 else None


def _known_order(value: Any) -> str | None:
    return value if isinstance(value, str) and value in ORDERS else None


MINORITY = _ids_or("a list of class ids, or a share from 0 to 1,", _share)
ORDER = _ids_or(f"one of {', '.join(ORDERS)}, or a list of class ids,", _known_order)


class ImbalanceConfig(ConfigTable):
    """How many samples of each class are left; each kind has keys of its own."""

    kind: Annotated[str, one_of(IMBALANCE_KINDS)] = Field(
        default="natural",
        description="natural: as the source is; step: two levels; long_tail: falling exponentially",
    )
    ratio: float | None = Field(default=None, ge=1, description="step: largest over smallest class")
    minority: Annotated[float | tuple[int, ...], MINORITY] = Field(
        default=0.5, description="step: ids of the minority classes, or their share of all classes"
    )
    side: Annotated[str, one_of(SIDES)] = Field(
        default="last", description="step: whether a share means the last classes or the first"
    )
    factor: float | None = Field(default=None, ge=1, description="long_tail: largest over smallest class")
    largest: int | None = Field(
        default=None,
        ge=1,
        le=MOST_SAMPLES,
        description="samples of the largest class; left out: as many as every class allows",
    )
    order: Annotated[str | tuple[int, ...], ORDER] = Field(
        default="natural", description="classes from head to tail: natural (by id), random, or every id once"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_used("kind", IMBALANCE_KINDS[self.kind])
        self.check_rules(self.plan, self._check_minority, self._check_order)
        return self

    def _check_minority(self) -> None:
        if isinstance(self.minority, tuple):
            minority_classes(max(self.minority, default=0) + 1, self.minority, side=self.side)

    def _check_order(self) -> None:
        if isinstance(self.order, tuple):
            class_order(len(self.order), self.order)

    def plan(self) -> Imbalance:
        """Return the imbalance to apply."""
        return Imbalance(**{name: getattr(self, name) for name in type(self).model_fields})

    def as_table(self) -> dict[str, Any]:
        """Return the keys that this kind uses."""
        return {key: value for key, value in super().as_table().items() if key in ("kind", *IMBALANCE_KINDS[self.kind])}


def _defaults_of(function: Callable[..., Any], *names: str) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    return {name: parameters[name].default for name in names}


DEFAULTS = {"dirichlet": _defaults_of(dirichlet, "scheme", "min_size"), "iid": _defaults_of(iid, "min_size")}
OFFICIAL = {"scheme": "multinomial", "min_size": 0}  # what numpy_seed implies


class PartitionConfig(ConfigTable):
    """Which client gets which samples; each kind has keys of its own."""

    kind: Annotated[str, one_of(PARTITION_KINDS)] = Field(
        default="dirichlet",
        description="dirichlet: proportions drawn for every class; iid: an even split; natural: the source's own "
        "client ids; shards: a few classes per client",
    )
    clients: int | None = Field(
        default=None,
        ge=1,
        le=MOST_CLIENTS,
        description="number of clients; natural: left out, one client per id of the source",
    )
    alpha: float | None = Field(
        default=None, ge=0.01, le=1e6, description="dirichlet: small values give each client few classes"
    )
    scheme: Annotated[str, one_of(SCHEMES)] | None = Field(
        default=None, description="dirichlet: how proportions become samples; proportional unless numpy_seed is given"
    )
    min_size: int | None = Field(
        default=None,
        ge=0,
        le=MOST_SAMPLES,
        description="dirichlet, iid: samples of the smallest client; 0 allows empty clients",
    )
    numpy_seed: int | None = Field(
        default=None,
        ge=0,
        le=LARGEST_NUMPY_SEED,
        description="dirichlet: follow the official code's stream with this seed",
    )
    classes_per_client: int | None = Field(
        default=None, ge=1, le=MOST_SAMPLES, description="shards: classes that each client sees"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        """Write down what the chosen kind does by default, so that a configuration shows all of it."""
        if not isinstance(given, dict):
            return given
        kind = given.get("kind", "dirichlet")
        if kind == "dirichlet" and given.get("numpy_seed") is not None:
            return {**OFFICIAL, **given}
        return {**DEFAULTS.get(kind, {}), **given} if isinstance(kind, str) else given

    @model_validator(mode="after")
    def _check(self) -> Self:
        needed, possible = PARTITION_KINDS[self.kind]
        self.check_used("kind", needed + possible)
        self.check_rules(self.plan)
        return self

    def plan(self) -> PartitionPlan:
        """Return the partition to apply."""
        return PartitionPlan(**{name: getattr(self, name) for name in type(self).model_fields})


def _root(value: Any, info: ValidationInfo) -> Path | None:
    """Resolve a path against the folder of the configuration; no part of it is expanded or replaced."""
    if value is None:
        return None
    if not isinstance(value, str | Path):
        raise BrokenRuleError(Fault((), "value", f"expected a path, got {shown(value)}"))
    if not str(value) or any(ord(ch) < 32 for ch in str(value)):
        what = "expected a path of at least one character and without control characters"
        raise BrokenRuleError(Fault((), "value", f"{what}, got {shown(str(value))}"))
    folder = (info.context or {}).get("folder", Path())
    return Path(folder, value).absolute()


class DataConfig(ConfigTable):
    """Which data, how imbalanced, and how they lie with the clients."""

    source: Annotated[str, one_of(SOURCES)] = Field(default="digits", description="the data set")
    root: Annotated[Path | None, PlainValidator(_root)] = Field(
        default=None, description="where the files of the source lie, relative to the configuration file"
    )
    options: dict[str, Annotated[Any, PlainValidator(plain_option)]] = Field(
        default={}, description="what this source alone can be told"
    )
    imbalance: ImbalanceConfig = Field(default=ImbalanceConfig(), description="how many samples of each class are left")
    partition: PartitionConfig = Field(
        default=PartitionConfig(kind="dirichlet", clients=10, alpha=0.3),
        description="which client gets which samples",
    )
    validation: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="share of each client's samples held out, original labels, never trained on",
    )
    standardize: Annotated[str, one_of(MODES)] = Field(
        default="pooled",
        description="numbers of a table: with statistics pooled over clients, each client's own, or not at all",
    )
    protocol: Annotated[str, one_of(PROTOCOLS)] = Field(
        default="counts", description="how classes are sorted into head, medium and tail for evaluation"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_options(self.source, self.options)
        self.check_rules(self._check_protocol)
        return self

    def _check_protocol(self) -> None:
        if self.imbalance.kind == "step":
            evaluation_groups([1], minority=[], protocol=self.protocol)
