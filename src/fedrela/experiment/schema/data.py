"""The table ``[data]``: a source with its options, its imbalance, its partition.

Types and ranges are stated in the schema. What a kind needs is stated once, by `fedrela.data.Imbalance` and
`fedrela.data.partition.plan.PartitionPlan`, which are built while their tables are checked; likewise which protocols go
with minority classes, by `fedrela.metrics.groups.evaluation_groups`.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self, Union, get_args, get_origin, get_type_hints

from pydantic import PlainValidator, TypeAdapter, ValidationError, ValidationInfo, model_validator

from fedrela.data.imbalance import KINDS as IMBALANCE_KINDS
from fedrela.data.imbalance import SIDES, Imbalance, class_order, minority_classes
from fedrela.data.partition import dirichlet, iid
from fedrela.data.partition.by_dirichlet import LARGEST_NUMPY_SEED, SCHEMES
from fedrela.data.partition.plan import KINDS as PARTITION_KINDS
from fedrela.data.partition.plan import PartitionPlan
from fedrela.data.sources import SOURCES
from fedrela.data.standardize import MODES
from fedrela.engine.options import MOST_CLIENTS, MOST_SAMPLES
from fedrela.errors import ArgumentError
from fedrela.experiment.schema.problems import KINDS
from fedrela.experiment.schema.table import ConfigTable, Fault, one_of, raise_any, setting
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


ORDERS = ("natural", "random")


def _class_ids(value: Sequence[Any]) -> tuple[int, ...]:
    for i, c in enumerate(value):
        if isinstance(c, bool) or not isinstance(c, int) or c < 0:
            raise ArgumentError(f"expected a class id >= 0, got {shown(c)}", item=(i,))
    return tuple(value)


def _minority(value: Any) -> float | tuple[int, ...]:
    if isinstance(value, list | tuple):
        return _class_ids(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise ArgumentError(f"expected a list of class ids, or a share from 0 to 1, got {shown(value)}")


def _order(value: Any) -> str | tuple[int, ...]:
    if isinstance(value, list | tuple):
        return _class_ids(value)
    if isinstance(value, str) and value in ORDERS:
        return value
    raise ArgumentError(f"expected one of {', '.join(ORDERS)}, or a list of class ids, got {shown(value)}")


class ImbalanceConfig(ConfigTable):
    """How many samples of each class are left; each kind has keys of its own."""

    kind: Annotated[str, one_of(IMBALANCE_KINDS)] = setting(
        "natural", "natural: as the source is; step: two levels; long_tail: falling exponentially"
    )
    ratio: float | None = setting(None, "step: largest over smallest class", ge=1)
    minority: Annotated[float | tuple[int, ...], PlainValidator(_minority)] = setting(
        0.5, "step: ids of the minority classes, or their share of all classes"
    )
    side: Annotated[str, one_of(SIDES)] = setting("last", "step: whether a share means the last classes or the first")
    factor: float | None = setting(None, "long_tail: largest over smallest class", ge=1)
    largest: int | None = setting(
        None, "samples of the largest class; left out: as many as every class allows", ge=1, le=MOST_SAMPLES
    )
    order: Annotated[str | tuple[int, ...], PlainValidator(_order)] = setting(
        "natural", "classes from head to tail: natural (by id), random, or every id once"
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

    kind: Annotated[str, one_of(PARTITION_KINDS)] = setting(
        "dirichlet",
        "dirichlet: proportions drawn for every class; iid: an even split; natural: the source's own "
        "client ids; shards: a few classes per client",
    )
    clients: int | None = setting(
        None, "number of clients; natural: left out, one client per id of the source", ge=1, le=MOST_CLIENTS
    )
    alpha: float | None = setting(None, "dirichlet: small values give each client few classes", ge=0.01, le=1e6)
    scheme: Annotated[str, one_of(SCHEMES)] | None = setting(
        None, "dirichlet: how proportions become samples; proportional unless numpy_seed is given"
    )
    min_size: int | None = setting(
        None, "dirichlet, iid: samples of the smallest client; 0 allows empty clients", ge=0, le=MOST_SAMPLES
    )
    numpy_seed: int | None = setting(
        None, "dirichlet: follow the official code's stream with this seed", ge=0, le=LARGEST_NUMPY_SEED
    )
    classes_per_client: int | None = setting(None, "shards: classes that each client sees", ge=1, le=MOST_SAMPLES)

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
    imbalance: ImbalanceConfig = setting(ImbalanceConfig(), "how many samples of each class are left")
    partition: PartitionConfig = setting(
        PartitionConfig(kind="dirichlet", clients=10, alpha=0.3), "which client gets which samples"
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
        self.check_rules(self._check_protocol)
        return self

    def _check_protocol(self) -> None:
        if self.imbalance.kind == "step":
            evaluation_groups([1], minority=[], protocol=self.protocol)
