"""Axes: how far they reach, and at which round numbers they are labelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedrela.report.charts.numbers import UNITS, Floats, figure, sign


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with signs at some places; a logarithmic one spaces by ratio."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Return how far along the axis a value lies, 0 at its beginning and 1 at its end; values beyond stay there.

        >>> Axis(10.0, 20.0, ()).share(15.0), Axis(1.0, 100.0, (), True).share(10.0)
        (0.5, 0.5)
        """
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)


def axis(values: Floats, *, percent: bool = False, zero: bool = False, most: int = 6, signed: bool = False) -> Axis:
    """Return an axis for values, from a round number to a round number.

    Parameters
    ----------
    values
        What has to have room; NaN is passed over.
    percent
        Whether shares are written as percentages.
    zero
        Whether zero has to be on the axis.
    most
        How many signs there may be.
    signed
        Whether positive signs get a plus.

    Examples
    --------
    >>> [text for _, text in axis(np.array([0.12, 0.87]), percent=True).ticks]
    ['0%', '20%', '40%', '60%', '80%', '100%']
    """
    low, high = span(values, zero, 0.05 if percent else 0.5)
    least, whole = (high - low) / (most - 1), not percent and _whole(values)
    while True:
        step = round_step(least, whole=whole)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first < most:
            break
        least = 1.01 * step
    places = [step * k for k in range(first, last + 1)]
    return Axis(places[0], places[-1], tuple((at, tick_sign(at, step, percent, signed)) for at in places))


def span(values: Floats, zero: bool, least: float) -> tuple[float, float]:
    """Return the lowest and the highest value, apart from each other."""
    there = values[~np.isnan(values)]
    low, high = (float(there.min()), float(there.max())) if there.size else (0.0, 1.0)
    low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
    if high - low > 1e-6 * max(abs(low), abs(high), 1e-6):
        return low, high
    least = max(least, 0.1 * abs(low))
    return (0.0, 2 * least) if zero and low == 0 else (low - least, high + least)


def round_step(least: float, *, whole: bool = False) -> float:
    """Return the smallest of 1, 2, 2.5 and 5 times a power of ten that is not below `least`; a whole one on request.

    >>> round_step(0.13), round_step(3.0), round_step(2.1), round_step(2.1, whole=True)
    (0.2, 5.0, 2.5, 5.0)
    """
    power = 10.0 ** math.floor(math.log10(max(least, 1.0) if whole else least))
    digits = (1.0, 2.0, 5.0, 10.0, 20.0) if whole and power == 1 else (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)
    return next(digit * power for digit in digits if digit * power >= least * (1 - 1e-9))


def _whole(values: Floats) -> bool:
    there = values[~np.isnan(values)]
    return bool((there == np.round(there)).all())


def tick_sign(value: float, step: float, percent: bool = False, signed: bool = False) -> str:
    """Write the number at a tick, with the decimals that the step between ticks needs.

    >>> tick_sign(0.125, 0.025, percent=True), tick_sign(12_500.0, 2_500.0), tick_sign(-2.0, 1.0)
    ('12.5%', '12.5k', '−2')
    """
    value, step = (100 * value, 100 * step) if percent else (value, step)
    value = 0.0 if abs(value) < step / 1e6 else value
    if abs(value) >= 1e15 or (value and abs(value) < 1e-4):
        text = f"{value:.4g}"
    else:
        unit, letter = next(((u, name) for u, name in UNITS if abs(value) >= max(u, 10_000)), (1.0, ""))
        text = f"{value / unit:,.{_decimals(step / unit)}f}{letter}"
    return ("+" if signed and value > 0 else "") + text.replace("-", "−") + ("%" if percent else "")


def _decimals(step: float) -> int:
    """Return how many decimals tell multiples of a round step apart."""
    power = math.floor(math.log10(step) + 1e-9)
    return min(max(-power + (1 if abs(step / 10.0**power - 2.5) < 0.01 else 0), 0), 6)


def inner_axis(values: Floats, most: int = 7) -> Axis:
    """Return an axis that ends where the values end, with round signs inside; whole ones for integers.

    >>> inner_axis(np.arange(1.0, 61.0)).ticks[:2]
    ((10.0, '10'), (20.0, '20'))
    """
    low, high = span(values, False, 0.5)
    step = round_step((high - low) / (most - 1), whole=_whole(values))
    count = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return Axis(low, high, tuple((step * k, tick_sign(step * k, step)) for k in count))


def value_axis(values: Floats) -> Axis:
    """Return an axis labelled at the values themselves, logarithmic where they span a ratio of 20."""
    places: Sequence[float] = np.unique(values).tolist()
    low, high = span(values, False, 0.5)
    logarithmic = len(places) > 1 and low > 0 and high / low >= 20
    return Axis(low, high, tuple((at, figure(at)) for at in places), logarithmic)


def log_axis(most: float) -> Axis:
    """Return an axis for counts, spaced by ratio, on which a count of one can be seen.

    >>> [text for _, text in log_axis(2500).ticks]
    ['1', '10', '100', '1,000']
    """
    powers = range(math.ceil(math.log10(max(most, 1)) + 1e-9) + 1)
    gap = -(-len(powers) // 7)
    return Axis(
        0.6, max(1.25 * most, 2.0), tuple((10.0**p, sign(10.0**p)) for p in powers[::gap] if 10.0**p <= most), True
    )
