"""The embedded engine and the Flower adapter give the same weights, accuracies and losses in every round."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from fedrela.algorithms import ALGORITHMS
from fedrela.experiment import run
from helpers.flower_federations import assert_equal, digits, federate
from helpers.quick import QUICK

torch.set_num_threads(1)
EVERY_DAY = ("climb", "creff", "fedavg", "feddyn", "fedloge", "fedmix", "fedyoyo", "moon", "scaffold")


@pytest.mark.parametrize("enabled", [True, False], ids=["fedrela", "host"])
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
