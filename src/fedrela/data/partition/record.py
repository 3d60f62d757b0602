"""What a partition is: one index array a client, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Parts = list[NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Partition:
    """The samples of every client.

    Attributes
    ----------
    parts
        One sorted index array a client; together they hold every sample exactly once.
    redraws
        How often the partition was drawn anew because a client was too small.
    moved
        How many samples were then moved from the largest clients to the too small ones; 0: as drawn.
    """

    parts: Parts
    redraws: int = 0
    moved: int = 0

    @property
    def repaired(self) -> bool:
        """Whether samples were moved after drawing."""
        return self.moved > 0

    @property
    def note(self) -> str:
        """One sentence on what was done to reach the minimum size; empty where the first draw was good.

        >>> Partition([], redraws=100, moved=7).note
        'after 100 redraws, 7 samples were moved from the largest clients to the too small ones'
        """
        if self.repaired:
            moves = "samples were moved from the largest clients to the too small ones"
            return f"after {self.redraws} redraws, {self.moved} {moves}"
        return f"drawn anew {self.redraws} times to reach the minimum size" if self.redraws else ""


def parts_of(owner: NDArray[np.int64], clients: int) -> Parts:
    """Turn the owner of every sample into the sorted index array of every client.

    An owner array cannot lose or double a sample, so every partition is made as one.

    >>> [part.tolist() for part in parts_of(np.array([2, 0, 2]), 3)]
    [[1], [], [0, 2]]
    """
    order = np.argsort(owner, kind="stable").astype(np.int64, copy=False)
    return np.split(order, np.cumsum(np.bincount(owner, minlength=clients))[:-1])


def members_of(labels: NDArray[np.int64]) -> Parts:
    """Return the ascending sample indices of every class that is present, classes ascending.

    >>> [ids.tolist() for ids in members_of(np.array([5, 0, 5]))]
    [[1], [0, 2]]
    """
    order = np.argsort(labels, kind="stable").astype(np.int64, copy=False)
    borders = np.flatnonzero(np.diff(labels[order])) + 1
    return np.split(order, borders) if labels.size else []
