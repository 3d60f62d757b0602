"""Baselines that make re-labelling harder. Workers import this module."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Algorithm, ArraySpec


class Silent(Algorithm):
    """Its loss leaves no logits."""

    name, paper = "silent", "nobody"

    def client(self, context):
        context.train(loss=lambda batch: cross_entropy(batch.module(batch.x), batch.y))
        return {}


class Telling(Algorithm):
    """It sends what no baseline should: its loss before training, and the labels and counts that it trains with."""

    name, paper = "telling", "nobody"
    uploads = ("weights", "loss", "labels", "counts")

    def sends(self, sizes):
        return {
            "loss": ArraySpec((), "float64"),
            "labels": ArraySpec((), "int64"),
            "counts": ArraySpec((sizes.classes,), "int64"),
        }

    def client(self, context):
        labels = context.samples.labels
        with torch.no_grad():
            loss = context.loss()(context.model.module(context.samples.scaled(slice(None))), torch.from_numpy(labels))
        context.train()
        return {"loss": np.array(float(loss)), "labels": np.array(told(labels)), "counts": context.counts}


def told(labels):
    """Return a number that tells labels apart."""
    return int(labels @ (np.arange(len(labels)) + 1) ** 2)


class Doubling(Algorithm):
    """It trains on every sample twice."""

    name, paper = "doubling", "nobody"

    def prepare(self, context):
        twice = np.concatenate([np.arange(len(context.samples))] * 2)
        return replace(context.samples, index=context.samples.index[twice], labels=context.samples.labels[twice])


class Unsure(Algorithm):
    """What it is scored with is no number."""

    name, paper = "unsure", "nobody"

    def logits(self, module, x, received):
        return module(x) * float("nan")
