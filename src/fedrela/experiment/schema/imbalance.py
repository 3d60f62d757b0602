"""The table ``[data.imbalance]``: how many samples of each class are left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import Field, PlainValidator, model_validator

from fedrela.data.imbalance import KINDS, SIDES, Imbalance, class_order, minority_classes
from fedrela.experiment.schema.base import MOST_SAMPLES, BrokenRuleError, Fault, Table, one_of
from fedrela.text import shown

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
                raise BrokenRuleError(Fault((i,), "value", f"expected a class id of at least 0, got {shown(c)}"))
        return tuple(value)

    return PlainValidator(check)


def _share(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value <= 1 else None


def _known_order(value: Any) -> str | None:
    return value if isinstance(value, str) and value in ORDERS else None


MINORITY = _ids_or("a list of class ids, or a share from 0 to 1,", _share)
ORDER = _ids_or(f"one of {', '.join(ORDERS)}, or a list of class ids,", _known_order)


class ImbalanceConfig(Table):
    """How many samples of each class are left; each kind has keys of its own."""

    kind: Annotated[str, one_of(KINDS)] = Field(
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
        self.check_used("kind", KINDS[self.kind])
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
        return {key: value for key, value in super().as_table().items() if key in ("kind", *KINDS[self.kind])}
