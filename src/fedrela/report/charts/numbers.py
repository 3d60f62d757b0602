"""Numbers as charts show them: missing ones, bands of many, short signs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Number = float | None
Floats = NDArray[np.float64]

LARGEST = 1e100  # beyond it the span of an axis could overflow
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def floats(values: Iterable[Number]) -> Floats:
    """Return numbers as an array, NaN where one is missing or not finite.

    >>> floats([1, None, float("inf")]).tolist()
    [1.0, nan, nan]
    """
    found = np.array(list(values), np.float64)  # None becomes NaN
    return np.clip(np.where(np.isfinite(found), found, np.nan), -LARGEST, LARGEST)


def sign(value: float, decimals: int = 0) -> str:
    """Write a number in little room, thousands as k, millions as M.

    >>> sign(0.25, 2), sign(1500, 0), sign(25_000), sign(-3e6), sign(3e-9)
    ('0.25', '1,500', '25k', '-3M', '3e-09')
    """
    size = abs(value)
    if size >= 1e15 or (size < 1e-4 and value != 0):
        return f"{value:.3g}"
    for unit, letter in UNITS:
        if size >= max(unit, 10_000):
            return f"{value / unit:.3g}{letter}"
    return f"{value:,.{decimals}f}"


def figure(value: float) -> str:
    """Write a measured number with as many digits as people compare.

    >>> figure(12.0), figure(0.12345), figure(3.14159), figure(123.4), figure(48_250)
    ('12', '0.123', '3.14', '123', '48.2k')
    """
    return sign(value) if abs(value) >= 100 or value == 0 else f"{value:.3g}"


def percentage(share: float, *, signed: bool = False, unit: str = "%", decimals: int = 1) -> str:
    """Write a share in per cent, or a difference of shares in points.

    >>> percentage(0.1234), percentage(-0.05, signed=True, unit=""), percentage(0.0, signed=True, unit="")
    ('12.3%', '−5.0', '0.0')
    """
    value = 100 * share
    text = f"{value:,.{decimals}f}" if abs(value) < 1e5 else f"{value:.2g}"
    text = text.removeprefix("-") if not text.strip("-0.") else text.replace("-", "−")
    return ("+" if signed and text[0] != "−" and text.strip("0.") else "") + text + unit


def bands(number: int, most: int) -> list[tuple[int, int]]:
    """Cut positions into at most so many stretches of neighbours, each from the first to before the last.

    >>> bands(3, 10), bands(5, 2)
    ([(0, 1), (1, 2), (2, 3)], [(0, 3), (3, 5)])
    """
    height = max(-(-number // most), 1)
    return [(start, min(start + height, number)) for start in range(0, number, height)]


def means(values: Floats, stretches: Sequence[tuple[int, int]]) -> Floats:
    """Return the mean of what is there in each stretch, NaN where nothing is."""
    parts = (values[start:end] for start, end in stretches)
    return np.array([np.nan if np.isnan(part).all() else np.nanmean(part) for part in parts])
