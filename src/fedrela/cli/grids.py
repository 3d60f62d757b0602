"""Many runs on the screen: what is to be run, one bar over all of them with the time left, and what they end with."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from fedrela.cli.live import clock, is_live, many
from fedrela.cli.pace import Pace
from fedrela.cli.show import complain, draw, inert, say

if TYPE_CHECKING:
    from fedrela.experiment import grid as grids
    from fedrela.experiment.grid import Grid, Task
    from fedrela.report.page import Table
    from fedrela.runfolder.grids import GridFolder

LONGEST = 60  # characters of what is being run
WIDEST = 200  # characters of a line of a table that goes to a file


def run_grid(screen: Console, grid: Grid, workers: int | str | None = None) -> None:
    """Carry out what is left of a grid, with its progress; runs that failed are in ``grid.failures``.

    Parameters
    ----------
    screen
        Where to show it.
    grid
        What is run.
    workers
        Processes, or ``"auto"``; by default what ``[engine]`` of the first cell says.
    """
    from fedrela.experiment.workers import open_executor

    grid.begin()
    finished, began = grid.finished(), time.monotonic()
    if finished == len(grid.cells):
        return
    engine = grid.cells[0].config.engine
    try:
        with (
            open_executor(workers or engine.workers, engine.device) as (executor, note),
            show_grid(screen, grid) as show,
        ):
            if note:
                say(screen, f"note: {inert(note)}", "yellow")
            for progress in grid.run(executor):
                show(progress)
    except KeyboardInterrupt:
        complain(f"{grid.out}: what is finished stays; the same command goes on where this one stopped")
        raise
    say(screen, f"done in {clock(time.monotonic() - began)}")


@contextlib.contextmanager
def show_grid(screen: Console, grid: Grid) -> Iterator[Callable[[grids.Progress], None]]:
    """Give what to call with each round: a bar over all of them on a terminal, elsewhere a line for each run."""
    pace, told = Pace(grid), len(grid.failures)
    bar = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[left]} left"),
        console=screen, transient=True, refresh_per_second=4, disable=not is_live(screen),
    )  # fmt: skip
    shown = bar.add_task("preparing", total=grid.rounds, left="-:--")

    def show(progress: grids.Progress) -> None:
        nonlocal told
        task, left = progress.task, clock(pace.seconds_left(progress))
        told = _tell_failures(screen, grid, told)
        bar.update(shown, completed=grid.position(progress), description=_words(task), left=left)
        if bar.disable and progress.done.record.round == task.last:
            say(screen, f"{_words(task)}, done to round {task.last}; {left} left")

    with bar:
        yield show
    _tell_failures(screen, grid, told)


def say_plan(screen: Console, grid: Grid) -> None:
    """Say how many runs and rounds there are, how many of them are shared, and what is finished already."""
    runs = len({cell.name for cell in grid.cells})
    trunks = sum(task.rounds for task in grid.tasks if task.cell is None)
    shared = f", {trunks:,} of them shared by several runs" if trunks else ""
    say(screen, f"{many(runs, 'run')}, {many(grid.rounds, 'round')}{shared}")
    if finished := len({cell.name for cell in grid.cells if grid.is_done(cell)}):
        say(screen, f"{finished} of {many(runs, 'run')} are finished in {inert(grid.out)} and not done again")


def write_documents(screen: Console, folder: GridFolder, summary: Mapping[str, Any]) -> None:
    """Write the tables and the report of a grid, and say where they are."""
    from fedrela.report.tables import all_tables
    from fedrela.report.writing import write_report

    tables = all_tables(summary)
    for name, data in tables.items():
        folder.write(name, data)
    say(screen, f"runs    {inert(folder.path / 'runs')}")
    say(screen, f"tables  {inert(folder.path)}: {', '.join(tables)}")
    say(screen, f"report  {inert(write_report(folder.path))}")


def draw_table(screen: Console, table: Table) -> None:
    """Write a table of a summary, and below it what its figures are."""
    if not screen.is_terminal:
        screen.width = max(screen.width, WIDEST)  # nobody looks on, so no cell need be folded
    rows = [[inert(cell) for cell in row] for row in table.rows]
    draw(screen, [inert(column) for column in table.columns], rows, words=table.words)
    say(screen, inert(table.caption), "dim")
    say(screen)


def _tell_failures(screen: Console, grid: Grid, told: int) -> int:
    """Say which runs failed since `told` were told of, and return how many that makes."""
    for name, message in list(grid.failures.items())[told:]:
        say(screen, f"failed: {inert(name)}: {inert(message)}", "yellow")
    return len(grid.failures)


def _words(task: Task) -> str:
    """Return what a task is."""
    cell = task.cell
    what = "shared rounds" if cell is None else cell.arm
    values = "" if cell is None else "".join(f", {key} = {value}" for key, value in cell.values.items())
    return inert(f"{task.baseline}, seed {task.seed}: {what}{values}", LONGEST)
