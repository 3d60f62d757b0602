"""Runs of a second and less, and what users bring of their own. Workers import this module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedrela.algorithms import Algorithm
from fedrela.algorithms.context import Arrays, ClientContext
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.options import Options, option

COLUMNS, CLASSES = 6, 4
NOT_COMPARED = {"machine.json", "timing.jsonl", "lock", "report.html"}
SMALL: dict[str, Any] = {
    "seed": 5,
    "data": {
        "source": "gaussians",
        "options": {"samples": 60, "test_samples": 20, "classes": CLASSES, "dimension": COLUMNS, "separation": 2.5},
        "imbalance": {"kind": "step", "ratio": 6, "minority": [0]},
        "partition": {"kind": "dirichlet", "clients": 5, "alpha": 1.0, "min_size": 5},
    },
    "model": {"name": "mlp", "hidden": [8]},
    "train": {"rounds": 6, "epochs": 1, "batch_size": 16},
    "relabel": {"start": 4, "tau": 0.2},
    "engine": {"workers": 1, "checkpoint_every": 2},
}


def small(**tables: Any) -> dict[str, Any]:
    """Return the small configuration with other values for some keys of some tables."""
    return {**SMALL, **{k: {**SMALL.get(k, {}), **v} if isinstance(v, Mapping) else v for k, v in tables.items()}}


def bytes_of(folder: str | Path) -> dict[str, bytes]:
    """Return every file of a run folder that must be the same for the same run."""
    files = {path.relative_to(folder).as_posix(): path for path in Path(folder).rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(files.items()) if name not in NOT_COMPARED}


def plain_module() -> nn.Module:
    """A module without a split, always with the same values."""
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(COLUMNS, 7), nn.Tanh(), nn.Linear(7, CLASSES))


class Split(nn.Module):
    """A user's module that says what its features are."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.body, self.head = nn.Linear(COLUMNS, 9), nn.Linear(9, CLASSES)

    def features(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


@dataclass(frozen=True)
class PulledParams(Options):
    strength: float = option(0.5, "how strongly weights are drawn to zero", symbol="s", ge=0)


class Pulled(Algorithm):
    """A user's algorithm: FedAvg whose clients draw their weights to zero."""

    name = "pulled"
    paper = "nobody, 2026"
    Params = PulledParams

    def client(self, context: ClientContext) -> Arrays:
        def pull(gradient: Tensor, y: Tensor) -> None:
            gradient.add_(y, alpha=self.params.strength)

        context.train(correct=pull)
        return {}


class Reversed(SerialExecutor):
    """An executor whose answers arrive in the opposite order."""

    def run(self, orders: Any, deadline: float | None = None) -> Any:
        yield from reversed(list(super().run(orders, deadline)))
