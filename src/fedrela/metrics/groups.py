"""Groups of classes by frequency: head, medium, tail."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError

HEAD, MEDIUM, TAIL = 0, 1, 2


def shot_groups(counts: ArrayLike, cuts: tuple[float, float] = (0.75, 0.95)) -> NDArray[np.int64]:
    """Split classes into head (0), medium (1) and tail (2) by their cumulative share of the samples.

    Classes are taken by decreasing count, ties by class id. The class at which the running share reaches the first
    cut is the last head class, the one at which it reaches the second cut the last medium class.

    Parameters
    ----------
    counts : (C,) non-negative numbers
        Samples of each class.
    cuts
        Shares at which head and medium end.

    Examples
    --------
    >>> shot_groups([5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    """
    g = np.asarray(counts, dtype=np.float64)
    if g.ndim != 1 or g.size == 0 or not np.isfinite(g).all() or g.min() < 0:
        raise ArgumentError("counts: one non-negative number a class is needed")
    if not 0 < cuts[0] <= cuts[1] <= 1:
        raise ArgumentError(f"cuts: two ascending shares in (0, 1] are needed, got {cuts}")
    order = np.argsort(-g, kind="stable")
    group = np.full(g.size, TAIL)
    head_end, medium_end = (_crossing(g[order], cut) for cut in cuts)
    group[order[: medium_end + 1]] = MEDIUM
    group[order[: head_end + 1]] = HEAD
    return group


def _crossing(descending: NDArray[np.float64], cut: float) -> int:
    """Position of the class at which the running share reaches `cut`; 0 where there are no samples at all."""
    total = descending.sum()
    if total == 0:
        return 0
    percent = 100.0 * np.cumsum(descending) / total  # in per cent, as the official code compares
    reached = np.flatnonzero(percent >= 100.0 * cut)
    return int(reached[0]) if reached.size else 0
