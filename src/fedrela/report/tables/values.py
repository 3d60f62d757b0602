"""A table for machines: one value a column, text apart from numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Value = str | float | None


@dataclass(frozen=True)
class Values:
    """Rows of values under `columns`: text is foreign until shown otherwise, None is no value."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]


def in_percent(spread: Mapping[str, Any] | None, keys: Sequence[str]) -> list[float | None]:
    """Return mean, deviation, low or high of a spread of shares in per cent.

    >>> in_percent({"mean": 0.525, "deviation": None}, ("mean", "deviation")), in_percent(None, ("mean",))
    ([52.5, None], [None])
    """
    found = [None if spread is None else spread[key] for key in keys]
    return [None if value is None else round(100 * value, 4) for value in found]


def counted(spread: Mapping[str, Any] | None, keys: Sequence[str]) -> list[float | None]:
    """Return mean or deviation of a spread of numbers.

    >>> counted({"mean": 113.0, "deviation": 1.23456}, ("mean", "deviation"))
    [113.0, 1.2346]
    """
    found = [None if spread is None else spread[key] for key in keys]
    return [None if value is None else round(value, 4) for value in found]
