"""Losses of a batch, each a mean over its samples; some depend on the client's class counts.

Balanced softmax, logit adjustment and FedLC add to each logit a number that depends on the client's class count, so
that rare classes get the larger margin. Counts are those of the current labels. A class without samples gets the logit
minus infinity, so neither probability nor gradient, unless `floor` raises its count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, log_softmax

from fedrela.arguments import check_number
from fedrela.errors import ArgumentError

Counts = Tensor | NDArray[Any] | Sequence[float]


def balanced_softmax(logits: Tensor, labels: Tensor, counts: Counts, *, floor: float = 0.0) -> Tensor:
    """Return CE(f + log n, y), the balanced softmax of Ren et al. (2020).

    Parameters
    ----------
    logits, labels
        Of a batch: (B, C) and (B,).
    counts
        Samples of each class, (C,).
    floor
        Smaller counts are raised to it; FedETF and FedRoD use 1.

    Examples
    --------
    >>> f, y = torch.tensor([[1.0, 2.0, 0.5]]), torch.tensor([2])
    >>> round(balanced_softmax(f, y, [80, 15, 5]).item(), 4)
    3.7093
    """
    return cross_entropy(logits + class_counts(logits, counts, floor).log(), labels)


def logit_adjustment(logits: Tensor, labels: Tensor, counts: Counts, tau: float = 1.0, *, floor: float = 0.0) -> Tensor:
    """Return CE(f + tau log pi, y) with pi the class shares (Menon et al., 2021); tau = 1 is the balanced softmax.

    The shares' common divisor shifts all logits alike and is left out.

    Parameters
    ----------
    logits, labels, counts, floor
        As for `balanced_softmax`.
    tau
        Strength of the adjustment, at least 0; 0 is cross-entropy.

    Examples
    --------
    >>> f, y = torch.tensor([[1.0, 2.0, 0.5]]), torch.tensor([2])
    >>> round(logit_adjustment(f, y, [80, 15, 5], tau=1.0).item(), 4)
    3.7093
    """
    if check_number("tau", tau, 0) == 0:
        return cross_entropy(logits, labels)
    return cross_entropy(logits + tau * class_counts(logits, counts, floor).log(), labels)


def fedlc(
    logits: Tensor, labels: Tensor, counts: Counts, tau: float, *, floor: float = 0.0, exclude_label: bool = False
) -> Tensor:
    """Return CE(f - tau n^(-1/4), y), the logits calibration of FedLC (Zhang et al., 2022).

    Parameters
    ----------
    logits, labels, counts
        As for `balanced_softmax`.
    tau
        Strength of the margin, at least 0.
    floor
        As for `balanced_softmax`; some public implementations have 1e-8.
    exclude_label
        Whether the true class is left out of the denominator, as printed in the paper; a sample without another class
        then adds nothing.

    Examples
    --------
    With sixteen and one samples the logits fall by 1/2 and 1, and so become equal:

    >>> round(fedlc(torch.tensor([[0.0, 0.5]]), torch.tensor([1]), [16, 1], tau=1.0).item(), 4)
    0.6931
    """
    calibrated = logits
    if check_number("tau", tau, 0) > 0:
        calibrated = logits - tau * class_counts(logits, counts, floor) ** -0.25
    return _without_label(calibrated, labels) if exclude_label else cross_entropy(calibrated, labels)


def _without_label(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean of log sum_{c != y} exp l_c - l_y."""
    true = labels[:, None]
    rivals = logits.scatter(1, true, -math.inf)
    has_rival = torch.isfinite(rivals.amax(dim=1, keepdim=True))
    margin = torch.logsumexp(rivals.masked_fill(~has_rival, 0.0), dim=1) - logits.gather(1, true)[:, 0]
    return margin.masked_fill(~has_rival[:, 0], 0.0).mean()


def class_counts(logits: Tensor, counts: Counts, floor: float = 0.0) -> Tensor:
    """Return the counts as a tensor like the logits, but at least of 32 bits, raised to `floor`."""
    # A copy, since torch warns about read-only arrays. Counts above 65,504 are infinite in float16.
    n = counts if isinstance(counts, Tensor) else torch.from_numpy(np.array(counts))
    n = n.to(logits.device, torch.promote_types(logits.dtype, torch.float32))
    if n.shape != logits.shape[1:]:
        expected = f"one number for each of {logits.shape[1]} classes"
        raise ArgumentError(f"expected {expected}, got shape {tuple(n.shape)}", argument="counts")
    return n.clamp(min=floor) if floor else n


def focal(logits: Tensor, labels: Tensor, gamma: float = 2.0) -> Tensor:
    """Return the mean of -(1 - p_y)^gamma log p_y (Lin et al., 2017); gamma = 0 is cross-entropy.

    Parameters
    ----------
    logits, labels
        Of a batch: (B, C) and (B,).
    gamma
        How much less well-classified samples count, at least 0.

    Examples
    --------
    >>> f, y = torch.tensor([[1.0, 2.0, 0.5]]), torch.tensor([1])
    >>> round(focal(f, y).item(), 4)
    0.0641
    """
    check_number("gamma", gamma, 0)
    log_p = log_softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
    # If p_y rounds to 1, the slope of the power is infinite for gamma < 1: keep 1 - p_y above 0.
    miss = (-torch.expm1(log_p)).clamp(min=torch.finfo(logits.dtype).tiny)
    return -(miss**gamma * log_p).mean()


