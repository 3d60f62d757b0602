"""A small imbalanced client: points in the plane, and models that score them well or badly."""

from __future__ import annotations

import logging

import numpy as np
import torch
from torch import Tensor, nn

from fedrela.plugin.oneshot import Scored, current_ledger, plan_passes
from fedrela.plugin.policy import Policy
from fedrela.plugin.store import LabelStore

SIZES = (80, 30, 6)
CENTRES = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]], np.float32)
LOG = logging.getLogger("fedrela.toys")


def points(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return points and their classes, in a mixed order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(3), SIZES))
    x = CENTRES[y] + rng.normal(0, 0.8, (len(y), 2)).astype(np.float32)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class Scorer(nn.Module):
    """Logits by the distance to each class's centre, behind a BatchNorm layer; `shifted` makes it wrong."""

    def __init__(self, shifted: int = 0) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.5)
        self.centres = nn.Parameter(torch.tensor(np.roll(CENTRES, shifted, axis=0)))

    def forward(self, x: Tensor) -> Tensor:
        return -torch.cdist(self.drop(self.norm(x)), self.centres)


def scored(seed: int) -> Scored:
    """Return a posterior that depends on the seed, and labels that do not."""
    y = points()[1].numpy()
    return np.random.default_rng(seed).dirichlet(np.ones(3), len(y)), y


def relabel_in_round(folder: object, round: int, seed: int) -> str:
    """Let client 7 take part in a round with the model of a seed; return the digest of its labels and their round."""
    store = LabelStore(str(folder), "toy", "7")
    ledger, _ = current_ledger(store, plan_passes(start=3, tau=0.2), Policy(), round, lambda: scored(seed), LOG)
    assert ledger is not None
    return f"{ledger.options['round']} {ledger.labels.tolist()}"
