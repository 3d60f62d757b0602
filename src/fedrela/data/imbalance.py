"""Global imbalance: how many samples of each class are left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import ArgumentError


def long_tail_counts(num_classes: int, largest: int, factor: float) -> NDArray[np.int64]:
    """Class counts that fall exponentially from `largest` to ``largest / factor``.

    ``n_c = floor(largest * (1 / factor)^(c / (C - 1)))``, evaluated as the official code does: a power of floats,
    then truncation.

    Examples
    --------
    >>> long_tail_counts(10, 5000, 100).tolist()
    [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    """
    _check(num_classes, largest, "factor", factor)
    share = 1.0 / factor
    return np.array([int(largest * share ** (c / max(num_classes - 1.0, 1.0))) for c in range(num_classes)])


def step_counts(
    num_classes: int, largest: int, ratio: float, minority: float | Sequence[int] = 0.5
) -> NDArray[np.int64]:
    """Class counts with two steps: `largest` for majority classes, ``floor(largest / ratio)`` for minority classes.

    Parameters
    ----------
    num_classes, largest
        C, and the count of a majority class.
    ratio
        The imbalance ratio IR, at least 1.
    minority
        Class ids, or a share of the classes, which are then the last ones: 0.3 of 10 classes are 7, 8 and 9.

    Examples
    --------
    >>> step_counts(10, 5000, 20, minority=0.3).tolist()
    [5000, 5000, 5000, 5000, 5000, 5000, 5000, 250, 250, 250]
    >>> step_counts(4, 100, 10, minority=[0]).tolist()
    [10, 100, 100, 100]
    """
    _check(num_classes, largest, "ratio", ratio)
    counts = np.full(num_classes, largest, np.int64)
    counts[minority_classes(num_classes, minority)] = int(largest * (1.0 / ratio))
    return counts


def minority_classes(num_classes: int, minority: float | Sequence[int]) -> NDArray[np.int64]:
    """Return the ids of the minority classes, from ids or from a share of the last classes.

    >>> minority_classes(10, 0.3).tolist(), minority_classes(10, [2, 0]).tolist()
    ([7, 8, 9], [0, 2])
    """
    if isinstance(minority, int | float):
        if isinstance(minority, bool) or not 0 <= minority <= 1:
            raise ArgumentError(f"minority: class ids or a share from 0 to 1 is needed, got {minority!r}")
        number = int(np.floor(num_classes * minority + 0.5))
        return np.arange(num_classes - number, num_classes)
    ids = sorted(int(c) for c in minority)
    if len(set(ids)) != len(ids) or any(not 0 <= c < num_classes for c in ids):
        raise ArgumentError(f"minority: different class ids from 0 to {num_classes - 1} are needed, got {ids}")
    return np.array(ids, np.int64)


def _check(num_classes: int, largest: int, name: str, value: float) -> None:
    if num_classes < 1 or largest < 0:
        raise ArgumentError(f"counts: at least one class and no negative count, got {num_classes} and {largest}")
    if not value >= 1:
        raise ArgumentError(f"{name}: largest over smallest class, at least 1, is needed, got {value!r}")
