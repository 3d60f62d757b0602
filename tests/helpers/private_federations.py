"""Private nodes in this process: a configuration split into folders, each node's app with its own folder alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedrela.data.sources import Source, from_arrays
from fedrela.experiment.flower_app import private_client_app, serve
from fedrela.experiment.load import load_config
from fedrela.experiment.result import Result
from fedrela.experiment.schema import Config
from fedrela.experiment.split import split
from helpers.in_process import InProcessGrid


def private_grid(folder: Path, state: Path, **more: Any) -> tuple[Config, InProcessGrid]:
    """Return the configuration in a folder that `split` wrote, and a grid of its nodes."""
    config = load_config(folder / "config.toml")
    assert config.federation is not None
    nodes = dict(enumerate(config.federation.nodes))
    grid = InProcessGrid(dict.fromkeys(nodes, private_client_app(config)), str(state), **more)
    for context in grid.contexts.values():
        name = nodes[int(context.node_config.pop("partition-id"))]
        context.node_config["data"] = str(folder / "nodes" / name / "node.toml")
    return config, grid


def federate_privately(
    config: Config, tmp_path: Path, name: str = "private", **more: Any
) -> tuple[Result, InProcessGrid]:
    """Split a configuration and carry it out with private nodes in this process."""
    folder = tmp_path / f"{name}-split"
    split(config, folder)
    there, grid = private_grid(folder, tmp_path / f"{name}-states", **more)
    data = folder / "server" / "server.toml"
    return serve(there, grid, out=tmp_path / name, experiment="trial", patience=1.0, private=True, data=data), grid


def series() -> Source:
    """Return time series of two channels in three classes."""
    rng, y = np.random.default_rng(4), np.repeat([0, 1, 2], [90, 40, 20])
    x = (rng.normal(size=(150, 2, 7)) + y[:, None, None]).astype(np.float32)
    return from_arrays(x, y, name="series")
