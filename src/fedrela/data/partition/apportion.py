"""Seats by size: into how many pieces each group is cut so that pieces are as equal as they can be."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def apportion(sizes: Sequence[int], seats: int, most: int) -> NDArray[np.int64]:
    """Give each group one seat, then each further seat to the group whose pieces are largest.

    No group gets more seats than `most` or than it has samples; the caller makes sure that so many seats fit.
    Ties go to the earlier group.

    >>> apportion([90, 10, 20], 5, most=3).tolist()
    [3, 1, 1]
    """
    granted = np.ones(len(sizes), np.int64)
    waiting = [(-float(size), group) for group, size in enumerate(sizes) if min(size, most) > 1]
    heapq.heapify(waiting)
    for _ in range(seats - len(sizes)):
        _, group = heapq.heappop(waiting)
        granted[group] += 1
        if granted[group] < min(sizes[group], most):
            heapq.heappush(waiting, (-sizes[group] / granted[group], group))
    return granted
