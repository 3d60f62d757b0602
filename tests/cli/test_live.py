"""The display of a run: what a terminal shows, and that foreign text stays inert."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fedrela.cli.live import MarkedBar, RoundsBar, show_rounds
from fedrela.experiment.summary import Standing
from fedrela.records import RoundRecord


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


def drawn(standing: Standing, mark: int | None = 8, encoding: str = "utf-8") -> str:
    out = terminal(encoding)
    with out.capture() as caught:
        out.print(RoundsBar(out, standing, mark))
    return caught.get()


def test_before_and_after_re_labelling():
    standing = Standing(10)
    assert "no accuracy yet" in drawn(standing)
    standing.add(record(1))
    first = drawn(standing)
    assert "round 1/10 " in first
    assert "overall 75.0 %   majority 90.0 %   minority -" in first
    assert "re-labelling begins at round 8" in first
    assert "lost" not in first
    standing.add(record(8, relabelled=[(0, 12), (1, 1000)]))
    assert "re-labelled from round 8 on: 1,012 labels of 2 clients moved" in drawn(standing)
    standing.add(record(9, accuracy=None, relabelled=[(1, 3)]))
    assert "overall 75.0 %" in drawn(standing), "a round that is not scored shows the last score"
    assert "15 labels of 2 clients moved" in drawn(standing), "a client that re-labels again counts once"


def test_without_re_labelling_there_is_no_mark():
    standing = Standing(10, round=3)
    assert "┃" in drawn(standing)
    assert "┃" not in drawn(standing, None)
    assert "re-label" not in drawn(standing, None)


def test_lost_clients_are_counted_and_their_reason_is_inert():
    standing = Standing(10)
    standing.add(record(1, excluded=[(4, "no samples")]))
    assert "lost 1 turn of 1 client, last client 4 in round 1: no samples" in drawn(standing)
    standing.add(record(2, excluded=[(4, "no samples"), (None, "ValueError: \x1b[2J[bold]" + "x" * 99)], skipped=True))
    shown = drawn(standing).replace("\n", "")
    assert "lost 3 turns of 2 clients, last an unknown client in round 2: ValueError: \\x1b[2J[bold]xx" in shown
    assert "\x1b[2J" not in shown
    assert "xxx...; 1 round skipped" in shown


@pytest.mark.parametrize(("done", "full"), [(0, 0), (5, 20), (10, 40)])
@pytest.mark.parametrize("mark", [1, 8, 10])
def test_the_mark_lies_where_the_round_begins(done, full, mark):
    out = terminal()
    bar = RoundsBar(out, Standing(10, round=done), mark)
    text = MarkedBar(mark, "utf-8").render(bar.tasks[0])
    assert len(text) == 40
    assert text.plain.index("┃") == 4 * (mark - 1)
    complete = sum(span.end - span.start for span in text.spans if span.style == "bar.complete")
    assert complete == full


def test_a_terminal_without_such_signs_gets_others():
    shown = drawn(Standing(10, round=3), encoding="ascii")
    assert "-" * 28 + "|" + "-" * 11 in shown
    assert shown.isascii()


def test_the_bar_vanishes_and_shows_the_last_round():
    out, standing = terminal(), Standing(3)
    with show_rounds(out, standing, 2) as show:
        for round in (1, 2, 3):
            standing.add(record(round))
            show()
    written = out.file.getvalue()
    assert "round 3/3" in written
    assert written.endswith(("\x1b[2K", "\x1b[?25h")) or "\x1b[?25h" in written[-60:]
