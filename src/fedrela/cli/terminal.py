"""What the terminal shows: lines, tables, error messages and durations, plain where output is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from fedrela.text import plural, printable

if TYPE_CHECKING:
    from fedrela.experiment.grid import Grid
    from fedrela.report.page import Table as ReportTable
    from fedrela.runfolder.grids import GridFolder

PLAIN_WIDTH = 100
WIDEST = 200  # characters per line of a report's table that goes to a file
LONGEST_NAME = 40  # characters of a class name in a table
DAY, HOUR, MINUTE = 86_400, 3_600, 60


def help_text(text: str) -> str:
    r"""Join the lines of every paragraph, so that a help page wraps at the width of the terminal.

    >>> help_text("One sentence over\ntwo lines.\n\nAnother.")
    'One sentence over two lines.\n\nAnother.'
    """
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def console() -> Console:
    """Return a console on standard output that never interprets markup; without a terminal, plain and 100 wide."""
    if sys.stdout.isatty():
        return Console(markup=False, emoji=False, highlight=False)
    return Console(
        markup=False, emoji=False, highlight=False, width=PLAIN_WIDTH, color_system=None,
        force_terminal=False, force_jupyter=False, force_interactive=False, legacy_windows=False,
    )  # fmt: skip


def print_line(out: Console, text: str = "", style: str | None = None) -> None:
    """Write a line: wrapped at words on a terminal, unbroken elsewhere, so that it can be searched for."""
    out.print(text, style=style, soft_wrap=not out.is_terminal)


def print_error(text: object) -> None:
    """Write one line about what went wrong to standard error."""
    print(f"fedrela: {printable(text)}", file=sys.stderr)


def print_table(
    out: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[str] = ()
) -> None:
    """Write a table; the columns in `words` hold text and are left-aligned, all others are right-aligned."""
    table = Table(header_style="dim", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in columns:
        table.add_column(column, justify="left" if column in words else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as drawn:
        out.print(table)
    for line in drawn.get().splitlines():
        out.print(line.rstrip(), soft_wrap=True)  # no trailing blanks, so that output can be compared or cut


def print_report_table(screen: Console, table: ReportTable) -> None:
    """Write a table of a report with its caption."""
    _widen(screen)
    rows = [[printable(cell) for cell in row] for row in table.rows]
    print_table(screen, [printable(column) for column in table.columns], rows, words=table.words)
    print_line(screen, printable(table.caption), "dim")
    print_line(screen)


def _widen(screen: Console) -> None:
    """Let the lines of a table that goes to a file be longer, so that cells are not folded."""
    if not screen.is_terminal:
        screen.width = max(screen.width, WIDEST)


def print_grid_size(screen: Console, grid: Grid) -> None:
    """Say how many runs and rounds a grid has, how many rounds are shared, and what is finished already."""
    runs = len({cell.name for cell in grid.cells})
    shared_rounds = sum(task.rounds for task in grid.tasks if task.cell is None)
    shared = f", {shared_rounds:,} of them shared by several runs" if shared_rounds else ""
    print_line(screen, f"{plural(runs, 'run')}, {plural(grid.rounds, 'round')}{shared}")
    if finished := len({cell.name for cell in grid.cells if grid.is_done(cell)}):
        done = f"{finished} of {plural(runs, 'run')} are finished in {printable(grid.out)}"
        print_line(screen, f"{done} and will not be run again")


def print_grid_runs(screen: Console, grid: Grid) -> None:
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
    _widen(screen)
    print_table(screen, columns, rows, words=("", "baseline", "arm", "values", "folder"))


def write_documents(screen: Console, folder: GridFolder, summary: Mapping[str, Any]) -> None:
    """Write the tables and the report of a grid, and say where they are."""
    from fedrela.report.tables import all_tables
    from fedrela.report.writing import write_report

    tables = all_tables(summary)
    for name, data in tables.items():
        folder.write(name, data)
    print_line(screen, f"runs    {printable(folder.path / 'runs')}")
    print_line(screen, f"tables  {printable(folder.path)}: {', '.join(tables)}")
    print_line(screen, f"report  {printable(write_report(folder.path))}")


def clock(seconds: float) -> str:
    """Return a duration to the second.

    >>> clock(75), clock(4000)
    ('1:15', '1:06:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def duration(seconds: float) -> str:
    """Return a rough duration.

    >>> duration(42), duration(400), duration(9000), duration(1e6)
    ('42 s', '7 min', '2.5 h', '12 days')
    """
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h" if seconds < 2 * DAY else f"{seconds / DAY:,.0f} days"
