"""The official partition to the last sample: NumPy's legacy stream as the released code uses it.

The released code seeds NumPy's global generator. Here the same stream comes from a generator of our own, so
nothing outside sees it. Classes are taken in ascending order, absent ones included, and the samples of a class by
ascending index.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import ArgumentError

LARGEST_SEED = 2**32 - 1


def official_owner(labels: NDArray[np.int64], clients: int, alpha: float, numpy_seed: int) -> NDArray[np.int64]:
    """Return the client of every sample as the released code draws it.

    The number of classes is one more than the largest label; it shapes the first draw, so labels whose last
    classes are absent follow another stream than labels with all of them.
    """
    if not 0 <= numpy_seed <= LARGEST_SEED:
        raise ArgumentError(f"numpy_seed: expected a number from 0 to {LARGEST_SEED}, got {numpy_seed}")
    legacy = np.random.RandomState(numpy_seed)
    num_classes = int(labels.max()) + 1 if labels.size else 0
    legacy.binomial(1, 1.0, size=(clients, num_classes))  # unused there too, but it advances the stream
    owner = np.full(labels.size, -1, np.int64)
    for c in range(num_classes):
        ids = np.flatnonzero(labels == c)
        p = legacy.dirichlet([alpha] * clients)
        if not np.isfinite(p).all():
            what = f"the official stream has no proportions for class {c} at alpha = {alpha:g}"
            raise ArgumentError(f"numpy_seed: {what}; take another numpy_seed or leave it out")
        owner[ids] = legacy.choice(clients, size=ids.size, p=p)
    return owner
