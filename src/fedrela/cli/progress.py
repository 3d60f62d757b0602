"""Progress while fedrela works: a bar for reading data, and the rounds of one run."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from fedrela.cli.terminal import column_kinds, print_line
from fedrela.records import RoundRecord, lost_updates
from fedrela.text import clock, percent, plural, printable

if TYPE_CHECKING:
    from fedrela.experiment.recorded_run import RecordedRun
    from fedrela.report.tensorboard import TensorBoardLog
    from fedrela.report.trackers import MLflowLog, WandbLog

    Log = TensorBoardLog | MLflowLog | WandbLog

LONGEST_STAGE = 40  # characters of what is being read
BAR_WIDTH = 40
PLAIN_LINES = 10  # without a terminal, besides the lines of the first, the last and the first re-labelling round
ALL_ROUNDS = 1e9  # seconds: estimate the time left from every round so far, however long one takes


class StageBar:
    """A bar that restarts with every stage of the work."""

    def __init__(self, progress: Progress, stage: str) -> None:
        self._progress, self._stage, self._done = progress, stage, 0
        self._task = progress.add_task(printable(stage, LONGEST_STAGE), total=None)

    def count(self, done: int, total: int | None, stage: str) -> None:
        """Show how much of a stage is done: the callback of data sources and downloads."""
        if stage != self._stage or done < self._done:
            self._progress.reset(self._task, description=printable(stage, LONGEST_STAGE))
        self._progress.update(self._task, completed=done, total=total)
        self._stage, self._done = stage, done


@contextlib.contextmanager
def progress_bar(stage: str) -> Iterator[StageBar]:
    """Give a bar on standard error that disappears at the end; without a terminal nothing is written."""
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, markup=False, emoji=False, highlight=False),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with progress:
        yield StageBar(progress, stage)


def can_redraw(out: Console) -> bool:
    """Whether lines can be redrawn in place."""
    return out.is_terminal and not out.is_dumb_terminal


def open_logs(tensorboard: Path | None, mlflow: str | None, wandb: Path | None, name: str) -> list[Log]:
    """Return the requested logs; one that cannot be written fails here, before a run begins."""
    logs: list[Log] = []
    if tensorboard is not None:
        from fedrela.report.tensorboard import TensorBoardLog

        logs.append(TensorBoardLog(tensorboard))
    if mlflow is not None or wandb is not None:
        from fedrela.report.trackers import open_trackers

        logs += open_trackers(mlflow, wandb, name)
    return logs


@dataclass
class RunTally:
    """The state of a run of `rounds` rounds after the rounds added so far."""

    rounds: int
    round: int = 0  # the last one that is done
    accuracy: Mapping[str, Any] | None = None
    reported: bool = True  # whether clients report how many labels they moved
    relabelled: dict[int, int] = field(default_factory=dict)  # client -> labels that it changed
    lost: list[tuple[int, int | None, str]] = field(default_factory=list)  # round, client and reason of each exclusion
    skipped: int = 0

    def add(self, record: RoundRecord) -> None:
        """Add the next round."""
        self.round = record.round
        self.accuracy = record.accuracy or self.accuracy
        self.reported = record.moved is not None
        self.relabelled.update((client, number) for client, number in record.relabelled)
        self.lost += [(record.round, client, reason) for client, reason in record.excluded]
        self.skipped += record.skipped

    @property
    def moved(self) -> int:
        """Labels that were changed, over all clients."""
        return sum(self.relabelled.values())


class RunProgress(contextlib.ExitStack):
    """Shows a run on the screen and in its logs; call it before the first round, and after each round."""

    def __init__(self, screen: Console, logs: Sequence[Log]) -> None:
        super().__init__()
        self._screen, self._logs = screen, logs
        self._tally: RunTally | None = None
        self._show: Callable[[], None] = lambda: None

    def __call__(self, recorded: RecordedRun, done: RoundRecord | None) -> None:
        """Show the start, or a round."""
        if done is None or self._tally is None:
            self._start(recorded)
            return
        self._tally.add(done)
        self._show()
        for log in self._logs:
            log.add_round(done.as_record())

    def finish(self, folder: Path, rounds: int) -> None:
        """Say which clients were lost, and end the logs; TensorBoard gets the plots of the finished run."""
        if self._tally is not None and (lost := lost_updates(self._tally.lost, self._tally.skipped)):
            print_line(self._screen, lost, "yellow")
        for log in self._logs:
            log.close(folder, rounds)

    def _start(self, recorded: RecordedRun) -> None:
        for line in _setting(recorded):
            print_line(self._screen, printable(line))
        plan = recorded.run.plan
        self._tally = RunTally(plan.train.rounds)
        for record in recorded.folder.rounds():
            self._tally.add(RoundRecord.from_record(record))
        first = plan.relabel.schedule.first(plan.train.rounds) if plan.relabel.enabled else None
        self._show = self.enter_context(show_rounds(self._screen, self._tally, first))


def _setting(recorded: RecordedRun) -> Iterator[str]:
    """Yield lines that say where a run takes place, and with how many workers."""
    run, done = recorded.run, recorded.run.state.round
    who = "clients on Flower" if run.executor.remote_clients else plural(run.executor.size, "worker")
    yield f"run folder {recorded.folder.path}; {who}" + (f"; continues after round {done}" if done else "")
    if recorded.note:
        yield f"note: a newer checkpoint cannot be used: {recorded.note}"
    data = recorded.folder.manifest["data"]
    if data["feature_names"]:
        yield column_kinds(data["feature_names"], data["encoded"])
    if run.note:
        yield f"note: {run.note}"
    relabel, classes = run.plan.relabel, run.problem.num_classes
    if relabel.enabled and relabel.max_fraction == 1 and classes * relabel.tau_of() > 1:
        limit = f"tau = {1 / classes:.1g} or a max_fraction would limit them"
        yield f"note: tau {relabel.tau_of():g} is per class: with {classes:,} classes all labels could move; {limit}"
    if data["note"]:
        yield f"note: partition: {data['note']}"


@contextlib.contextmanager
def show_rounds(out: Console, tally: RunTally, first: int | None) -> Iterator[Callable[[], None]]:
    """Give a function to call after each round that `tally` took in; `first` is the first re-labelling round."""
    if can_redraw(out):
        with RoundsBar(out, tally, first) as bar:
            yield bar.show_round
    else:
        yield _plain_rounds(out, tally, first)


def _plain_rounds(out: Console, now: RunTally, first: int | None) -> Callable[[], None]:
    """Return a function that prints the first round, the first re-labelling one, the last, and about ten others."""
    before, began = now.round, time.monotonic()
    step = max(1, round(now.rounds / (PLAIN_LINES + 1)))
    regular = range(step, now.rounds - step // 2, step)  # the last of them is not next to the last round
    shown = {1, now.round + 1, *regular, first, now.rounds}

    def write() -> None:
        if now.round in shown:
            left = (time.monotonic() - began) / (now.round - before) * (now.rounds - now.round)
            moved = f"moved {now.moved}" if now.reported else ""
            parts = (f"round {now.round}/{now.rounds}", *_accuracies(now), moved, f"left {clock(left)}")
            print_line(out, "  ".join(filter(None, [*parts, lost_updates(now.lost, now.skipped)])))

    return write


class RoundsBar(Progress):
    """A bar over all rounds with a mark where re-labelling begins, and below it the accuracies so far."""

    def __init__(self, out: Console, tally: RunTally, first: int | None) -> None:
        self._tally, self._first = tally, first
        super().__init__(
            TextColumn("round {task.completed:.0f}/{task.total:.0f}"),
            MarkedBar(first, out.encoding),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=out,
            refresh_per_second=4,
            transient=True,
            speed_estimate_period=ALL_ROUNDS,
        )
        self._task = self.add_task("", total=tally.rounds, completed=tally.round)

    def show_round(self) -> None:
        """Show the round just done."""
        self.update(self._task, completed=self._tally.round)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bar and the lines below it."""
        yield self.make_tasks_table(self.tasks)
        yield from map(Text, self._lines())

    def _lines(self) -> Iterator[str]:
        now = self._tally
        yield "   ".join(_accuracies(now)) or "no accuracy yet"
        if now.relabelled:
            clients = plural(len(now.relabelled), "client")
            yield f"re-labelled from round {self._first} on: {plural(now.moved, 'label')} of {clients} moved"
        elif self._first is not None:
            yield f"re-labelling begins in round {self._first}"
        yield from filter(None, [lost_updates(now.lost, now.skipped)])


class MarkedBar(ProgressColumn):
    """A bar with a mark at one round."""

    def __init__(self, round: int | None, encoding: str) -> None:
        self._round = round
        self._line, self._mark = ("━", "┃") if encoding.startswith("utf") else ("-", "|")
        super().__init__()

    def render(self, task: Task) -> Text:
        """Return the bar of a task."""
        rounds = task.total or 1
        full, bar = int(BAR_WIDTH * task.completed / rounds), Text(self._line * BAR_WIDTH)
        bar.stylize("bar.complete", 0, full)
        bar.stylize("bar.back", full)
        if self._round is not None:
            at = int(BAR_WIDTH * (self._round - 1) / rounds)
            bar.plain = bar.plain[:at] + self._mark + bar.plain[at + 1 :]
            bar.stylize("bold yellow", at, at + 1)
        return bar


def _accuracies(tally: RunTally) -> list[str]:
    if tally.accuracy is None:
        return []
    shares = {"overall": tally.accuracy["overall"], **tally.accuracy["groups"]}
    return [f"{name} {percent(share)}" for name, share in shares.items()]
