"""What commands share: lines, tables and error messages, plain where output is not a terminal; files that exist."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from fedrela.errors import ArgumentError
from fedrela.text import plural, printable

if TYPE_CHECKING:
    from fedrela.report.page import Table as ReportTable

PLAIN_WIDTH = 100
WIDEST = 200  # characters per line of a report's table that goes to a file
LONGEST_NAME = 40  # characters of a class name in a table


def help_text(text: str | None) -> str:
    r"""Join the lines of every paragraph, so that a help page wraps at the width of the terminal.

    >>> help_text("One sentence over\ntwo lines.\n\nAnother.")
    'One sentence over two lines.\n\nAnother.'
    """
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", (text or "").strip()))


def command_group(page: str, /, **commands: Callable[..., None]) -> typer.Typer:
    """Return a group of commands: their names, and functions whose docstrings are their help pages."""
    group = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="rich", help=help_text(page))
    for name, function in commands.items():
        group.command(name, help=help_text(function.__doc__))(function)
    return group


def column_kinds(features: Sequence[str], encoded: Iterable[str]) -> str:
    """Return which columns of a table are numbers and which are categories, from its features.

    Those of `encoded` are 0 or 1: one per value of a category, or whether a cell is missing.

    >>> column_kinds(["bmi>=30", "sex=f", "sex=m", "ward", "ward missing"], ["sex=f", "sex=m", "ward missing"])
    'columns: numbers bmi>=30, ward; categories sex (2 values)'
    """
    not_numbers = {*encoded}
    indicators = {f"{name} missing" for name in features}
    of_category = [name for name in features if name in not_numbers - indicators]
    categories = Counter(name.partition("=")[0] for name in of_category)
    numbers = [name for name in features if name not in not_numbers]
    kinds = {"numbers": numbers, "categories": [f"{name} ({plural(n, 'value')})" for name, n in categories.items()]}
    return "columns: " + "; ".join(f"{kind} {', '.join(which)}" for kind, which in kinds.items() if which)


def refuse_existing(paths: Iterable[Path], force: bool, instead: str = "") -> None:
    """Raise if a file exists and ``--force`` was not given; `instead` says in the message what else can be done."""
    for path in paths:
        if os.path.lexists(path) and not force:
            raise ArgumentError(f"{path}: exists already; --force overwrites it{instead}")


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
    out: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[str] = ()
) -> None:
    """Write a table; the columns in `left` are left-aligned, all others right-aligned."""
    table = Table(header_style="dim", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as drawn:
        out.print(table)
    for line in drawn.get().splitlines():
        out.print(line.rstrip(), soft_wrap=True)  # no trailing blanks, so that output can be compared or cut


def print_text_table(screen: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table whose columns all hold text, and an empty line."""
    print_table(screen, columns, rows, left=columns)
    print_line(screen)


def print_report_table(screen: Console, table: ReportTable) -> None:
    """Write a table of a report with its caption."""
    widen(screen)
    rows = [[printable(cell) for cell in row] for row in table.rows]
    print_table(screen, [printable(column) for column in table.columns], rows, left=table.left)
    print_line(screen, printable(table.caption), "dim")
    print_line(screen)


def widen(screen: Console) -> None:
    """Let the lines of a table that goes to a file be longer, so that cells are not folded."""
    if not screen.is_terminal:
        screen.width = max(screen.width, WIDEST)
