"""What a partition is: the samples of every client. And how one with too small clients is repaired."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Parts = list[Ints]


class Partition(list[Ints]):
    """One sorted index array per client, which together hold every sample exactly once.

    It was drawn anew `redraws` times because a client was too small; then `moved` samples were moved from the largest
    clients to the too small ones.
    """

    def __init__(self, parts: Iterable[Ints], redraws: int = 0, moved: int = 0) -> None:
        super().__init__(parts)
        self.redraws, self.moved = redraws, moved

    @property
    def note(self) -> str:
        """One sentence on what was done to reach the minimum size; empty where the first draw was good.

        >>> Partition([], redraws=100, moved=7).note
        'after 100 redraws, 7 samples were moved from the largest clients to the too small ones'
        """
        if self.moved:
            moves = "samples were moved from the largest clients to the too small ones"
            return f"after {self.redraws} redraws, {self.moved} {moves}"
        return f"drawn anew {self.redraws} times to reach the minimum size" if self.redraws else ""


def parts_of(owner: Ints, clients: int) -> Parts:
    """Turn the owner of every sample into the sorted index array of every client.

    An owner array cannot lose or double a sample, so every partition is made as one.

    >>> [part.tolist() for part in parts_of(np.array([2, 0, 2]), 3)]
    [[1], [], [0, 2]]
    """
    order = np.argsort(owner, kind="stable").astype(np.int64, copy=False)
    return np.split(order, np.cumsum(np.bincount(owner, minlength=clients))[:-1])


def members_of(labels: Ints) -> Parts:
    """Return the ascending sample indices of every class that is present, classes ascending.

    >>> [ids.tolist() for ids in members_of(np.array([5, 0, 5]))]
    [[1], [0, 2]]
    """
    order = np.argsort(labels, kind="stable").astype(np.int64, copy=False)
    borders = np.flatnonzero(np.diff(labels[order])) + 1
    return np.split(order, borders) if labels.size else []


def repair(owner: Ints, clients: int, min_size: int, rng: np.random.Generator) -> tuple[Ints, int]:
    """Move as few samples as possible from the largest clients to those below `min_size`.

    Donors go down to one common level and never below `min_size`; which of their samples go is drawn. Returns the new
    owners, and how many samples were moved.

    >>> owner, moved = repair(np.array([0, 0, 0, 0, 1, 1]), 3, 1, np.random.default_rng(0))
    >>> np.bincount(owner).tolist(), moved
    ([3, 2, 1], 1)
    """
    sizes = np.bincount(owner, minlength=clients)
    lacking = np.maximum(min_size - sizes, 0)
    moved = int(lacking.sum())
    giving = donations(sizes, moved)
    parts = parts_of(owner, clients)
    given = [rng.choice(parts[k], giving[k], replace=False) for k in np.flatnonzero(giving)]
    owner = owner.copy()
    if given:
        owner[rng.permutation(np.concatenate(given))] = np.repeat(np.arange(clients), lacking)
    return owner, moved


def donations(sizes: Ints, total: int) -> Ints:
    """How many samples each client gives so that `total` are given and the largest go down to one level.

    >>> donations(np.array([9, 2, 7, 8]), 6).tolist()
    [3, 0, 1, 2]
    """
    levels = range(1, int(sizes.max(initial=0)) + 1)  # the highest at which enough lies above it, or 0
    level = bisect_left(levels, True, key=lambda level: bool(np.maximum(sizes - level, 0).sum() < total))
    above = np.maximum(sizes - level, 0)
    spare = int(above.sum()) - total
    above[np.flatnonzero(above)[-spare:] if spare else []] -= 1
    return above
