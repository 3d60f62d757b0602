"""Heads: linear ones from a seed, and fixed ones on a simplex ETF or on FedLoGe's sparse frame.

A simplex equiangular tight frame (ETF) has C unit vectors, every two of them at the same, largest possible angle. The
sparse frame of FedLoGe (ICLR 2024, SSE-C) is an ETF with most entries zero, spread apart again by Adam on one thread.
Its late steps are chaotic, so another version of torch may give another, equally good frame.

A fixed matrix is a non-persistent buffer: it follows its head to another device, and is not sent, averaged or trained.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize

from fedrela.arguments import check_integer, check_number
from fedrela.errors import ArgumentError
from fedrela.models.contract import num_features
from fedrela.models.runtime import one_thread, seeded
from fedrela.streams import stream

COS_LIMIT = 0.99999  # beyond it the slope of arccos explodes
ATTEMPTS = 100


def with_heads(model: nn.Module, **heads: nn.Module) -> nn.Module:
    """Return a model with another ``head``, or with more heads as its last modules, all of the model's dtype.

    >>> model = nn.ModuleDict({"head": nn.Linear(8, 3)})
    >>> model.features = nn.Flatten()
    >>> model = with_heads(model, head=nn.Linear(8, 3, bias=False), second=nn.Linear(8, 3))
    >>> [name for name, _ in model.named_parameters()], model.num_features
    (['head.weight', 'second.weight', 'second.bias'], 8)
    """
    changed: Any = model
    if not getattr(model, "num_features", None):
        changed.num_features = num_features(model)  # so far only the old head had it
    like = next(model.parameters())
    for name, head in heads.items():
        if hasattr(type(model), name) or (name != "head" and hasattr(model, name)):
            raise ArgumentError(f"{type(model).__name__}: its attribute {name!r} is reserved for a head; rename it")
        setattr(model, name, head.to(like))
    return model


def linear(
    features: int, classes: int, *, seed: int, purpose: str = "head", round: int = 0, client: int = 0
) -> nn.Linear:
    """Return a linear head with torch's initialisation, drawn from the stream at this address."""
    with seeded(seed, purpose, round, client):
        return nn.Linear(features, classes)


class FixedHead(nn.Module):
    """Logits f'S + b with a fixed matrix S, (features, classes), and a fixed bias (FedLoGe's head during training)."""

    def __init__(self, matrix: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.matrix: Tensor
        self.bias: Tensor
        self.register_buffer("matrix", matrix.clone(), persistent=False)
        fixed = matrix.new_zeros(matrix.shape[1]) if bias is None else bias.detach().clone()
        self.register_buffer("bias", fixed, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits."""
        return torch.addmm(self.bias, features, self.matrix)


class EtfHead(nn.Module):
    """Cosines v'M of normalised features with a fixed simplex ETF M (FedETF as the FedReLa paper ran it).

    With `batch_norm` features first pass a trained BatchNorm1d. In training a batch of one sample skips it.
    """

    def __init__(self, etf: Tensor, *, batch_norm: bool = True) -> None:
        super().__init__()
        self.etf: Tensor
        self.norm = nn.BatchNorm1d(etf.shape[0]) if batch_norm else nn.Identity()
        self.register_buffer("etf", etf.clone(), persistent=False)

    def unit(self, features: Tensor) -> Tensor:
        """Return v, the normalised features."""
        is_single = self.training and len(features) == 1
        return normalize(features if is_single else self.norm(features), dim=1, eps=1e-8)

    def forward(self, features: Tensor) -> Tensor:
        """Return the cosines as logits."""
        return self.unit(features) @ self.etf


class ProjectedEtfHead(nn.Module):
    """Logits s u'M, u the unit projection of the features, s a trained number (FedETF, ICCV 2023).

    M has shape (projection, classes). The initial `scale` s is 1 for ResNets and 10 for small CNNs in the original.
    """

    def __init__(self, features: int, etf: Tensor, *, seed: int, scale: float = 1.0) -> None:
        super().__init__()
        self.etf: Tensor
        self.projection = linear(features, etf.shape[0], seed=seed, purpose="etf-projection")
        self.scale = nn.Parameter(torch.tensor(float(scale)))
        self.register_buffer("etf", etf.clone(), persistent=False)

    def unit(self, features: Tensor) -> Tensor:
        """Return u, the normalised projection."""
        return normalize(self.projection(features), dim=1, eps=1e-12)

    def forward(self, features: Tensor) -> Tensor:
        """Return the scaled cosines."""
        return self.scale * (self.unit(features) @ self.etf)


def simplex_etf(features: int, classes: int, *, seed: int) -> Tensor:
    """Return M = sqrt(C/(C-1)) P (I - 11'/C), P with orthonormal columns: one unit column per class.

    There must be at least as many features as classes; `seed` decides the orientation.

    Examples
    --------
    >>> M = simplex_etf(16, 5, seed=0)
    >>> gram = M.T @ M
    >>> bool((gram.diagonal() - 1).abs().max() < 1e-6), round(float(gram[0, 1]), 6)
    (True, -0.25)
    """
    d, C = _frame_shape(features, classes)
    draws = stream(check_integer("seed", seed, 0), "simplex-etf").random((d, C))
    with one_thread():
        P = torch.linalg.qr(torch.from_numpy(draws)).Q
        centred = P - P.mean(dim=1, keepdim=True)
        M: Tensor = math.sqrt(C / (C - 1)) * centred
    return M.to(torch.float32).contiguous()  # row-major, whatever the layout of the decomposition


def _frame_shape(features: int, classes: int) -> tuple[int, int]:
    """Return (features, classes) if a frame of that shape exists, or raise."""
    d, C = check_integer("features", features), check_integer("classes", classes, 2)
    if d < C:
        raise ArgumentError(
            f"simplex ETF: expected at least as many features as classes, got {d} features for {C} classes; "
            "use a wider model, or a projection of at least that width"
        )
    return d, C


def sparse_etf(
    features: int, classes: int, *, seed: int, beta: float = 0.6, steps: int = 10_000, lr: float = 1e-4,
    norm: float = 0.1,
) -> Tensor:  # fmt: skip
    """Return a sparse frame of shape (features, classes), with at least as many features as classes.

    The fraction `beta` of its entries, below 1, is zero; `seed` decides where, and the dense frame it starts from. Adam
    takes `steps` steps at the rate `lr`; `norm` is the target of the columns' norms.
    """
    d, C = _frame_shape(features, classes)
    check_integer("steps", steps, 0)
    check_number("beta", beta, 0, 1)
    check_number("lr", lr, 0)
    check_number("norm", norm, 0)
    start, zeros = simplex_etf(d, C, seed=seed), zero_positions(d, C, beta, seed=seed)
    return spread_apart(start, torch.from_numpy(zeros), steps=steps, lr=lr, norm=norm)


def zero_positions(features: int, classes: int, beta: float, *, seed: int) -> NDArray[np.int64]:
    """Return int(beta * features * classes) random row-major positions that leave no column empty."""
    size = features * classes
    draw = stream(seed, "sparse-etf")
    for _ in range(ATTEMPTS):
        zeros = draw.choice(size, int(beta * size), replace=False)
        if np.bincount(zeros % classes, minlength=classes).max() < features:
            return np.sort(zeros)
    raise ArgumentError(f"{beta:g} leaves a column of {features} x {classes} empty; lower it", argument="beta")


def spread_apart(start: Tensor, zeros: Tensor, *, steps: int, lr: float = 1e-4, norm: float = 0.1) -> Tensor:
    """Spread the columns of `start` apart, with the entries at `zeros` (row-major positions) held at zero.

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
