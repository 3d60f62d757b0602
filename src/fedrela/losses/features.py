"""Losses on features: MOON's contrastive term and the dot regression on a fixed frame."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from fedrela.errors import ArgumentError


def contrastive(z: Tensor, z_global: Tensor, z_previous: Tensor, temperature: float) -> Tensor:
    """Return MOON's model-contrastive loss (Li et al., 2021): near to the global model, far from the previous ones.

    The mean over the batch of log sum_j exp(s_j / T) - s_0 / T, s_j = cos(z, z_j), j = 0 the global model.

    Parameters
    ----------
    z, z_global
        Features of a batch under the model in training and under the global one, (B, D). Only `z` gets a gradient.
    z_previous
        Under the client's previous models, (k, B, D), or (B, D) for one. Without any (k = 0) the loss is 0.
    temperature
        T, above 0.

    Examples
    --------
    >>> z = torch.tensor([[1.0, 0.0]])
    >>> round(contrastive(z, z, -z, 0.5).item(), 4)
    0.0181
    """
    if not 0 < temperature < math.inf:
        raise ArgumentError(f"temperature: expected a number > 0, got {temperature!r}")
    previous = z_previous if z_previous.ndim == 3 else z_previous[None]
    if z_global.shape != z.shape or previous.shape[1:] != z.shape:
        came = f"{tuple(z_global.shape)} and {tuple(z_previous.shape)}"
        raise ArgumentError(f"contrastive: features of shape {tuple(z.shape)} are needed from all models, got {came}")
    others = torch.cat([z_global[None], previous]).detach()
    similar = cosine_similarity(z[None], others, dim=2) / temperature
    return (torch.logsumexp(similar, dim=0) - similar[0]).mean()


def dot_regression(features: Tensor, labels: Tensor, etf: Tensor, *, counts: Tensor | None = None) -> Tensor:
    """Return half the class-balanced mean of (cos - 1)^2 between features and their class's vector.

    With U distinct classes and b_c samples of class c in the batch, e_c^2 = B / (U b_c), and the loss is
    (1/2) mean_i e_y^2 (v_i'M_y - |M_y||v_i|)^2 / |v_i|, the norms taken as constants.

    Parameters
    ----------
    features
        v, rows of length 1 (see `fedrela.models.heads.EtfHead.unit`), (B, d).
    labels
        (B,)
    etf
        M, (d, C).
    counts
        Counts that balance in place of the batch's own, (C,).
    """
    target = etf.T[labels]
    length = features.detach().norm(dim=1).clamp(min=1e-8)
    gap = (features * target).sum(dim=1) - target.norm(dim=1) * length
    b = torch.bincount(labels, minlength=etf.shape[1]) if counts is None else counts
    squares: Tensor = balance(b.to(features))[labels] ** 2 * gap**2 / length
    return 0.5 * squares.mean()


def balance(counts: Tensor) -> Tensor:
    """Return e_c = sqrt(N / (U n_c)) for the U classes present, and 1 for the others.

    >>> [round(weight, 6) for weight in balance(torch.tensor([8.0, 2.0, 0.0])).tolist()]
    [0.790569, 1.581139, 1.0]
    """
    present = counts > 0
    shares = counts.sum() / (present.sum() * counts)
    return torch.where(present, shares, 1.0).sqrt()
