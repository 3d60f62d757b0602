"""Repair of a partition with too small clients, where drawing it anew did not help."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrela.data.partition.record import parts_of

Ints = NDArray[np.int64]


def repair(owner: Ints, clients: int, min_size: int, rng: np.random.Generator) -> tuple[Ints, int]:
    """Move as few samples as possible from the largest clients to those below `min_size`.

    Donors go down to one common level and never below `min_size`; which of their samples go is drawn.

    Returns
    -------
    The new owners, and how many samples were moved.

    Examples
    --------
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
    low, high = 0, int(sizes.max(initial=0))  # the level is the highest at which enough lies above it
    while low < high:
        middle = (low + high + 1) // 2
        if np.maximum(sizes - middle, 0).sum() >= total:
            low = middle
        else:
            high = middle - 1
    above = np.maximum(sizes - low, 0)
    spare = int(above.sum()) - total
    above[np.flatnonzero(above)[-spare:] if spare else []] -= 1
    return above
