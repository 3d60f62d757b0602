"""Flower's own simulator, with its real processes, gives what the embedded engine gives."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")
pytest.importorskip("ray", reason="the extra flower-sim is not installed")

from fedrela.errors import ArgumentError
from fedrela.experiment import Result, resume, run
from fedrela.experiment.flower_app import serve
from fedrela.experiment.load import config_toml
from helpers.flower_federations import assert_equal, digits, federate, grid_of
from helpers.in_process import StoppingGrid

torch.set_num_threads(1)


def test_a_run_on_the_simulator_equals_the_embedded_one(run_cli, tmp_path):
    config = digits(algorithm={"name": "scaffold"}, relabel={"start": 2, "tau": 0.3})
    path = tmp_path / "small.toml"
    path.write_text(config_toml(config))
    done = run_cli("run", path, "--engine", "flower", "--out", tmp_path / "there")
    assert done.returncode == 0, done.stderr
    assert "labels moved  unknown" in done.stdout
    assert_equal(Result.load(tmp_path / "there"), run(config, out=tmp_path / "here"))
    page = (tmp_path / "there" / "report.html").read_text()
    assert "known only to the clients" in page
    assert "already done" in run_cli("resume", tmp_path / "there").stdout


def test_a_run_on_flower_is_not_resumed_without_it(tmp_path):
    config = digits(engine={"checkpoint_every": 1})

    grid = StoppingGrid(grid_of(config, tmp_path).apps, str(tmp_path / "states"))
    with pytest.raises(KeyboardInterrupt):
        serve(config, grid, out=tmp_path / "run", experiment="trial", timeout=1.0)
    with pytest.raises(ArgumentError, match="its clients run on a Flower grid"), resume(tmp_path / "run"):
        pass
    federate(config, tmp_path, "run")
    assert_equal(Result.load(tmp_path / "run"), run(config, out=tmp_path / "here"))
