"""The simplex equiangular tight frame: C unit vectors, every two of them at the same, largest possible angle."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedrela.arguments import check_integer
from fedrela.errors import ArgumentError
from fedrela.models.repeatable import one_thread
from fedrela.streams import stream


def simplex_etf(features: int, classes: int, *, seed: int) -> Tensor:
    """Return M = sqrt(C/(C-1)) P (I - 11'/C), P with orthonormal columns: one unit column of `features` a class.

    Parameters
    ----------
    features, classes
        The shape; there must be at least as many features as classes.
    seed
        Of the frame's direction in space.

    Examples
    --------
    >>> M = simplex_etf(16, 5, seed=0)
    >>> gram = M.T @ M
    >>> bool((gram.diagonal() - 1).abs().max() < 1e-6), round(float(gram[0, 1]), 6)
    (True, -0.25)
    """
    d, C = check_room(features, classes)
    draws = stream(check_integer("seed", seed, 0), "simplex-etf").random((d, C))
    with one_thread():
        P = torch.linalg.qr(torch.from_numpy(draws)).Q
        centred = P - P.mean(dim=1, keepdim=True)
        M: Tensor = math.sqrt(C / (C - 1)) * centred
    return M.to(torch.float32).contiguous()  # by rows, whatever the decomposition left


def check_room(features: int, classes: int) -> tuple[int, int]:
    """Return (features, classes) where a frame of that shape exists, or raise."""
    d, C = check_integer("features", features), check_integer("classes", classes, 2)
    if d < C:
        raise ArgumentError(
            f"simplex ETF: expected at least as many features as classes, got {d} features for {C} classes; "
            "take a wider model, or a projection of at least that width"
        )
    return d, C
