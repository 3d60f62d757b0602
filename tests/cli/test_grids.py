"""Many runs on the screen: a bar with the time left on a terminal, and an estimate that knows its baselines."""

from __future__ import annotations

import io
import time
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from fedrela.cli.grids import run_grid, say_plan, show_grid
from fedrela.cli.pace import Pace
from fedrela.experiment.comparison import Compare
from fedrela.experiment.grid import Grid, Progress
from fedrela.experiment.load import parse_config
from helpers.small_runs import small

torch.set_num_threads(1)
BAD = {"name": "fedprox", "label": "bad", "train": {"lr": 1e30, "give_up": 1}}


def grid_of(out, **table) -> Grid:
    return Compare(parse_config(small(compare={"seeds": 1, "arms": ["baseline", "fedrela"]} | table)), out).grid


def screen(terminal=True) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, markup=False, legacy_windows=False)


def at(grid: Grid, task: int, round: int) -> Progress:
    return Progress(grid.tasks[task], SimpleNamespace(record=SimpleNamespace(round=round)))


@pytest.fixture
def clock(monkeypatch):
    """Let the tests say how late it is."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(time, "monotonic", lambda: now.seconds)
    return now


def test_the_time_left_weighs_what_a_round_of_each_baseline_took(tmp_path, clock):
    grid = grid_of(tmp_path, baselines=["fedavg", "fedprox"])  # each: three shared rounds, and two runs of three
    pace = Pace(grid)
    clock.seconds = 2.0
    assert pace.seconds_left(at(grid, 0, 1)) == 2.0 * 17  # nothing is known of the other baseline
    clock.seconds = 6.0
    assert pace.seconds_left(at(grid, 0, 2)) == 3.0 * 16
    clock.seconds = 7.0
    assert pace.seconds_left(at(grid, 3, 1)) == 1.0 * 8
    clock.seconds = 10.0
    assert pace.seconds_left(at(grid, 4, 5)) == 2.0 * 4


def test_the_time_left_is_that_of_the_present_baseline_and_of_later_ones(tmp_path, clock):
    grid = grid_of(
        tmp_path, baselines=["fedavg", "fedprox"], seeds=2
    )  # tasks: baseline, seed, then shared, baseline, fedrela
    pace = Pace(grid)
    clock.seconds = 10.0
    pace.seconds_left(at(grid, 0, 1))
    clock.seconds = 11.0
    pace.seconds_left(at(grid, 6, 1))
    clock.seconds = 21.0
    assert pace.seconds_left(at(grid, 3, 1)) == 10.0 * 8 + 1.0 * 18


def test_what_is_finished_takes_no_time(tmp_path):
    first = grid_of(tmp_path, seeds=[2])
    run_grid(screen(False), first)
    both = grid_of(tmp_path, seeds=[1, 2])
    assert both.finished() == 2
    watch = Pace(both)
    watch.seconds_left(at(both, 0, 1))
    assert watch.seconds_left(at(both, 2, 6)) == 0


def test_a_terminal_gets_one_bar_over_all_rounds(tmp_path):
    grid, out = grid_of(tmp_path), screen()
    run_grid(out, grid)
    text = out.file.getvalue()
    assert "preparing" in text
    assert "FedAvg, seed 1: fedrela" in text
    assert "0:00 left" in text
    assert "100%" in text
    assert "done to round" not in text
    assert grid.finished() == 2


def test_elsewhere_every_task_gets_a_line_when_it_is_done(tmp_path):
    grid, out = grid_of(tmp_path), screen(False)
    say_plan(out, grid)
    run_grid(out, grid, 1)
    lines = out.file.getvalue().splitlines()
    assert lines[0] == "2 runs, 9 rounds, 3 of them shared by several runs"
    assert [line.split(";")[0] for line in lines[1:4]] == [
        "FedAvg, seed 1: shared rounds, done to round 3",
        "FedAvg, seed 1: baseline, done to round 6",
        "FedAvg, seed 1: fedrela, done to round 6",
    ]
    assert lines[4].startswith("done in 0:")
    again = screen(False)
    say_plan(again, grid)
    run_grid(again, grid)
    assert again.file.getvalue().splitlines()[1:] == [f"2 of 2 runs are finished in {tmp_path} and not done again"]


def test_what_fails_is_told_when_it_fails_and_left_to_the_caller(tmp_path):
    grid, out = grid_of(tmp_path, baselines=[BAD, "fedavg"]), screen(False)
    run_grid(out, grid)
    text = out.file.getvalue()
    assert text.index("failed: fedprox-") < text.index("FedAvg, seed 1: shared rounds")
    assert len(grid.failures) == 3
    assert text.count("failed: fedprox-") == 3


@pytest.mark.parametrize("terminal", [True, False])
def test_names_are_made_inert(tmp_path, terminal):
    grid, out = grid_of(tmp_path), screen(terminal)
    object.__setattr__(grid.tasks[-1], "baseline", "[bold]\x1b[31m" + "x" * 80)
    with show_grid(out, grid) as show:
        show(at(grid, -1, 6))
    assert "[bold]\\x1b[31mxxx" in out.file.getvalue()
    assert "\x1b[31m" not in out.file.getvalue()
