"""Small federations on Flower, and what must be equal to the embedded engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedrela.experiment.flower_app import client_app, serve
from fedrela.experiment.load import parse_config
from fedrela.experiment.result import Result
from fedrela.experiment.schema import Config
from helpers.in_process import InProcessGrid

COMPARED = ("round", "accuracy", "loss", "chosen", "admitted", "excluded", "skipped", "samples", "norm_max")
DIGITS: dict[str, Any] = {
    "seed": 3,
    "data": {
        "source": "digits",
        "imbalance": {"kind": "step", "ratio": 10, "minority": [0, 1]},
        "partition": {"kind": "dirichlet", "clients": 4, "alpha": 0.5, "min_size": 5},
    },
    "model": {"name": "mlp", "hidden": [16]},
    "train": {"rounds": 4, "epochs": 1, "batch_size": 32},
    "relabel": {"start": 3, "tau": 0.3},
    "engine": {"workers": 1, "checkpoint_every": 2},
}


def digits(**tables: Any) -> Config:
    """Return the small configuration with other values for some keys of some tables."""
    return parse_config({**DIGITS, **{name: {**DIGITS.get(name, {}), **table} for name, table in tables.items()}})


def grid_of(config: Config, folder: Path, **more: Any) -> InProcessGrid:
    """Return a grid in this process with all clients of a configuration."""
    return InProcessGrid(dict.fromkeys(range(config.data.partition.clients), client_app(config)), str(folder), **more)


def federate(config: Config, tmp_path: Path, name: str = "flower", **more: Any) -> tuple[Result, InProcessGrid]:
    """Carry out a run with clients in this process."""
    grid = grid_of(config, tmp_path / "states", **more)
    return serve(config, grid, out=tmp_path / name, experiment="trial", timeout=1.0), grid


def assert_equal(there: Result, here: Result) -> None:
    """Check what "equal" means between engines."""
    assert there.weights_sha256 == here.weights_sha256
    for theirs, ours in zip(there.history(), here.history(), strict=True):
        assert {key: theirs[key] for key in COMPARED} == {key: ours[key] for key in COMPARED}
