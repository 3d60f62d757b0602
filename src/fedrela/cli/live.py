"""How a run looks while it goes on: a bar and its figures on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.progress import Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from fedrela.cli.show import inert, say

if TYPE_CHECKING:
    from fedrela.experiment.summary import Standing

BAR_WIDTH = 40
IN_BETWEEN = 10  # plain lines beside those of the first, the last and the marked round
LONGEST_REASON = 60  # characters
ALL_ROUNDS = 1e9  # seconds: the time left follows from every round so far, however long one takes


def is_live(out: Console) -> bool:
    """Whether lines can be written anew."""
    return out.is_terminal and not out.is_dumb_terminal


@contextlib.contextmanager
def show_rounds(out: Console, standing: Standing, mark: int | None) -> Iterator[Callable[[], None]]:
    """Give what to call after each round that `standing` took in.

    Parameters
    ----------
    out
        Where to show it.
    standing
        How the run stands.
    mark
        The first round of re-labelling, or None.
    """
    if is_live(out):
        with RoundsBar(out, standing, mark) as bar:
            yield bar.advance_to_standing
    else:
        yield PlainRounds(out, standing, mark).write


class PlainRounds:
    """A line for the first round, the marked one, the last one, and about ten in between."""

    def __init__(self, out: Console, standing: Standing, mark: int | None) -> None:
        self._out, self._standing = out, standing
        self._before, self._began = standing.round, time.monotonic()
        step = max(1, round(standing.rounds / (IN_BETWEEN + 1)))
        regular = range(step, standing.rounds - step // 2, step)  # the last of them not next to the last round
        self._shown = {1, standing.round + 1, *regular, mark, standing.rounds}

    def write(self) -> None:
        """Write the line of the round just done, where it has one."""
        now = self._standing
        if now.round in self._shown:
            left = f"left {clock(self._seconds_left())}"
            parts = [
                f"round {now.round}/{now.rounds}",
                *_accuracies(now),
                f"moved {now.moved}" if now.told else "",
                left,
                lost_clients(now),
            ]
            say(self._out, "  ".join(filter(None, parts)))

    def _seconds_left(self) -> float:
        now = self._standing
        return (time.monotonic() - self._began) / (now.round - self._before) * (now.rounds - now.round)


class RoundsBar(Progress):
    """A bar over all rounds with a mark where re-labelling begins, and below it how the run stands."""

    def __init__(self, out: Console, standing: Standing, mark: int | None) -> None:
        self._standing, self._mark = standing, mark
        super().__init__(
            TextColumn("round {task.completed:.0f}/{task.total:.0f}"),
            MarkedBar(mark, out.encoding),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=out,
            refresh_per_second=4,
            transient=True,
            speed_estimate_period=ALL_ROUNDS,
        )
        self._task = self.add_task("", total=standing.rounds, completed=standing.round)

    def advance_to_standing(self) -> None:
        """Show the round just done."""
        self.update(self._task, completed=self._standing.round)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bar and the lines below it."""
        yield self.make_tasks_table(self.tasks)
        yield from map(Text, self._lines())

    def _lines(self) -> Iterator[str]:
        now = self._standing
        yield "   ".join(_accuracies(now)) or "no accuracy yet"
        if now.relabelled:
            clients = many(len(now.relabelled), "client")
            yield f"re-labelled from round {self._mark} on: {many(now.moved, 'label')} of {clients} moved"
        elif self._mark is not None:
            yield f"re-labelling begins at round {self._mark}"
        yield from filter(None, [lost_clients(now)])


class MarkedBar(ProgressColumn):
    """A bar with a mark at one round."""

    def __init__(self, mark: int | None, encoding: str) -> None:
        self._mark = mark
        self._line, self._stroke = ("━", "┃") if encoding.startswith("utf") else ("-", "|")
        super().__init__()

    def render(self, task: Task) -> Text:
        """Return the bar of a task."""
        rounds = task.total or 1
        full, signs = int(BAR_WIDTH * task.completed / rounds), [self._line] * BAR_WIDTH
        at = None if self._mark is None else int(BAR_WIDTH * (self._mark - 1) / rounds)
        if at is not None:
            signs[at] = self._stroke
        bar = Text("".join(signs))
        bar.stylize("bar.complete", 0, full)
        bar.stylize("bar.back", full)
        if at is not None:
            bar.stylize("bold yellow", at, at + 1)
        return bar


def clock(seconds: float) -> str:
    """Return a duration as people write it.

    >>> clock(75), clock(4000)
    ('1:15', '1:06:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def percent(share: float | None) -> str:
    """Return a share in per cent, or a dash where there is none.

    >>> percent(0.8764), percent(None)
    ('87.6 %', '-')
    """
    return "-" if share is None else f"{100 * share:.1f} %"


def many(number: int, thing: str) -> str:
    """Return a number of things.

    >>> many(1, "client"), many(1200, "client")
    ('1 client', '1,200 clients')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def lost_clients(standing: Standing) -> str:
    """Return how many clients' turns did not count and why the last one did not; empty where all did."""
    last = standing.last_loss
    if last is None:
        return ""
    turns, clients = many(standing.turns_lost, "turn"), many(len(standing.lost), "client")
    skipped = f"; {many(standing.skipped, 'round')} skipped" if standing.skipped else ""
    who = "an unknown client" if last.client is None else f"client {last.client}"
    why = f"{who} in round {last.round}: {inert(last.reason, LONGEST_REASON)}"
    return f"lost {turns} of {clients}, last {why}{skipped}"


def _accuracies(standing: Standing) -> list[str]:
    if standing.accuracy is None:
        return []
    shares = {"overall": standing.accuracy["overall"], **standing.accuracy["groups"]}
    return [f"{name} {percent(share)}" for name, share in shares.items()]
