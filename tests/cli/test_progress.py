"""Progress on a terminal and elsewhere: a bar for reading data, the rounds of a run, many runs with the time left."""

from __future__ import annotations

import io
import sys
import time
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from fedrela.cli.grid_runs import TimeLeft, print_size, run_grid, show_grid
from fedrela.cli.progress import MarkedBar, RoundsBar, RunTally, progress_bar, show_rounds
from fedrela.experiment.comparison import Compare
from fedrela.experiment.grid import Grid, Progress
from fedrela.experiment.load import parse_config
from fedrela.records import RoundRecord
from helpers.small_runs import small

torch.set_num_threads(1)
BAD = {"name": "fedprox", "label": "bad", "train": {"lr": 1e30, "give_up": 1}}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(what: str = "reading") -> None:
    with progress_bar(what) as bar:
        for done in range(0, 101, 20):
            bar.count(done, 100, "decoding [bold]\x1b[2J pictures")
        bar.count(0, None, "hashing")
        bar.count(50, None, "hashing")
        bar.count(10, 20, "hashing")


def test_on_a_terminal_it_shows_what_is_done(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    work()
    written = sys.stderr.getvalue()
    assert "hashing" in written
    assert "50%" in written, "a new stage counts from its own beginning"
    assert "\x1b[2J" not in written


def test_foreign_words_are_inert(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar("\x1b[2J[red]bad[/]") as bar:
        bar.count(1, 2, "\x1b[2J[red]bad[/]")
    assert "\\x1b[2J[red]bad[/]" in sys.stderr.getvalue()
    assert "\x1b[2J" not in sys.stderr.getvalue()


@pytest.mark.parametrize("colour", ["0", "1"])
def test_elsewhere_nothing_is_written(monkeypatch, capsys, colour):
    monkeypatch.setenv("FORCE_COLOR", colour)
    work()
    assert capsys.readouterr() == ("", "")


def test_it_ends_with_an_error_too(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(RuntimeError), progress_bar("reading"):
        raise RuntimeError
    assert sys.stderr.getvalue().endswith("\x1b[2K") or "\x1b[?25h" in sys.stderr.getvalue()


def terminal(encoding: str = "utf-8") -> Console:
    class Screen(io.StringIO):
        pass

    Screen.encoding = encoding
    return Console(file=Screen(), force_terminal=True, width=100, markup=False, color_system=None, legacy_windows=False)


def record(round: int, **more) -> RoundRecord:
    plain = {
        "accuracy": {"overall": 0.75, "groups": {"majority": 0.9, "minority": None}},
        "loss": 1.0, "chosen": [0, 1], "admitted": [0, 1], "excluded": [], "moved": 0, "relabelled": [],
        "skipped": False, "samples": [9, 9], "norm_median": 1.0, "norm_max": 1.0,
    }  # fmt: skip
    return RoundRecord(round=round, **(plain | more))


def drawn(tally: RunTally, mark: int | None = 8, encoding: str = "utf-8") -> str:
    out = terminal(encoding)
    with out.capture() as caught:
        out.print(RoundsBar(out, tally, mark))
    return caught.get()


def test_before_and_after_re_labelling():
    tally = RunTally(10)
    assert "no accuracy yet" in drawn(tally)
    tally.add(record(1))
    first = drawn(tally)
    assert "round 1/10 " in first
    assert "overall 75.0 %   majority 90.0 %   minority -" in first
    assert "re-labelling begins in round 8" in first
    assert "excluded" not in first
    tally.add(record(8, relabelled=[(0, 12), (1, 1000)]))
    assert "re-labelled from round 8 on: 1,012 labels of 2 clients moved" in drawn(tally)
    tally.add(record(9, accuracy=None, relabelled=[(1, 3)]))
    assert "overall 75.0 %" in drawn(tally), "a round that is not scored shows the last score"
    assert "15 labels of 2 clients moved" in drawn(tally), "a client that re-labels again counts once"


def test_without_re_labelling_there_is_no_mark():
    tally = RunTally(10, round=3)
    assert "┃" in drawn(tally)
    assert "┃" not in drawn(tally, None)
    assert "re-label" not in drawn(tally, None)


def test_lost_clients_are_counted_and_their_reason_is_inert():
    tally = RunTally(10)
    tally.add(record(1, excluded=[(4, "no samples")]))
    assert "excluded 1 update of 1 client, last client 4 in round 1: no samples" in drawn(tally)
    tally.add(record(2, excluded=[(4, "no samples"), (None, "ValueError: \x1b[2J[bold]" + "x" * 99)], skipped=True))
    shown = drawn(tally).replace("\n", "")
    assert "excluded 3 updates of 2 clients, last an unknown client in round 2: ValueError: \\x1b[2J[bold]xx" in shown
    assert "\x1b[2J" not in shown
    assert "xxx...; 1 round skipped" in shown


@pytest.mark.parametrize(("done", "full"), [(0, 0), (5, 20), (10, 40)])
@pytest.mark.parametrize("mark", [1, 8, 10])
def test_the_mark_lies_where_the_round_begins(done, full, mark):
    out = terminal()
    bar = RoundsBar(out, RunTally(10, round=done), mark)
    text = MarkedBar(mark, "utf-8").render(bar.tasks[0])
    assert len(text) == 40
    assert text.plain.index("┃") == 4 * (mark - 1)
    complete = sum(span.end - span.start for span in text.spans if span.style == "bar.complete")
    assert complete == full


def test_a_terminal_without_such_signs_gets_others():
    shown = drawn(RunTally(10, round=3), encoding="ascii")
    assert "-" * 28 + "|" + "-" * 11 in shown
    assert shown.isascii()


def test_the_bar_vanishes_and_shows_the_last_round():
    out, tally = terminal(), RunTally(3)
    with show_rounds(out, tally, 2) as show:
        for round in (1, 2, 3):
            tally.add(record(round))
            show()
    written = out.file.getvalue()
    assert "round 3/3" in written
    assert written.endswith(("\x1b[2K", "\x1b[?25h")) or "\x1b[?25h" in written[-60:]


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
    left = TimeLeft(grid)
    clock.seconds = 2.0
    assert left.seconds(at(grid, 0, 1)) == 2.0 * 17  # nothing is known of the other baseline
    clock.seconds = 6.0
    assert left.seconds(at(grid, 0, 2)) == 3.0 * 16
    clock.seconds = 7.0
    assert left.seconds(at(grid, 3, 1)) == 1.0 * 8
    clock.seconds = 10.0
    assert left.seconds(at(grid, 4, 5)) == 2.0 * 4


def test_the_time_left_is_that_of_the_present_baseline_and_of_later_ones(tmp_path, clock):
    grid = grid_of(
        tmp_path, baselines=["fedavg", "fedprox"], seeds=2
    )  # tasks: baseline, seed, then shared, baseline, fedrela
    left = TimeLeft(grid)
    clock.seconds = 10.0
    left.seconds(at(grid, 0, 1))
    clock.seconds = 11.0
    left.seconds(at(grid, 6, 1))
    clock.seconds = 21.0
    assert left.seconds(at(grid, 3, 1)) == 10.0 * 8 + 1.0 * 18


def test_what_is_finished_takes_no_time(tmp_path):
    first = grid_of(tmp_path, seeds=[2])
    run_grid(screen(False), first)
    both = grid_of(tmp_path, seeds=[1, 2])
    assert both.finished() == 2
    watch = TimeLeft(both)
    watch.seconds(at(both, 0, 1))
    assert watch.seconds(at(both, 2, 6)) == 0


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
    print_size(out, grid)
    run_grid(out, grid, 1)
    lines = out.file.getvalue().splitlines()
    assert lines[0] == "2 runs, 9 rounds, 3 of them shared by several runs"
    assert [line.split(";")[0] for line in lines[1:4]] == [
        "FedAvg, seed 1: shared rounds, done to round 3",
        "FedAvg, seed 1: baseline, done to round 6",
        "FedAvg, seed 1: fedrela, done to round 6",
    ]
    assert lines[4].startswith("done in ")
    again = screen(False)
    print_size(again, grid)
    run_grid(again, grid)
    assert again.file.getvalue().splitlines()[1:] == [
        f"2 of 2 runs are finished in {tmp_path} and will not be repeated"
    ]


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
    with show_grid(out, grid, "runs in one process") as show:
        show(at(grid, -1, 6))
    assert "note: runs in one process" in out.file.getvalue()
    assert "[bold]\\x1b[31mxxx" in out.file.getvalue()
    assert "\x1b[31m" not in out.file.getvalue()
