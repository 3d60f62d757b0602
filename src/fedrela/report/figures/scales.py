"""From counts to what the eye compares: areas of dots, steps of colour, round numbers for a legend."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.report.figures.palette import STEPS

SERIES = ((1, 2, 5), (1, 3), (1,))  # digits of round numbers, the finest first


def radii(cells: ArrayLike, most: float, largest: float) -> NDArray[np.float64]:
    """Return radii of dots whose areas are proportional to the cells; a cell with `most` samples gets `largest`.

    >>> radii([4, 1, 0], most=4, largest=10).tolist()
    [10.0, 5.0, 0.0]
    """
    return largest * np.sqrt(np.asarray(cells, np.float64) / max(most, 1.0))


def round_numbers(most: float, digits: tuple[int, ...]) -> list[int]:
    """Return the numbers from 1 to `most` that are one of the digits with zeros behind, ascending.

    >>> round_numbers(120, (1, 2, 5))
    [1, 2, 5, 10, 20, 50, 100]
    """
    found, power = [], 1
    while power <= most:
        found += [digit * power for digit in digits if digit * power <= most]
        power *= 10
    return found


def dot_examples(most: int) -> list[int]:
    """Choose up to four counts for the legend of the dots: the fullest cell, and round ones well below it.

    >>> dot_examples(139), dot_examples(1), dot_examples(0)
    ([139, 50, 10, 1], [1], [])
    """
    chosen = [most] if most else []
    for number in reversed(round_numbers(most, (1, 5))):
        if len(chosen) < 4 and number * 2.5 <= chosen[-1]:
            chosen.append(number)
    return chosen


def steps(most: float) -> list[int]:
    """Return where each step of a colour scale begins: round numbers on a logarithmic scale, as fine as colours allow.

    >>> steps(80), steps(4999), steps(0.2)
    ([1, 2, 5, 10, 20, 50], [1, 10, 100, 1000], [1])
    """
    for digits in SERIES:
        limits = round_numbers(most, digits)
        if len(limits) <= STEPS:
            return limits or [1]
    return [10**power for power in range(STEPS)]


def step_of(cells: NDArray[np.float64], limits: list[int]) -> NDArray[np.int64]:
    """Return the step of each cell, -1 where it is empty; what lies below the first limit counts to the first step.

    >>> step_of(np.array([0.0, 0.5, 2.0, 9.0]), [1, 2, 5]).tolist()
    [-1, 0, 1, 2]
    """
    found = np.maximum(np.searchsorted(limits, cells, side="right") - 1, 0)
    return np.where(cells > 0, found, -1)


def colour_step(step: int, number: int) -> int:
    """Return the colour of a step: few steps spread over all colours, the last one is always the strongest.

    >>> [colour_step(s, 3) for s in range(3)], colour_step(0, 1)
    ([1, 3, 6], 6)
    """
    return (step + 1) * STEPS // number - 1


def step_names(limits: list[int], whole: bool) -> list[str]:
    """Put the steps into words, for integers or for means.

    >>> step_names([1, 2, 5], whole=True), step_names([1, 2, 5], whole=False)
    (['1', '2 to 4', '5 or more'], ['below 2', '2 to 5', '5 or more'])
    """
    names = []
    for low, high in zip(limits, [*limits[1:], None], strict=True):
        if high is None:
            names.append(f"{low:,} or more" if whole or low > 1 else "above 0")
        elif whole:
            names.append(f"{low:,}" if high == low + 1 else f"{low:,} to {high - 1:,}")
        else:
            names.append(f"{low:,} to {high:,}" if low > 1 else f"below {high:,}")
    return names
