"""Cross-entropy with a weight for each sample: focal loss and class-balanced loss."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax

from fedrela.errors import ArgumentError
from fedrela.losses.adjusted import Counts, class_counts


def focal(logits: Tensor, labels: Tensor, gamma: float = 2.0) -> Tensor:
    """Return the mean of -(1 - p_y)^gamma log p_y (Lin et al., 2017); gamma = 0 is cross-entropy.

    Examples
    --------
    >>> f, y = torch.tensor([[1.0, 2.0, 0.5]]), torch.tensor([1])
    >>> round(focal(f, y).item(), 4)
    0.0641
    """
    if not 0 <= gamma < math.inf:
        raise ArgumentError(f"gamma: expected a number >= 0, got {gamma!r}")
    log_p = log_softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
    # Where p_y rounds to 1 the slope of the power is infinite for gamma below 1: held away from there.
    miss = (-torch.expm1(log_p)).clamp(min=torch.finfo(logits.dtype).tiny)
    return -(miss**gamma * log_p).mean()


def class_balanced(
    logits: Tensor, labels: Tensor, counts: Counts, beta: float = 0.9999, *, floor: float = 0.0
) -> Tensor:
    """Return the mean of w_y CE, w_c proportional to (1 - beta) / (1 - beta^n_c) (Cui et al., 2019).

    Parameters
    ----------
    logits, labels
        Of a batch: (B, C) and (B,).
    counts
        Samples of each class, (C,). A class without any has no weight.
    beta
        From 0 (no weights) up to but without 1 (where weights would be inverse counts).
    floor
        Smaller counts are raised to it.
    """
    weights = effective_weights(class_counts(logits, counts, floor), beta)
    return (weights[labels] * cross_entropy(logits, labels, reduction="none")).mean()


def effective_weights(counts: Tensor, beta: float) -> Tensor:
    """Return the class weights, the mean of which over the classes present is 1.

    >>> [round(weight, 6) for weight in effective_weights(torch.tensor([1.0, 2.0, 0.0]), 0.5).tolist()]
    [1.2, 0.8, 0.0]
    """
    if not 0 <= beta < 1:
        raise ArgumentError(f"beta: expected a number from 0 up to but without 1, got {beta!r}")
    present = counts > 0
    power = counts.masked_fill(~present, 1.0) * (math.log(beta) if beta else -math.inf)
    weights = (-1 / torch.expm1(power)).masked_fill(~present, 0.0)
    return weights * (present.sum() / weights.sum())
