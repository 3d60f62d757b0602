"""Time series: recordings of two sensors, a rare pattern, a convolutional model, FedReLa beside the baseline.

python examples/time_series.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from torch import nn

from fedrela.data.sources import Source, from_arrays
from fedrela.experiment import run

STEPS = 64
KINDS = ("walk", "run", "fall")


def load(*, samples: int = 400) -> Source:
    """Make recordings ``(n, 2, 64)``: sine waves with a frequency per kind, and noise."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(3), samples)
    frequency = np.array([2.0, 3.0, 4.0])[y] + rng.normal(0, 0.4, y.size)
    angle = 2 * np.pi * (frequency[:, None] * np.linspace(0, 1, STEPS) + rng.random((y.size, 1)))
    waves = np.stack([np.sin(angle), 5 * np.cos(angle) + 20], axis=1)
    return from_arrays(waves + rng.normal(0, 0.7, waves.shape), y, class_names=KINDS, name="recordings")


def make(input_shape: tuple[int, ...], num_classes: int, width: int = 16) -> nn.Module:
    """Return two convolutions over time, their mean, and a linear head."""
    channels = input_shape[0]
    return nn.Sequential(
        nn.Conv1d(channels, width, 7, stride=2), nn.ReLU(), nn.Conv1d(width, width, 7, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, num_classes),
    )  # fmt: skip


def config(rounds: int = 20) -> dict[str, dict]:
    """Return the configuration."""
    return {
        "data": {
            "source": load,
            "imbalance": {"kind": "step", "ratio": 10, "minority": [2]},
            "partition": {"kind": "dirichlet", "clients": 5, "alpha": 0.5},
        },
        "model": {"name": make},
        "train": {"rounds": rounds, "epochs": 2, "lr": 0.02},
        "relabel": {"tau": 0.05},
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/time-series")
    for name, enabled in (("baseline", False), ("fedrela", True)):
        table = config()
        table["relabel"]["enabled"] = enabled
        result = run(table, out=folder / name, workers=1)
        shares = ", ".join(f"{group} {share:.3f}" for group, share in result.groups.items())
        print(f"{name}: accuracy {result.accuracy['overall']:.3f} ({shares}), {result.moved} labels moved")
