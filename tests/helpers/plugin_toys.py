"""A small imbalanced client: points in the plane, and models that score them well or badly."""

from __future__ import annotations

import logging

import numpy as np
import torch
from torch import Tensor, nn

from fedrela.core import Ledger
from fedrela.plugin.passes import ClientRound, plan_passes
from fedrela.plugin.policy import Policy
from fedrela.plugin.received_model import Scorer as RowScorer
from fedrela.plugin.scoring import Scored
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


def patients() -> list[dict[str, object]]:
    """Return the points as rows of somebody's own form, which `judged` knows how to give to a model."""
    return [{"point": x, "diagnosis": int(y)} for x, y in zip(*points(), strict=True)]


def judged(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Return the model's outputs for a batch of `patients`."""
    found: Tensor = model(batch["point"])
    return found


class Scorer(nn.Module):
    """Logits by the distance to each class's centre, behind a BatchNorm layer; `shifted` makes it wrong."""

    def __init__(self, shifted: int = 0) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.5)
        self.centres = nn.Parameter(torch.tensor(np.roll(CENTRES, shifted, axis=0)))

    def forward(self, x: Tensor) -> Tensor:
        return -torch.cdist(self.drop(self.norm(x)), self.centres)


class Drawn(RowScorer):
    """A scorer whose posterior depends on a seed, and whose labels do not."""

    def __init__(self, seed: int) -> None:
        super().__init__(Scorer, points)
        self.seed = seed

    def score(self) -> Scored:
        y = points()[1].numpy()
        return Scored(np.random.default_rng(self.seed).dirichlet(np.ones(3), len(y)), y, self.rows()[1])


def labels_in_round(store: LabelStore, round: int, seed: int, **options: object) -> Ledger | None:
    """Return what a client uses in a round with the model of a seed."""
    plan = plan_passes(**{"start": 3, "tau": 0.2} | options)
    return ClientRound(store, plan, Policy(), round, Drawn(seed), LOG).labels()


def relabel_in_round(folder: object, round: int, seed: int) -> str:
    """Let client 7 take part in a round with the model of a seed; return the digest of its labels and their round."""
    ledger = labels_in_round(LabelStore(str(folder), "toy", "7"), round, seed)
    assert ledger is not None
    return f"{ledger.options['round']} {ledger.labels.tolist()}"
