"""One dual variable a client: how a limit on every client's loss becomes a weight of that client."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def dual_step(lam: ArrayLike, losses: ArrayLike, *, lr: float, eps: float, cap: float = 100.0) -> NDArray[np.float64]:
    """Return clip(lam_i + (lr / K) (F_i - mean F - eps), 0, cap).

    >>> dual_step([0.0, 0.0], [3.0, 1.0], lr=1.0, eps=0.5).tolist()
    [0.25, 0.0]
    """
    old, F = np.asarray(lam, np.float64), np.asarray(losses, np.float64)
    return np.asarray(np.clip(old + lr / old.size * (F - F.mean() - eps), 0.0, cap))


def client_weights(lam: ArrayLike) -> NDArray[np.float64]:
    """Return w_i = 1 + lam_i - mean(lam), which sum to K.

    >>> client_weights([0.5, 0.0, 0.1]).round(2).tolist()
    [1.3, 0.8, 0.9]
    """
    duals = np.asarray(lam, np.float64)
    return np.asarray(1.0 + duals - duals.mean())


def not_below_zero(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights of at least 0 with the same sum: below 0 a client's loss would be driven up.

    >>> not_below_zero(np.array([3.0, 1.0, -1.0])).tolist()
    [2.25, 0.75, 0.0]
    """
    if weights.min() >= 0:
        return weights
    positive = np.maximum(weights, 0.0)
    return np.asarray(positive * (weights.sum() / positive.sum()))
