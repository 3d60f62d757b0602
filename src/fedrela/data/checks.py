"""Checks of the arguments of imbalance, partitions and sources, before anything is drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_integer
from fedrela.core.checks import as_labels
from fedrela.errors import ArgumentError, DataError

ALPHA_RANGE = (1e-6, 1e9)  # beyond it a draw is one-hot or even to the last bit


def check_labels(labels: ArrayLike) -> NDArray[np.int64]:
    """Return `labels` as int64, or raise."""
    y = as_labels(labels).astype(np.int64, copy=False)
    if y.size and y.min() < 0:
        i = int(np.argmax(y < 0))
        raise DataError(f"classes count from 0, got {y[i]} at index {i}; renumber the classes", argument="labels")
    return y


def check_clients(samples: int, clients: int, min_size: int) -> int:
    """Return the number of clients where each can have `min_size` of the samples, or raise."""
    clients, min_size = check_integer("clients", clients, 1), check_integer("min_size", min_size, 0)
    if min_size * clients > samples:
        needed = f"{clients} clients with {min_size} samples each need {min_size * clients}"
        key, advice = ("min_size", "min_size or clients") if min_size > 1 else ("clients", "clients")
        raise ArgumentError(f"{needed}, there are {samples}; lower {advice}", argument=key)
    return clients


def check_alpha(alpha: float) -> float:
    """Return the Dirichlet concentration as a float, or raise."""
    low, high = ALPHA_RANGE
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.number) or not low <= alpha <= high:
        raise ArgumentError(f"expected a number from {low:g} to {high:g}, got {alpha!r}", argument="alpha")
    return float(alpha)
