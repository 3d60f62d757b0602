"""Hosts that make re-labelling harder. Workers import this module."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Algorithm
from fedrela.algorithms.local import train


class Silent(Algorithm):
    """Its loss leaves no logits."""

    name, paper = "silent", "nobody"

    def client(self, turn):
        train(turn, loss=lambda batch: cross_entropy(batch.module(batch.x), batch.y))
        return {}


class Doubling(Algorithm):
    """It trains on every sample twice."""

    name, paper = "doubling", "nobody"

    def prepare(self, turn):
        twice = np.concatenate([np.arange(len(turn.samples))] * 2)
        return replace(turn.samples, index=turn.samples.index[twice], labels=turn.samples.labels[twice])


class Unsure(Algorithm):
    """What it is scored with is no number."""

    name, paper = "unsure", "nobody"

    def logits(self, module, x, received):
        return module(x) * float("nan")
