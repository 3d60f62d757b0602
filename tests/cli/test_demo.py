"""The demonstration: the effect is there by a margin, what is finished stays, and old folders are left alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from fedrela.arms import MATCHED
from fedrela.experiment import comparison
from fedrela.experiment.comparison import Comparison
from helpers.small_runs import small

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("in_tmp_path")


def test_re_labelling_helps_the_rare_digits(run):
    done = run("demo", "--seeds", "1")
    assert (done.code, done.err) == (0, "")
    arms = Comparison.load("runs/demo").record["baselines"][0]["arms"]
    assert tuple(arms) == MATCHED
    minority = {arm: 100 * figures["minority"]["mean"] for arm, figures in arms.items()}
    assert minority["fedrela"] > minority["baseline"] + 5
    assert minority["fedrela-drop"] > minority["baseline-drop"] + 10
    assert all(figures["majority"]["mean"] > 0.9 for figures in arms.values())
    assert arms["fedrela"]["moved"]["mean"] > 50
    gain = f"{minority['fedrela'] - minority['baseline']:+.1f}"
    assert f"{minority['baseline']:.1f} ({minority['fedrela']:.1f}) {gain}" in done.out
    assert f"minority {gain} points; " in done.out
    assert "one seed cannot tell this from noise" in done.out
    assert "4 runs, 99 rounds, 47 of them shared by several runs\n" in done.out
    assert "report  runs/demo/report.html\n" in done.out
    assert [line for line in done.out.splitlines() if line.startswith("next")] == done.out.splitlines()[-3:]
    again = run("demo", "--seeds", "1")
    assert "4 of 4 runs are finished in runs/demo and will not be repeated\n" in again.out
    assert again.out.splitlines()[-12:] == done.out.splitlines()[-12:]
    assert "done to round" not in again.out


@pytest.fixture
def quick(monkeypatch):
    """Let the demonstration run a small configuration."""
    monkeypatch.setattr(comparison, "DEMO", small())


@pytest.mark.usefixtures("quick")
def test_seeds_have_a_spread_and_more_can_be_added(run):
    assert run("demo", "--out", "d", "--seeds", "1").code == 0
    done = run("demo", "--out", "d", "--seeds", "2")
    assert "4 of 8 runs are finished in d and will not be repeated" in done.out
    assert "mean ± standard deviation over 2 seeds" in done.out
    assert "FedAvg, seed 1" not in done.out
    assert "FedAvg, seed 2: fedrela, done to round 6" in done.out


@pytest.mark.usefixtures("quick")
def test_runs_of_a_former_layout_are_left_alone(run):
    Path("runs/demo/seed-1/baseline").mkdir(parents=True)
    done = run("demo")
    assert done.code == 2
    assert done.err == "fedrela: runs/demo: contains other files; choose a new or an empty folder\n"


def test_help_teaches(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = run("demo", "--help").out
    assert [word for word in ("Example", "--seeds", "--out", "60 rounds", "not repeated") if word not in shown] == []
    assert run("demo", "--seeds", "0").code == 2


def test_the_table_of_the_readme_is_what_the_demo_prints(run, request):
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery")
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    promised = re.findall(r"^\| Fed\w+(?:, learning rate / 10)? \| (\d.*) \|$", readme, re.M)
    shown = re.findall(r"^FedAvg +(?:baseline|FedReLa)(?:, lr / 10)? +(\d[\d.]* ± .*)$", run("demo").out, re.M)
    assert len(promised) == 4
    numbers = [[float(number) for number in re.findall(r"[\d.]+", row)] for row in (*promised, *shown)]
    for row, other in zip(numbers[:4], numbers[4:], strict=True):
        assert row == pytest.approx(other, abs=0.5), "processors may round differently, by no more than this"
