"""Private nodes in this process: a configuration split into folders, each node's app with its own folder alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedrela.data.sources import Source, from_arrays
from fedrela.engine.evaluation import own_scores
from fedrela.experiment.flower_app import STATE, private_client, private_client_app, serve
from fedrela.experiment.load import config_toml, load_config
from fedrela.experiment.private import statistics_specs
from fedrela.experiment.result import Result
from fedrela.experiment.schema import Config
from fedrela.experiment.split import split
from fedrela.flower.client_app import FlowerClient
from helpers.in_process import InProcessGrid

PLAIN = {"client", "round", "num-examples", "fingerprint", "failed", "detail"}


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


def federate_privately(config: Config, tmp_path: Path, **more: Any) -> tuple[Result, InProcessGrid]:
    """Split a configuration and carry it out with private nodes in this process."""
    folder = tmp_path / "private-split"
    split(config, folder)
    there, grid = private_grid(folder, tmp_path / "private-states", **more)
    data = folder / "server" / "server.toml"
    return serve(there, grid, out=tmp_path / "private", experiment="trial", timeout=1.0, private=True, data=data), grid


def node_of(folder: Path, name: str) -> FlowerClient:
    """Return a node as the grid of a folder had it, after a run."""
    text, file = config_toml(load_config(folder / "config.toml")), folder / "nodes" / name / "node.toml"
    return private_client(text, STATE, str(file), name="", key="")


def assert_declared(config: Config, folder: Path, grid: InProcessGrid) -> dict[str, int]:
    """Check that nothing left a node that was not declared, by name, shape and dtype; return what there was to check.

    `folder` is what `split` wrote.
    """
    assert config.federation is not None
    node = node_of(folder, config.federation.nodes[0])
    arrays, algorithm = node.runner.arrays, node.runner.plan.algorithm
    answers = [algorithm.answers(exchange.name, arrays.sizes) for exchange in algorithm.exchanges()]
    declared = {
        "train": dict(arrays.upload), "query.ask": {name: spec for each in answers for name, spec in each.items()},
        "query.score": own_scores(arrays.sizes.classes), "query.hello": {},
    }  # fmt: skip
    assert {*declared["train"]} == {*algorithm.uploads}
    seen: dict[str, int] = {}
    for reply in grid.replied:
        content, about = reply.content, reply.metadata.message_type
        found = {name: array.numpy() for record in content.array_records.values() for name, array in record.items()}
        if about == "query.statistics":
            specs = statistics_specs(config)
            assert {name: (each.shape, each.dtype.kind) for name, each in found.items()} == specs
        else:
            shapes = {name: (each.shape, each.dtype) for name, each in found.items()}
            assert shapes == {name: (spec.shape, np.dtype(spec.dtype)) for name, spec in declared[about].items()}, about
        said = [*content.config_records.values(), *content.metric_records.values()]
        assert {key for record in said for key in record} <= PLAIN
        seen[about] = seen.get(about, 0) + 1
    return seen


def table(folder: Path) -> dict[str, Any]:
    """Write a table of numbers, a category and missing cells, with its clients; return the table [data] for it."""
    rng, rows = np.random.default_rng(5), ["age,sex,dose,ward,label"]
    for i in range(240):
        label = int(rng.random() < 0.25)
        dose = "" if i % 17 == 0 else f"{rng.normal(label):.3f}"
        rows.append(
            f"{rng.normal(50, 9):.2f},{'fmx'[rng.integers(3)]},{dose},{['north', 'east', 'south'][i % 3]},{label}"
        )
    (folder / "wards.csv").write_text("\n".join(rows))
    return {
        "source": "csv", "root": str(folder / "wards.csv"), "partition": {"kind": "natural"},
        "options": {"client": "ward", "missing": "indicate"}, "imbalance": {"kind": "natural"},
    }  # fmt: skip


def series() -> Source:
    """Return time series of two channels in three classes."""
    rng, y = np.random.default_rng(4), np.repeat([0, 1, 2], [90, 40, 20])
    x = (rng.normal(size=(150, 2, 7)) + y[:, None, None]).astype(np.float32)
    return from_arrays(x, y, name="series")
