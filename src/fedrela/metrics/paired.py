"""Metrics over seeds: mean and spread, paired differences with Student's t interval, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fedrela.errors import ArgumentError
from fedrela.text import points

CONFIDENCE = 0.95
ROUNDING = 1e-12  # differences of shares that are equal but for rounding
Values = Sequence[float | None]


@dataclass(frozen=True)
class Spread:
    """One metric over seeds.

    Attributes
    ----------
    mean
        None if a value is missing.
    deviation
        Sample standard deviation; None for one seed.
    values
        One per seed; None if undefined, such as the accuracy of a group without test samples.
    """

    mean: float | None
    deviation: float | None
    values: tuple[float | None, ...]

    @classmethod
    def of(cls, values: Values) -> Spread:
        """Return mean and sample standard deviation.

        >>> Spread.of([1.0, 2.0, 3.0])
        Spread(mean=2.0, deviation=1.0, values=(1.0, 2.0, 3.0))
        """
        return cls(*_mean_and_deviation(values), tuple(values))

    def as_record(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"values": list(self.values)}


@dataclass(frozen=True)
class Interval(Spread):
    """A paired difference over seeds: a spread, and the 95 % confidence interval of its mean."""

    low: float | None = None
    high: float | None = None


def paired(base: Values, treated: Values) -> Interval:
    """Return by how much `treated` exceeds `base`, seed by seed.

    The interval is ``mean ± t deviation / sqrt(n)`` with the 97.5 % quantile t of Student's distribution with n - 1
    degrees of freedom. There is none for one seed, nor if all differences are equal and not 0: with few test samples
    that happens by chance.

    >>> found = paired([0.5, 0.6, 0.5], [0.7, 0.7, 0.8])
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (0.2, -0.048, 0.448)
    """
    if len(base) != len(treated):
        raise ArgumentError(f"expected {len(base)} values, one per seed, got {len(treated)}", argument="treated")
    pairs = zip(base, treated, strict=True)
    values = [None if before is None or after is None else after - before for before, after in pairs]
    mean, deviation = _mean_and_deviation(values)
    if mean is None or deviation is None or deviation < ROUNDING < abs(mean):
        return Interval(mean, deviation, tuple(values))
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * deviation / math.sqrt(len(values))
    return Interval(mean, deviation, tuple(values), mean - half, mean + half)


def _mean_and_deviation(values: Values) -> tuple[float | None, float | None]:
    if not values or None in values:
        return None, None
    array = np.array(values, np.float64)
    return float(array.mean()), float(array.std(ddof=1)) if array.size > 1 else None


def is_noise(difference: Mapping[str, Any]) -> bool | None:
    """Whether the interval of a paired difference (as a record) contains zero; None if it has no interval.

    >>> is_noise({"mean": 0.2, "low": -0.1, "high": 0.5}), is_noise({"mean": 0.2, "low": None, "high": None})
    (True, None)
    """
    if difference["low"] is None:
        return None
    return bool(difference["low"] <= 0 <= difference["high"])


def in_words(difference: Mapping[str, Any]) -> str:
    """Describe a paired difference (as a record): its size, and whether it is within noise, if known.

    >>> in_words({"mean": 0.2, "low": -0.048, "high": 0.448})
    '+20.0 points, within noise (95 % interval -4.8 to +44.8)'
    >>> in_words({"mean": -0.03, "low": -0.035, "high": -0.025})
    '-3.0 points, beyond noise (95 % interval -3.5 to -2.5)'
    >>> in_words({"mean": 0.2, "low": None, "high": None}), in_words({"mean": None, "low": None, "high": None})
    ('+20.0 points', 'unknown')
    """
    if difference["mean"] is None:
        return "unknown"
    noise, (mean, low, high) = is_noise(difference), (points(difference[key]) for key in ("mean", "low", "high"))
    verdict = "" if noise is None else f", {'within' if noise else 'beyond'} noise (95 % interval {low} to {high})"
    return f"{mean} points{verdict}"
