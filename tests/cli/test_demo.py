"""The demonstration: the effect is there by a margin, what is finished stays, and an interruption says how to go on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from experiment.small_runs import small
from fedrela.cli.demo import ARMS
from fedrela.experiment import demo
from fedrela.experiment.arms import MATCHED
from fedrela.experiment.result import Result

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def table(text: str) -> dict[str, list[float]]:
    """Return minority, majority and overall accuracy of each arm."""
    found = {arm: re.search(rf"^{words}  .*$", text, re.M)[0] for arm, words in ARMS.items()}
    return {arm: [float(number) for number in re.findall(r" (\d+\.\d)\b", line)] for arm, line in found.items()}


def test_re_labelling_helps_the_rare_digits(run):
    done = run("demo", "--seeds", "1")
    assert (done.code, done.err) == (0, "")
    shown = table(done.out)
    assert tuple(ARMS) == MATCHED
    results = {arm: Result.load(Path("runs/demo/seed-1") / arm) for arm in MATCHED}
    for arm, result in results.items():
        shares = [result.groups["minority"], result.groups["majority"], result.accuracy["overall"]]
        assert shown[arm] == [round(100 * share, 1) for share in shares]
    minority = {arm: numbers[0] for arm, numbers in shown.items()}
    assert minority["fedrela"] > minority["host"] + 5
    assert minority["fedrela-drop"] > minority["host-drop"] + 10
    assert all(numbers[1] > 90 for numbers in shown.values())
    assert results["fedrela"].moved > 50
    assert f"{minority['fedrela'] - minority['host']:+.1f} points" in done.out
    assert "mean over 1 seed\n" in done.out
    assert "seed 1 of 1: rounds that all arms share, done to round 47\n" in done.out
    assert "\nrun folders  runs/demo, one a seed and arm\n" in done.out
    again = run("demo", "--seeds", "1")
    assert "4 of 4 runs are finished in runs/demo and not done again\n" in again.out
    assert table(again.out) == shown
    assert "done to round" not in again.out


@pytest.fixture
def quick(monkeypatch):
    """Let the demonstration run a small configuration."""
    monkeypatch.setattr(demo, "CONFIG", small())
    monkeypatch.setattr("fedrela.engine.cores.usable_cores", lambda: 1)
    monkeypatch.setattr("fedrela.experiment.crew.usable_cores", lambda: 1)


@pytest.mark.usefixtures("quick")
def test_seeds_have_a_spread_and_more_can_be_added(run):
    assert run("demo", "--out", "d", "--seeds", "2").code == 0
    done = run("demo", "--out", "d", "--seeds", "3")
    assert "8 of 12 runs are finished in d and not done again" in done.out
    assert "mean over 3 seeds (standard deviation)" in done.out
    cells = re.findall(r"\d+\.\d \(\d+\.\d\)", done.out)
    assert len(cells) == 3 * len(ARMS)
    assert "seed 2 of 3" not in done.out
    assert "seed 3 of 3: FedReLa, done to round 6" in done.out


@pytest.mark.usefixtures("quick")
def test_interrupted_it_goes_on_where_it_stopped(run, monkeypatch):
    real = demo.Demo.position

    def stop(self, progress):
        if progress.arm == "fedrela":
            raise KeyboardInterrupt
        return real(self, progress)

    monkeypatch.setattr(demo.Demo, "position", stop)
    done = run("demo", "--out", "d", "--seeds", "1")
    assert done.code == 130
    assert done.err.splitlines()[0] == (
        "fedrela: d: what is finished stays; the same command goes on where this one stopped"
    )
    monkeypatch.setattr(demo.Demo, "position", real)
    again = run("demo", "--out", "d", "--seeds", "1")
    assert again.code == 0
    assert "2 of 4 runs are finished in d" in again.out


@pytest.mark.usefixtures("quick")
def test_runs_of_something_else_are_left_alone(run, monkeypatch):
    assert run("demo", "--out", "d", "--seeds", "1").code == 0
    monkeypatch.setattr(demo, "CONFIG", small(train={"rounds": 5}))
    done = run("demo", "--out", "d", "--seeds", "1")
    assert done.code == 2
    assert done.err.startswith("fedrela: d/seed-1/host: a run of another configuration is here; choose another folder")


def test_help_teaches(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = run("demo", "--help").out
    assert [word for word in ("Example", "--seeds", "--out", "60 rounds", "not done again") if word not in shown] == []
    assert run("demo", "--seeds", "0").code == 2
