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
from helpers.private_federations import federate_privately
from helpers.quick import QUICK

torch.set_num_threads(1)
EVERY_DAY = ("climb", "fedmix", "fedyoyo", "ratioloss", "scaffold")


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_algorithm_is_the_same_with_private_nodes(tmp_path, request, name):
    if not request.config.getoption("--nightly") and name not in EVERY_DAY:
        pytest.skip("in the nightly battery")
    config = digits(algorithm={"name": name, **QUICK.get(name, {})}, train={"participation": 0.75})
    here = run(config, out=tmp_path / "here")
    there, _ = federate_privately(config, tmp_path)
    assert_equal(there, here)
    assert here.moved > 0
    assert there.moved is None


def table(folder):
    """Write a table of numbers, a category and missing cells, with its clients."""
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
        "options": {"client": "ward", "missing": "indicate"},
    }  # fmt: skip


SERIES = {"source": "helpers.private_federations:series", "partition": {"kind": "iid", "clients": 3}}


@pytest.mark.parametrize("kind", ["table", "table by itself", "series", "held back"])
def test_every_kind_of_sample_is_the_same_with_private_nodes(tmp_path, kind):
    imbalance = {"imbalance": {"kind": "natural"}}
    data = {
        "table": lambda: table(tmp_path) | imbalance,
        "table by itself": lambda: table(tmp_path) | imbalance | {"standardize": "local"},
        "series": lambda: SERIES | imbalance,
        "held back": lambda: {"validation": 0.2},
    }[kind]()
    config = digits(data=data, train={"rounds": 3}, relabel={"start": 2})
    here = run(config, out=tmp_path / "here")
    there, _ = federate_privately(config, tmp_path)
    assert there.weights_sha256 == here.weights_sha256
    if kind != "table by itself":  # the server has no statistics of all nodes then, and scales by its own samples
        assert_equal(there, here)
    for theirs, ours in zip(there.history(), here.history(), strict=True):
        assert theirs["validation"] == ours["validation"]
        assert (theirs["validation"] is not None) == (kind == "held back")


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