def class_balanced(
    logits: Tensor, labels: Tensor, counts: Counts, beta: float = 0.9999, *, floor: float = 0.0
) -> Tensor:
    """Return the mean of w_y CE, w_c proportional to (1 - beta) / (1 - beta^n_c) (Cui et al., 2019).

    Parameters
    ----------
    logits, labels, counts, floor
        As for `balanced_softmax`. A class without samples has weight 0.
    beta
        In [0, 1): 0 means no weights, the limit 1 inverse counts.

    Examples
    --------
    Equal logits of two classes cost log 2, here times the weight 1.2 of the rarer class:

    >>> loss = class_balanced(torch.zeros(1, 2), torch.tensor([0]), [1, 2], beta=0.5)
    >>> round(loss.item() / math.log(2), 4)
    1.2
    """
    weights = effective_weights(class_counts(logits, counts, floor), beta)
    return (weights[labels] * cross_entropy(logits, labels, reduction="none")).mean()


def effective_weights(counts: Tensor, beta: float) -> Tensor:
    """Return class weights with mean 1 over the classes present.

    >>> [round(weight, 6) for weight in effective_weights(torch.tensor([1.0, 2.0, 0.0]), 0.5).tolist()]
    [1.2, 0.8, 0.0]
    """
    check_number("beta", beta, 0, 1)
    present = counts > 0
    power = counts.masked_fill(~present, 1.0) * (math.log(beta) if beta else -math.inf)
    weights = (-1 / torch.expm1(power)).masked_fill(~present, 0.0)
    return weights * (present.sum() / weights.sum())


def contrastive(z: Tensor, z_global: Tensor, z_previous: Tensor, temperature: float) -> Tensor:
    """Return MOON's model-contrastive loss (Li et al., 2021): near the global model, far from the previous ones.

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
        raise ArgumentError(f"expected a number > 0, got {temperature!r}", argument="temperature")
    previous = z_previous if z_previous.ndim == 3 else z_previous[None]
    if z_global.shape != z.shape or previous.shape[1:] != z.shape:
        got = f"{tuple(z_global.shape)} and {tuple(z_previous.shape)}"
        raise ArgumentError(f"contrastive: expected features of shape {tuple(z.shape)} from all models, got {got}")
    others = torch.cat([z_global[None], previous]).detach()
    similar = cosine_similarity(z[None], others, dim=2) / temperature
    return (torch.logsumexp(similar, dim=0) - similar[0]).mean()


def dot_regression(features: Tensor, labels: Tensor, etf: Tensor, *, counts: Tensor | None = None) -> Tensor:
    """Return half the class-balanced mean of (cos - 1)^2 between features and their class's vector.

    With U distinct classes and b_c samples of class c in the batch, e_c^2 = B / (U b_c), and the loss is
    ``(1/2) mean_i e_y^2 (v_i'M_y - |M_y||v_i|)^2 / |v_i|``, the norms taken as constants.

    Parameters
    ----------
    features : (B, d)
        v, rows of length 1, see `fedrela.models.heads.EtfHead.unit`.
    labels : (B,)
        Their classes.
    etf : (d, C)
        M.
    counts : (C,), optional
        In place of the batch's own b_c.

    Examples
    --------
    >>> M, y = torch.eye(2), torch.tensor([0, 1])
    >>> dot_regression(torch.eye(2), y, M).item(), dot_regression(torch.eye(2).flip(0), y, M).item()
    (0.0, 0.5)
    """
    target = etf.T[labels]
    length = features.detach().norm(dim=1).clamp(min=1e-8)
    gap = (features * target).sum(dim=1) - target.norm(dim=1) * length
    ones = torch.ones_like(labels, dtype=features.dtype)
    b = features.new_zeros(etf.shape[1]).scatter_add(0, labels, ones) if counts is None else counts.to(features)
    loss: Tensor = 0.5 * (balance(b)[labels] ** 2 * gap**2 / length).mean()
    return loss


def balance(counts: Tensor) -> Tensor:
    """Return e_c = sqrt(N / (U n_c)) for the U classes present, and 1 for the others.

    >>> [round(weight, 6) for weight in balance(torch.tensor([8.0, 2.0, 0.0])).tolist()]
    [0.790569, 1.581139, 1.0]
    """
    present = counts > 0
    shares = counts.sum() / (present.sum() * counts)
    return torch.where(present, shares, 1.0).sqrt()


# For algorithms that leave the loss open: name -> function of (logits, labels, counts of the current labels).
LOSSES: dict[str, Callable[[Tensor, Tensor, Counts], Tensor]] = {
    "balanced_softmax": balanced_softmax,
    "class_balanced": class_balanced,
    "cross_entropy": lambda logits, labels, _: cross_entropy(logits, labels),
    "focal": lambda logits, labels, _: focal(logits, labels),
    "logit_adjustment": logit_adjustment,
}
