"""Parts as a user would write them, in a module of their own.

What leaves the client: the weights.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from fedrela.algorithms.base import Algorithm
from fedrela.core import Candidates, Reallocator
from fedrela.data.sources import Source, from_arrays
from fedrela.options import Options, option

NOTHING = 3


class Mine(Algorithm):
    """FedAvg whose server takes a fraction of the step."""

    label = "Mine"
    paper = "nobody, 2026"

    @dataclass(frozen=True)
    class Params(Options):
        """Parameters."""

        share: float = option(0.5, "share of the step", gt=0, le=1)

    def server(self, context):
        new = context.average()
        return context.weights + np.float32(self.params.share) * (new - context.weights)


class Swap(Reallocator):
    """Every sample of the most frequent class, or some of them, to the next class."""

    @dataclass(frozen=True)
    class Params(Options):
        """Parameters."""

        every: int = option(1, "which of the samples: 1 all, 2 each second", ge=1)

    def propose(self, posterior, labels, options, rng):
        most = np.bincount(labels).argmax()
        sample = np.flatnonzero(labels == most)[:: self.params.every]
        target = np.full(sample.size, (most + 1) % posterior.shape[1])
        return Candidates(sample, target, rng.random(sample.size), np.ones(sample.size))


def make(input_shape: tuple[int, ...], num_classes: int, width: int = 8) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(int(np.prod(input_shape)), width), nn.ReLU(), nn.Linear(width, num_classes)
    )


class Net(nn.Module):
    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(int(np.prod(input_shape)), num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.flatten(1))


def needy(input_shape, num_classes, width): ...


def load(*, samples: int = 120, shift: float = 0.0) -> Source:
    """Two clouds."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [samples, samples // 4])
    return from_arrays(rng.normal(0, 1, (y.size, 3)) + y[:, None] + shift, y)


def wrong_load() -> dict[str, int]:
    return {}


def draws() -> float:
    """Draw once from each of the three global generators."""
    return random.random() + float(np.random.random()) + float(torch.rand(()))  # noqa: NPY002


class Noisy(nn.Module):
    """A model whose first values, and every pass, draw from all three global generators."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(int(np.prod(input_shape)), num_classes)
        with torch.no_grad():
            self.layer.bias += draws()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.flatten(1)) * (1 + 0.1 * draws())


class Drawing(Mine):
    """An algorithm that draws from all three global generators, at the server and at clients."""

    broadcasts = ("noise",)

    def start(self, model, sizes, seed):
        return {"noise": np.array([draws()])}

    def broadcast(self, state):
        return {"noise": state["noise"] + draws()}

    def message(self, state, client):
        return {"own": np.array([draws()])}

    def client(self, context):
        context.train()
        context.model.vector += 1e-3 * (
            draws() + float(context.received["noise"][0]) + float(context.received["own"][0])
        )

    def server(self, context):
        context.state["noise"] = np.array([draws()])
        return super().server(context) + np.float32(1e-3 * draws())
