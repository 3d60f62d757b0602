"""Logistic regressions that the engine trains on two Gaussians, and where their decisions change."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedrela.data.sources import Source, from_arrays, load
from fedrela.experiment import run
from fedrela.theory import Clients, TwoGaussians

GAUSSIANS = TwoGaussians(2.0)
Rho = Callable[[np.ndarray, int], np.ndarray]
GRID = np.linspace(-8.0, 8.0, 160_001)
CONFIG: dict[str, Any] = {
    "seed": 1,
    "data": {"standardize": "none", "partition": {"kind": "natural"}},
    "model": {"name": "logistic", "dtype": "float64"},
    "train": {
        "rounds": 1, "epochs": 200, "batch_size": 1_000_000, "lr": 2.0, "momentum": 0.9, "weight_decay": 0.0,
        "evaluate_every": 1_000, "norm_limit": 0.0,
    },
    "relabel": {"enabled": False},
    "engine": {"workers": 1},
}  # fmt: skip


class LogisticClients:
    """A federation on the source `gaussians`, class 0 (l) around -1 and class 1 (j) around 1.

    Parameters
    ----------
    counts
        Samples of class j and of class l per client.
    """

    def __init__(self, counts: Sequence[tuple[int, int]]) -> None:
        self.clients = Clients.of(counts)
        rare, common = zip(*counts, strict=True)
        drawn = load("gaussians", samples=[sum(common), sum(rare)], dimension=1, separation=GAUSSIANS.distance, seed=3)
        self.x, self.labels = drawn.x_train, drawn.y_train
        order = np.arange(len(counts))
        self.ids = np.concatenate(
            [np.repeat(order, common), np.repeat(order, rare)]
        )  # samples are drawn class by class

    def eta(self, k: int) -> np.ndarray:
        """Return the local posterior of class j for the samples of a client."""
        minor, major = self.clients.minority[k], self.clients.majority[k]
        joint = minor * GAUSSIANS.ratio(self.x[self.ids == k, 0])
        return joint / (joint + major)

    def relabelled(self, rho: Rho, back: Rho = lambda eta, k: np.zeros_like(eta)) -> np.ndarray:
        """Return labels that changed from l to j with probability rho(eta, client), and back with back(eta, client)."""
        labels, rng = self.labels.copy(), np.random.default_rng(0)
        for k in range(len(self.clients.weights)):
            mine = np.flatnonzero(self.ids == k)
            chance = np.where(labels[mine] == 0, rho(self.eta(k), k), back(self.eta(k), k))
            labels[mine] ^= rng.random(mine.size) < chance
        return labels

    def source(self, labels: np.ndarray, chosen: np.ndarray) -> Source:
        test = np.array([[-1.0], [1.0]], np.float32)
        return from_arrays(
            self.x[chosen], labels[chosen], test, [0, 1], class_names=["l", "j"], client_ids=self.ids[chosen]
        )

    def train(self, labels: np.ndarray, client: int | None = None, **tables: Any) -> np.ndarray:
        """Run the engine with all clients, or one alone, and return slope and intercept of the log odds of class j."""
        chosen = np.full(self.ids.shape, True) if client is None else self.ids == client
        config = {**CONFIG, "train": {**CONFIG["train"], **tables.pop("train", {})}, **tables}
        with tempfile.TemporaryDirectory() as folder:
            weights = run(config, out=f"{folder}/run", source=self.source(labels, chosen)).weights()
        slopes, intercepts = (np.asarray(array).reshape(-1) for array in weights.values())
        return np.array([slopes[1] - slopes[0], intercepts[1] - intercepts[0]])

    def train_alone(self, labels: np.ndarray) -> np.ndarray:
        """Return slope and intercept of every client that trains by itself, (K, 2)."""
        return np.array([self.train(labels, k) for k in range(len(self.clients.weights))])


def threshold(parameters: np.ndarray) -> float:
    """Return the likelihood ratio where one model's decision changes."""
    slope, intercept = parameters
    return float(GAUSSIANS.ratio(-intercept / slope))


def posteriors(parameters: np.ndarray) -> np.ndarray:
    """Return the posteriors of class j of several models on the grid, (K, n)."""
    return 1 / (1 + np.exp(-(parameters[:, :1] * GRID + parameters[:, 1:])))


def aggregated_threshold(parameters: np.ndarray, weights: np.ndarray) -> float:
    """Return the likelihood ratio where the weighted average of the models' posteriors reaches 1/2."""
    return float(GAUSSIANS.ratio(GRID[int(np.argmax(weights @ posteriors(parameters) > 0.5))]))
