"""The sparse frame of FedLoGe (ICLR 2024), SSE-C: an ETF with most entries zero, spread apart again by Adam.

It is a function of its arguments, computed on one thread. Its late steps are chaotic, so another version of torch may
give another, equally good frame; the version is therefore part of the address under which a frame is kept on disk.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save
from torch import Tensor

from fedrela.arguments import check_integer, check_number
from fedrela.errors import ArgumentError
from fedrela.files import digest, write_bytes
from fedrela.models.etf import check_room, simplex_etf
from fedrela.models.repeatable import one_thread
from fedrela.streams import stream

COS_LIMIT = 0.99999  # beyond it the slope of arccos explodes
ATTEMPTS = 100


def sparse_etf(
    features: int,
    classes: int,
    *,
    seed: int,
    beta: float = 0.6,
    steps: int = 10_000,
    lr: float = 1e-4,
    norm: float = 0.1,
    cache: str | Path | None = None,
) -> Tensor:
    """Return a sparse frame of shape (features, classes).

    Parameters
    ----------
    features, classes
        The shape; there must be at least as many features as classes.
    seed
        Of the dense frame it starts from and of the positions of its zeros.
    beta
        Share of entries that are zero, below 1.
    steps, lr
        Of Adam.
    norm
        What the columns' norms are drawn to.
    cache
        Folder where the frame is kept, so that it is computed once.
    """
    d, C = check_room(features, classes)
    record = {
        "features": d, "classes": C, "seed": check_integer("seed", seed, 0), "beta": check_number("beta", beta, 0, 1),
        "steps": check_integer("steps", steps, 0), "lr": check_number("lr", lr, 0), "norm": check_number("norm", norm, 0),
        "torch": torch.__version__,
    }  # fmt: skip
    path = None if cache is None else Path(cache) / f"sparse-etf-{digest(json.dumps(record).encode())}.safetensors"
    kept = None if path is None else _read(path, (d, C))
    if kept is not None:
        return torch.from_numpy(kept.copy())
    start, zeros = simplex_etf(d, C, seed=seed), zero_positions(d, C, beta, seed=seed)
    frame = spread_apart(start, torch.from_numpy(zeros), steps=steps, lr=lr, norm=norm)
    if path is not None:
        write_bytes(path, save({"frame": np.ascontiguousarray(frame.numpy())}))
    return frame


def zero_positions(features: int, classes: int, beta: float, *, seed: int) -> NDArray[np.int64]:
    """Return int(beta * features * classes) row-major positions, drawn evenly, that leave no column without a value."""
    size = features * classes
    draw = stream(seed, "sparse-etf")
    for _ in range(ATTEMPTS):
        zeros = draw.choice(size, int(beta * size), replace=False)
        if np.bincount(zeros % classes, minlength=classes).max() < features:
            return np.sort(zeros)
    raise ArgumentError(f"beta: {beta:g} leaves a column of {features} x {classes} without a value; lower it")


def spread_apart(start: Tensor, zeros: Tensor, *, steps: int, lr: float = 1e-4, norm: float = 0.1) -> Tensor:
    """Push the columns of `start` apart with the entries at `zeros` (row-major positions) held at zero.

    Adam minimises sum_c (|S_c| - norm)^2 - mean_c arccos(max_c' cos(S_c, S_c')), the gradient masked.
    """
    mask = start.new_ones(start.numel()).index_fill_(0, zeros, 0.0).view(start.shape)
    S = start.masked_fill(mask == 0, 0.0).contiguous().requires_grad_()
    adam = torch.optim.Adam([S], lr=lr)
    with one_thread():
        for _ in range(steps):
            (gradient,) = torch.autograd.grad(_crowding(S, norm), [S])
            S.grad = gradient * mask
            adam.step()
    return S.detach()


def _crowding(S: Tensor, norm: float) -> Tensor:
    norms = S.norm(dim=0)
    unit = S / norms
    cosines = unit.T @ unit - 2 * torch.eye(S.shape[1]).to(S)  # so that no column is its own nearest
    nearest = cosines.amax(dim=1).clamp(-COS_LIMIT, COS_LIMIT)
    off_length: Tensor = ((norms - norm) ** 2).sum()
    return off_length - torch.acos(nearest).mean()


def _read(path: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """Return the frame kept at `path`, or None where there is none or it is damaged: then it is computed again."""
    try:
        frame = load(path.read_bytes())["frame"]
    except (FileNotFoundError, SafetensorError, KeyError):
        return None
    return frame if frame.shape == shape and frame.dtype == np.float32 and np.isfinite(frame).all() else None
