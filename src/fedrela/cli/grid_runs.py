"""What `compare`, `sweep` and `reproduce` share: many runs, the time left, tables and report."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from fedrela.cli.progress import can_redraw
from fedrela.cli.terminal import print_error, print_line, print_table, widen
from fedrela.options import MOST_SEEDS
from fedrela.text import clock, duration, plural, printable

if TYPE_CHECKING:
    from fedrela.experiment import grid as grids
    from fedrela.experiment.grid import Grid

LONGEST_NAME = 60  # characters of the name of a run

Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder of all runs.", show_default="runs/COMMAND/NAME")
]
Seeds = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER", help="Use the seeds 1 to NUMBER.", min=1, max=MOST_SEEDS, show_default="as configured"
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List the runs, and run nothing.")]


def execute(
    screen: Console,
    grid: Grid,
    conclude: Callable[[], Mapping[str, Any]],
    workers: int | str | None = None,
    dry_run: bool = False,
) -> None:
    """Run what is left of a grid, and write its tables and report; a failed run gives exit code 1.

    `conclude` prints the result and returns its summary.
    """
    print_size(screen, grid)
    if dry_run:
        _print_runs(screen, grid)
        return
    run_grid(screen, grid, workers)
    print_line(screen)
    summary = conclude()
    print_line(screen)
    _write_results(screen, grid, summary)
    if grid.failures:
        failed = plural(len({cell.name for cell in grid.cells} & set(grid.failures)), "run")
        print_error(f"{grid.out}: {failed} failed; run the same command to try again")
        raise typer.Exit(1)


def print_size(screen: Console, grid: Grid) -> None:
    """Say how many runs and rounds a grid has, how many rounds are shared, and what is finished already."""
    runs = len({cell.name for cell in grid.cells})
    shared_rounds = sum(task.rounds for task in grid.tasks if task.cell is None)
    shared = f", {shared_rounds:,} of them shared by several runs" if shared_rounds else ""
    print_line(screen, f"{plural(runs, 'run')}, {plural(grid.rounds, 'round')}{shared}")
    if finished := len({cell.name for cell in grid.cells if grid.is_done(cell)}):
        done = f"{finished} of {plural(runs, 'run')} are finished in {printable(grid.out)}"
        print_line(screen, f"{done} and will not be repeated")


def _print_runs(screen: Console, grid: Grid) -> None:
    """List the runs of a grid: what ``--dry-run`` shows."""
    rows = [
        (
            "done" if grid.is_done(cell) else "to do",
            printable(cell.baseline),
            cell.arm,
            str(cell.seed),
            printable(", ".join(f"{key} = {value}" for key, value in cell.values.items())) or "-",
            f"runs/{cell.name}",
        )
        for cell in grid.cells
    ]
    columns = ("", "baseline", "arm", "seed", "values", "folder")
    widen(screen)
    print_table(screen, columns, rows, left=("", "baseline", "arm", "values", "folder"))


def _write_results(screen: Console, grid: Grid, summary: Mapping[str, Any]) -> None:
    """Write the tables and the report of a grid, and say where they are."""
    from fedrela.report.grid_page import all_tables
    from fedrela.report.writing import write_report

    folder, tables = grid.begin(), all_tables(summary)
    for name, data in tables.items():
        folder.write(name, data)
    print_line(screen, f"runs    {printable(folder.path / 'runs')}")
    print_line(screen, f"tables  {printable(folder.path)}: {', '.join(tables)}")
    print_line(screen, f"report  {printable(write_report(folder.path))}")


def run_grid(screen: Console, grid: Grid, workers: int | str | None = None) -> None:
    """Run what is left of a grid and show progress; failed runs are in ``grid.failures``."""
    grid.begin()
    began = time.monotonic()
    if grid.finished() == len(grid.cells):
        return
    try:
        with grid.executor(workers) as (executor, note), show_grid(screen, grid, note) as show:
            for progress in grid.run(executor):
                show(progress)
    except KeyboardInterrupt:
        print_error(f"{grid.out}: finished runs are kept; run the same command to continue")
        raise
    print_line(screen, f"done in {duration(time.monotonic() - began)}")


@contextlib.contextmanager
def show_grid(screen: Console, grid: Grid, note: str = "") -> Iterator[Callable[[grids.Progress], None]]:
    """Give a function to call after each round: a bar over all rounds on a terminal, elsewhere a line per run.

    `note` is what the executor says of itself.
    """
    if note:
        print_line(screen, f"note: {printable(note)}", "yellow")
    time_left, printed = TimeLeft(grid), len(grid.failures)
    bar = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[left]} left"),
        console=screen, transient=True, refresh_per_second=4, disable=not can_redraw(screen),
    )  # fmt: skip
    shown = bar.add_task("preparing", total=grid.rounds, left="-:--")

    def show(progress: grids.Progress) -> None:
        nonlocal printed
        task, left = progress.task, clock(time_left.seconds(progress))
        printed = _print_failures(screen, grid, printed)
        bar.update(shown, completed=grid.position(progress), description=_task_name(task), left=left)
        if bar.disable and progress.done.record.round == task.last:
            print_line(screen, f"{_task_name(task)}, done to round {task.last}; {left} left")

    with bar:
        yield show
    _print_failures(screen, grid, printed)


def _print_failures(screen: Console, grid: Grid, printed: int) -> int:
    """Print the failures after the first `printed`, and return how many there are."""
    for name, error in list(grid.failures.items())[printed:]:
        print_line(screen, f"failed: {printable(name)}: {printable(error)}", "yellow")
    return len(grid.failures)


def _task_name(task: grids.Segment) -> str:
    cell = task.cell
    what = "shared rounds" if cell is None else cell.arm
    values = "" if cell is None else "".join(f", {key} = {value}" for key, value in cell.values.items())
    return printable(f"{task.baseline}, seed {task.config.seed}: {what}{values}", LONGEST_NAME)


class TimeLeft:
    """Estimates the time left of a grid: each remaining round takes as long as similar rounds have taken so far."""

    def __init__(self, grid: Grid) -> None:
        self._tasks, self._now = grid.remaining(), time.monotonic()
        self._seconds: dict[Hashable, list[float]] = {}

    def seconds(self, progress: grids.Progress) -> float:
        """Take in a round that was just done, and return the seconds that all later ones will take."""
        before, self._now = self._now, time.monotonic()
        task = progress.task
        self._seconds.setdefault(_kind(task), []).append((self._now - before) / progress.rounds)
        later = self._tasks[self._tasks.index(task) + 1 :] if progress.later is None else progress.later
        left = (task.last - progress.done.record.round) * self._per_round(task)
        return left + sum(each.rounds * self._per_round(each) for each in later)

    def _per_round(self, task: grids.Segment) -> float:
        """Return the mean seconds of a similar round, or of all rounds if there was no similar one yet."""
        return fmean(self._seconds.get(_kind(task)) or itertools.chain(*self._seconds.values()))


def _kind(task: grids.Segment) -> Hashable:
    """Return what the time of a round depends on most."""
    return task.baseline, task.config.data.source, task.config.model.name
