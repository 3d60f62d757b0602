"""Heads: linear ones from a seed, and fixed ones on a simplex ETF or a sparse frame.

A fixed matrix is a non-persistent buffer: it follows its head to another device, and is no array that is sent, averaged
or trained.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from fedrela.errors import ArgumentError
from fedrela.models.contract import num_features
from fedrela.models.etf import simplex_etf
from fedrela.models.repeatable import seeded
from fedrela.models.sparse_etf import sparse_etf

__all__ = ["EtfHead", "FixedHead", "ProjectedEtfHead", "linear", "simplex_etf", "sparse_etf", "with_heads"]


def with_heads(model: nn.Module, **heads: nn.Module) -> nn.Module:
    """Return a model with another ``head``, or with further ones beside it as its last parts, all of its own dtype.

    >>> model = nn.ModuleDict({"head": nn.Linear(8, 3)})
    >>> model.features = nn.Flatten()
    >>> model = with_heads(model, head=nn.Linear(8, 3, bias=False), second=nn.Linear(8, 3))
    >>> [name for name, _ in model.named_parameters()], model.num_features
    (['head.weight', 'second.weight', 'second.bias'], 8)
    """
    changed: Any = model
    if not getattr(model, "num_features", None):
        changed.num_features = num_features(model)  # the old head knew it
    like = next(model.parameters())
    for name, head in heads.items():
        if hasattr(type(model), name) or (name != "head" and hasattr(model, name)):
            raise ArgumentError(f"{type(model).__name__}: its own {name!r} is where a head must be put; rename it")
        setattr(model, name, head.to(like))
    return model


def linear(
    features: int, classes: int, *, seed: int, purpose: str = "head", round: int = 0, client: int = 0
) -> nn.Linear:
    """Return a linear head with torch's own initialisation, drawn at an address of its own."""
    with seeded(seed, purpose, round, client):
        return nn.Linear(features, classes)


class FixedHead(nn.Module):
    """Logits f'S + b with a fixed matrix and a fixed bias (FedLoGe's head during training).

    Parameters
    ----------
    matrix
        Of shape (features, classes).
    bias
        Of shape (classes,); zero by default.
    """

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
    """Cosines v'M of normalised features with a fixed simplex ETF (FedETF as the FedReLa paper ran it).

    Parameters
    ----------
    etf
        Of shape (features, classes).
    batch_norm
        Whether features go through a trained BatchNorm1d first. In training a batch of one sample skips it.
    """

    def __init__(self, etf: Tensor, *, batch_norm: bool = True) -> None:
        super().__init__()
        self.etf: Tensor
        self.norm = nn.BatchNorm1d(etf.shape[0]) if batch_norm else nn.Identity()
        self.register_buffer("etf", etf.clone(), persistent=False)

    def unit(self, features: Tensor) -> Tensor:
        """Return v, the normalised features of length 1."""
        alone = self.training and len(features) == 1
        return normalize(features if alone else self.norm(features), dim=1, eps=1e-8)

    def forward(self, features: Tensor) -> Tensor:
        """Return the cosines as logits."""
        return self.unit(features) @ self.etf


class ProjectedEtfHead(nn.Module):
    """Logits s u'M, u the unit projection of the features, s a trained number (FedETF, ICCV 2023).

    Parameters
    ----------
    features
        Width of the features that are projected.
    etf
        Of shape (projection, classes).
    seed
        Of the projection's initial values.
    scale
        The initial s: 1 for ResNets, 10 for small CNNs in the original.
    """

    def __init__(self, features: int, etf: Tensor, *, seed: int, scale: float = 1.0) -> None:
        super().__init__()
        self.etf: Tensor
        self.projection = linear(features, etf.shape[0], seed=seed, purpose="etf-projection")
        self.scale = nn.Parameter(torch.tensor(float(scale)))
        self.register_buffer("etf", etf.clone(), persistent=False)

    def unit(self, features: Tensor) -> Tensor:
        """Return u, the projection at length 1."""
        return normalize(self.projection(features), dim=1, eps=1e-12)

    def forward(self, features: Tensor) -> Tensor:
        """Return the scaled cosines."""
        return self.scale * (self.unit(features) @ self.etf)
