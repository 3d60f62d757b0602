"""A real federation on loopback gives what the embedded engine gives."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from fedrela.experiment import Result, run
from fedrela.experiment.flower_app import export_flower
from helpers.deployment import deployed
from helpers.flower_federations import assert_equal, digits

torch.set_num_threads(1)


def three_clients(**train):
    return digits(
        data={"partition": {"kind": "dirichlet", "clients": 3, "alpha": 0.5, "min_size": 5}},
        train={"rounds": 3, **train},
        relabel={"start": 2, "tau": 0.3},
        engine={"checkpoint_every": 1},
    )


def test_a_superlink_and_three_supernodes_give_what_one_process_gives(tmp_path):
    config = three_clients()
    app = export_flower(config, tmp_path / "app")
    with deployed(app) as federation:
        federation.superlink()
        for client in range(3):
            federation.supernode(client)
        done = federation.flwr(
            "run", ".", "trial", "--stream", "--run-config", f"out='{tmp_path / 'run'}' patience=200.0"
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "run" / "result.json").exists(), done.stdout + federation.everything()
    there = Result.load(tmp_path / "run")
    assert_equal(there, run(config, out=tmp_path / "here"))
    assert there.moved is None
    assert sorted(path.name for path in tmp_path.glob("state-*/app-*/client-*")) == ["client-0", "client-1", "client-2"]
