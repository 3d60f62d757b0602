"""A real federation of private nodes on loopback gives what a simulation of the same configuration gives."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from fedrela.experiment import Result, run
from fedrela.experiment.flower_app import export_flower
from fedrela.experiment.load import load_config
from fedrela.experiment.split import split
from helpers.deployment import deployed
from helpers.flower_federations import assert_equal, digits

torch.set_num_threads(1)


def three_clients(**train):
    return digits(
        data={"partition": {"kind": "dirichlet", "clients": 3, "alpha": 0.5, "min_size": 5}},
        train={"rounds": 2, **train},
        relabel={"start": 2, "tau": 0.3},
        engine={"checkpoint_every": 1},
    )


def test_a_superlink_and_three_private_supernodes_give_what_one_process_gives(tmp_path):
    config = three_clients()
    parts = tmp_path / "parts"
    names = split(config, parts)
    app = export_flower(load_config(parts / "config.toml"), tmp_path / "app", private=True)
    homes = {name: parts / "nodes" / name for name in names}
    with deployed(app) as federation:
        federation.superlink()
        for name, home in homes.items():
            federation.private_supernode(name, home, hide=[parts / "server", *(set(homes.values()) - {home})])
        said = f"out='{tmp_path / 'run'}' data='{parts / 'server' / 'server.toml'}' timeout=200.0"
        done = federation.flwr("run", ".", "trial", "--stream", "--run-config", said)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "run" / "result.json").exists(), done.stdout + federation.everything()
    there = Result.load(tmp_path / "run")
    assert_equal(there, run(config, out=tmp_path / "here"))
    assert there.moved is None
    kept = sorted(path.name for home in homes.values() for path in (home / "state").glob("app-*/client-*"))
    assert kept == ["client-0", "client-1", "client-2"]
