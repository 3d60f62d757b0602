"""Hosts that make re-labelling harder. Workers import this module."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Algorithm, Field
from fedrela.algorithms.local import open_loss, train


class Silent(Algorithm):
    """Its loss leaves no logits."""

    name, paper = "silent", "nobody"

    def client(self, turn):
        train(turn, loss=lambda batch: cross_entropy(batch.module(batch.x), batch.y))
        return {}


class Telling(Algorithm):
    """It sends what no host should: its loss before training, and the labels and counts that it trains with."""

    name, paper = "telling", "nobody"
    uploads = ("weights", "loss", "labels", "counts")

    def sends(self, sizes):
        return {
            "loss": Field((), "float64"),
            "labels": Field((), "int64"),
            "counts": Field((sizes.classes,), "int64"),
        }

    def client(self, turn):
        labels = turn.samples.labels
        with torch.no_grad():
            loss = open_loss(turn)(turn.model.module(turn.samples.scaled(slice(None))), torch.from_numpy(labels))
        train(turn)
        return {"loss": np.array(float(loss)), "labels": np.array(told(labels)), "counts": turn.counts}


def told(labels):
    """Return a number that tells labels apart."""
    return int(labels @ (np.arange(len(labels)) + 1) ** 2)


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
