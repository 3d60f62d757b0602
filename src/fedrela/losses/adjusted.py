"""Cross-entropy on adjusted logits: balanced softmax, logit adjustment, and FedLC's calibration.

All three add to each logit a number that depends on how many samples of the class the client has, so that rare classes
get the larger margin. Counts are those of the labels in force. A class without a sample gets the logit minus infinity,
thus no probability and no gradient, unless `floor` raises its count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

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
        Smaller counts are raised to it; FedETF and FedROD take 1.

    Examples
    --------
    >>> f, y = torch.tensor([[1.0, 2.0, 0.5]]), torch.tensor([2])
    >>> round(balanced_softmax(f, y, [80, 15, 5]).item(), 4)
    3.7093
    """
    return cross_entropy(logits + class_counts(logits, counts, floor).log(), labels)


def logit_adjustment(logits: Tensor, labels: Tensor, counts: Counts, tau: float = 1.0, *, floor: float = 0.0) -> Tensor:
    """Return CE(f + tau log pi, y) with pi the class shares (Menon et al., 2021); tau = 1 is the balanced softmax.

    The shares' common divisor shifts all logits alike and is left out. Parameters as in `balanced_softmax`.
    """
    if strength(tau) == 0:
        return cross_entropy(logits, labels)
    return cross_entropy(logits + tau * class_counts(logits, counts, floor).log(), labels)


def fedlc(
    logits: Tensor, labels: Tensor, counts: Counts, tau: float, *, floor: float = 0.0, exclude_label: bool = False
) -> Tensor:
    """Return CE(f - tau n^(-1/4), y), the logits calibration of FedLC (Zhang et al., 2022).

    Parameters
    ----------
    logits, labels, counts
        As in `balanced_softmax`.
    tau
        Strength of the margin, at least 0.
    floor
        Smaller counts are raised to it; 1e-8 in some public implementations.
    exclude_label
        Leave the true class out of the denominator, as the paper prints it. A sample that then has no other class to
        be told from adds nothing.
    """
    calibrated = logits
    if strength(tau) > 0:
        calibrated = logits - tau * class_counts(logits, counts, floor) ** -0.25
    return _without_label(calibrated, labels) if exclude_label else cross_entropy(calibrated, labels)


def _without_label(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean of log sum_{c != y} exp l_c - l_y."""
    true = labels[:, None]
    rivals = logits.scatter(1, true, -math.inf)
    told = torch.isfinite(rivals.amax(dim=1, keepdim=True))
    margin = torch.logsumexp(rivals.masked_fill(~told, 0.0), dim=1) - logits.gather(1, true)[:, 0]
    return margin.masked_fill(~told[:, 0], 0.0).mean()


def class_counts(logits: Tensor, counts: Counts, floor: float = 0.0) -> Tensor:
    """Return the counts as a tensor beside the logits, raised to `floor`; a wrong shape is an error."""
    # A copy, since torch warns of an array that is read-only.
    n = (counts if isinstance(counts, Tensor) else torch.from_numpy(np.array(counts))).to(logits)
    if n.shape != logits.shape[1:]:
        needed = f"one number for each of {logits.shape[1]} classes"
        raise ArgumentError(f"counts: expected {needed}, got shape {tuple(n.shape)}")
    return n.clamp(min=floor) if floor else n


def strength(tau: float) -> float:
    """Return tau where it is a finite number of at least 0, or raise."""
    if not 0 <= tau < math.inf:
        raise ArgumentError(f"tau: expected a number >= 0, got {tau!r}")
    return tau
