"""Losses: functions of a batch, each the mean over it, with the class counts where it needs them."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from fedrela.losses.adjusted import Counts, balanced_softmax, fedlc, logit_adjustment
from fedrela.losses.features import contrastive, dot_regression
from fedrela.losses.weighted import class_balanced, focal

__all__ = [
    "LOSSES", "balanced_softmax", "class_balanced", "contrastive", "cross_entropy", "dot_regression", "fedlc", "focal",
    "logit_adjustment",
]  # fmt: skip


def cross_entropy(logits: Tensor, labels: Tensor, counts: Counts | None = None) -> Tensor:
    """Return the mean cross-entropy; `counts` are not used."""
    return functional.cross_entropy(logits, labels)


def _focal(logits: Tensor, labels: Tensor, counts: Counts | None = None) -> Tensor:
    return focal(logits, labels)


# For algorithms that leave the loss open: name -> function of (logits, labels, counts of the labels in force).
LOSSES: dict[str, Callable[[Tensor, Tensor, Counts], Tensor]] = {
    "balanced_softmax": balanced_softmax,
    "class_balanced": class_balanced,
    "cross_entropy": cross_entropy,
    "focal": _focal,
    "logit_adjustment": logit_adjustment,
}
