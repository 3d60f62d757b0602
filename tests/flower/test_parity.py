"""The embedded engine and the Flower adapter give the same weights, accuracies and losses in every round."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from fedrela.algorithms import ALGORITHMS
from fedrela.experiment import run
from fedrela.experiment.flower_app import export_flower
from fedrela.experiment.load import parse_config
from fedrela.experiment.result import Result
from helpers import own_parts
from helpers.flower_federations import assert_equal, digits, federate
from helpers.in_process import InProcessGrid
from helpers.quick import QUICK

torch.set_num_threads(1)
EVERY_DAY = ("climb", "creff", "fedavg", "feddyn", "fedloge", "fedmix", "fedyoyo", "moon", "scaffold")


@pytest.mark.parametrize("enabled", [True, False], ids=["fedrela", "baseline"])
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_algorithm_is_the_same_on_flower(tmp_path, request, name, enabled):
    if not request.config.getoption("--nightly") and (name not in EVERY_DAY or (not enabled and name != "fedavg")):
        pytest.skip("in the nightly battery")
    config = digits(
        algorithm={"name": name, **QUICK.get(name, {})},
        relabel={"start": 3, "tau": 0.3, "enabled": enabled},
        train={"participation": 0.75},
    )
    here = run(config, out=tmp_path / "here")
    there, _ = federate(config, tmp_path)
    assert_equal(there, here)
    assert (here.moved > 0) == enabled
    assert there.moved is None


@pytest.mark.parametrize("relabel", [{"collected": True}, {"period": 2}, {"lr_scale": 0.1, "moves": "random"}])
def test_every_way_of_re_labelling_is_the_same_on_flower(tmp_path, relabel):
    config = digits(relabel={"start": 2, "tau": 0.3, **relabel}, train={"participation": 0.75})
    there, _ = federate(config, tmp_path)
    assert_equal(there, run(config, out=tmp_path / "here"))


def test_an_exported_app_of_own_parts_is_the_same(tmp_path, monkeypatch):
    """Algorithm, model, source and re-allocator by name, with parameters; the app's own modules carry it out."""
    from flwr.app import Context, RecordDict

    config = parse_config({
        "data": {"source": own_parts.load, "options": {"samples": 80}, "partition": {"kind": "iid", "clients": 3}},
        "model": {"name": own_parts.make, "width": 5},
        "algorithm": {"name": own_parts.Mine, "share": 0.25},
        "train": {"rounds": 3, "epochs": 1},
        "relabel": {"method": own_parts.Swap, "params": {"every": 2}, "start": 2, "tau": 0.1},
    })  # fmt: skip
    here = run(config, out=tmp_path / "here", workers=1)
    assert here.moved > 0
    assert_equal(federate(config, tmp_path)[0], here)

    monkeypatch.syspath_prepend(export_flower(config, tmp_path / "app"))
    monkeypatch.chdir(tmp_path / "app")
    client, server = (import_module(f"fedrela_app.{name}") for name in ("client_app", "server_app"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "fedrela_app"]:
        monkeypatch.delitem(sys.modules, name)
    grid = InProcessGrid(dict.fromkeys(range(3), client.app), str(tmp_path / "nodes"))
    said = {"out": "runs/app", "experiment": "app", "timeout": 1.0}
    server.app(grid, Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config=said))
    assert_equal(Result.load("runs/app"), here)
