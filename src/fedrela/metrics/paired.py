"""Figures over seeds: mean and spread, paired differences with the interval of Student's t, and what that means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fedrela.errors import ArgumentError

CONFIDENCE = 0.95
Values = Sequence[float | None]


@dataclass(frozen=True)
class Spread:
    """One figure over seeds.

    Attributes
    ----------
    mean
        None where a value is missing.
    deviation
        Sample standard deviation; None of one seed.
    values
        One a seed; None where there is none, such as the accuracy of a group without test samples.
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
    """A paired difference over seeds: a spread, and the interval that holds its true mean in 95 of 100 such trials."""

    low: float | None = None
    high: float | None = None


def paired(base: Values, treated: Values) -> Interval:
    """Return by how much `treated` exceeds `base`, seed by seed.

    The interval is ``mean ± t deviation / sqrt(n)`` with the 97.5 % quantile t of Student's distribution with n - 1
    degrees of freedom. One seed has none.

    >>> found = paired([0.5, 0.6, 0.5], [0.7, 0.7, 0.8])
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (0.2, -0.048, 0.448)
    """
    if len(base) != len(treated):
        raise ArgumentError(f"treated: one value a seed is needed, {len(base)}, got {len(treated)}")
    pairs = zip(base, treated, strict=True)
    values = [None if before is None or after is None else after - before for before, after in pairs]
    mean, deviation = _mean_and_deviation(values)
    if mean is None or deviation is None:
        return Interval(mean, deviation, tuple(values))
    half = t_quantile((1 + CONFIDENCE) / 2, len(values) - 1) * deviation / math.sqrt(len(values))
    return Interval(mean, deviation, tuple(values), mean - half, mean + half)


def _mean_and_deviation(values: Values) -> tuple[float | None, float | None]:
    known = np.array([value for value in values if value is not None], np.float64)
    if known.size == 0 or known.size < len(values):
        return None, None
    return float(known.mean()), float(known.std(ddof=1)) if known.size > 1 else None


@lru_cache
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution, by bisection of its exact distribution function.

    Parameters
    ----------
    probability
        From 0.5 on and below 1.
    freedom
        Degrees of freedom, an integer from 1.

    Examples
    --------
    >>> round(t_quantile(0.975, 2), 4), round(t_quantile(0.975, 30), 4)
    (4.3027, 2.0423)
    """
    if not 0.5 <= probability < 1:
        raise ArgumentError(f"probability: expected a number from 0.5 to below 1, got {probability}")
    if freedom < 1:
        raise ArgumentError(f"freedom: expected an integer >= 1, got {freedom}")
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:  # until no number lies between
        low, high = (middle, high) if _within(middle, freedom) < 2 * probability - 1 else (low, middle)
    return math.tan(high) * math.sqrt(freedom)


def _within(theta: float, freedom: int) -> float:
    """Return P(abs(T) <= t) with ``theta = atan(t / sqrt(freedom))``, a finite sum for whole degrees of freedom.

    odd:   2/pi (theta + sin theta (cos theta + 2/3 cos^3 theta + ... up to cos^(freedom - 2) theta))
    even:  sin theta (1 + 1/2 cos^2 theta + 1*3/(2*4) cos^4 theta + ... up to cos^(freedom - 2) theta)
    """
    sine, cosine, odd = math.sin(theta), math.cos(theta), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(odd, freedom - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * cosine**2
    return 2 / math.pi * (theta + sine * total) if odd else sine * total


def is_noise(difference: Mapping[str, Any]) -> bool | None:
    """Whether a paired difference (as a record) may be zero: its interval holds zero; None where that is not known.

    >>> is_noise({"mean": 0.2, "low": -0.1, "high": 0.5}), is_noise({"mean": 0.2, "low": None, "high": None})
    (True, None)
    """
    if difference["low"] is None:
        return None
    return bool(difference["low"] <= 0 <= difference["high"])


def in_words(difference: Mapping[str, Any]) -> str:
    """Say of a paired difference (as a record) how large it is, and where that is known whether it is within noise.

    >>> in_words({"mean": 0.2, "low": -0.048, "high": 0.448})
    '+20.0 points, within noise (95 % interval -4.8 to +44.8)'
    >>> in_words({"mean": -0.03, "low": -0.035, "high": -0.025})
    '-3.0 points, beyond noise (95 % interval -3.5 to -2.5)'
    >>> in_words({"mean": 0.2, "low": None, "high": None}), in_words({"mean": None, "low": None, "high": None})
    ('+20.0 points', 'not known')
    """
    noise = is_noise(difference)
    if difference["mean"] is None:
        return "not known"
    mean, low, high = (_points(difference[key]) for key in ("mean", "low", "high"))
    if noise is None:
        return f"{mean} points"
    return f"{mean} points, {'within' if noise else 'beyond'} noise (95 % interval {low} to {high})"


def _points(difference: float | None) -> str:
    text = f"{100 * (difference or 0):+.1f}"
    return text if float(text) else "0.0"
