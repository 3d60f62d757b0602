"""A federation of private nodes gives the weights and accuracies of a simulation of the same configuration."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from fedrela.algorithms import ALGORITHMS
from fedrela.experiment import run
from fedrela.experiment.build import build_data
from fedrela.experiment.load import load_config
from fedrela.experiment.split import split
from helpers.flower_federations import assert_equal, digits
from helpers.private_federations import assert_declared, federate_privately, table
from helpers.quick import QUICK

torch.set_num_threads(1)
EVERY_DAY = ("climb", "fedmix", "fedyoyo", "ratioloss", "scaffold")


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_algorithm_is_the_same_with_private_nodes(tmp_path, request, name):
    if not request.config.getoption("--nightly") and name not in EVERY_DAY:
        pytest.skip("in the nightly battery")
    algorithm = {"name": name, **QUICK.get(name, {})}
    config = digits(algorithm=algorithm, data={"validation": 0.2}, train={"participation": 0.75})
    here = run(config, out=tmp_path / "here")
    there, grid = federate_privately(config, tmp_path)
    assert_equal(there, here)
    assert [each["validation"] for each in there.history()] == [each["validation"] for each in here.history()]
    assert here.moved > 0
    assert there.moved is None
    split = tmp_path / "private-split"
    seen = assert_declared(load_config(split / "config.toml"), split, grid)
    assert (seen["train"], seen["query.score"], seen["query.statistics"]) == (12, 20, 4)
    assert seen.get("query.ask", 0) == len([message for message in grid.sent if "ask" in message.metadata.message_type])


SERIES = {
    "source": "helpers.private_federations:series", "partition": {"kind": "iid", "clients": 3},
    "imbalance": {"kind": "natural"},
}  # fmt: skip


CONSTANTS = {"scaling": {"mean": [0.3], "std": [0.4]}}


@pytest.mark.parametrize("kind", ["table", "table by itself", "series", "images by constants"])
def test_every_kind_of_sample_is_the_same_with_private_nodes(tmp_path, kind):
    data = {
        "table": lambda: table(tmp_path),
        "table by itself": lambda: table(tmp_path) | {"standardize": "local"},
        "series": lambda: SERIES,
        "images by constants": lambda: CONSTANTS,
    }[kind]()
    config = digits(data=data, train={"rounds": 3}, relabel={"start": 2})
    here = run(config, out=tmp_path / "here")
    there, grid = federate_privately(config, tmp_path)
    assert there.weights_sha256 == here.weights_sha256
    asked = [message for message in grid.sent if message.metadata.message_type == "query.statistics"]
    assert len(asked) == (3 if kind == "table" else 0)  # constants and nodes by themselves: nothing is told
    if kind != "table by itself":  # the server has no statistics of all nodes then, and scales by its own samples
        assert_equal(there, here)


def test_a_folder_of_a_node_holds_its_samples_alone(tmp_path):
    config = digits()
    names = split(config, tmp_path / "parts")
    federation = build_data(config)
    assert names == ["node-00", "node-01", "node-02", "node-03"]
    for name, shard in zip(names, federation.shards, strict=True):
        folder = tmp_path / "parts" / "nodes" / name
        assert sorted(path.name for path in folder.iterdir()) == ["node.toml", "samples.npz"]
        assert folder.stat().st_mode & 0o077 == 0
        with np.load(folder / "samples.npz") as arrays:
            assert np.array_equal(arrays["x_train"], federation.x_train[shard.train])
            assert np.array_equal(arrays["y_train"], federation.y_train[shard.train])
            assert len(arrays["x_test"]) == 0
    again = load_config(tmp_path / "parts" / "config.toml")
    assert again.federation.groups == {"majority": tuple("23456789"), "minority": ("0", "1")}
    assert run(again, out=tmp_path / "again").weights_sha256 == run(config, out=tmp_path / "here").weights_sha256
