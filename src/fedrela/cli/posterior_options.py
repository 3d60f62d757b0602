"""What the commands that read a posterior file share: the file, how to read it, and moves that must not happen."""

from __future__ import annotations

import csv
import inspect
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from fedrela.data.posterior_tables import ColumnOptions, ordinal
from fedrela.data.posteriors import PosteriorFile, read_posteriors
from fedrela.errors import ArgumentError
from fedrela.text import nearest_hint, shown

LIMITS, INPUT = "Limits of your own", "Reading a table"  # panels of a help page
File = Annotated[
    Path, typer.Argument(metavar="FILE", help="Posterior and labels: .csv, .parquet or .npz.", show_default=False)
]
Forbid = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FROM:TO",
        help="A move that must not happen, by class names or numbers; '*' on one side: any. Repeatable.",
        rich_help_panel=LIMITS,
    ),
]

FILE_FORMATS = """
[bold].csv, .parquet[/]: one probability column per class, a label column, and optionally ids. The label column is
called label, labels, y, class or target, or is the last. The index of a pandas frame, or a column called id, ids, index
or row_id, is the row id. Every other column is the class of that name; if it cannot be one, the error names the
option to use. Without a header the last column is the label and the classes are 0, 1, 2 ... Labels are class names or
numbers from 0.

[bold].npz[/]: arrays 'posterior' (n, C) and 'labels' (n,); optionally 'class_names' (C,), 'ids' (n,), and as booleans
'allowed' (C, C) for moves that may happen and 'eligible' (n,) for samples that may move.
"""

READING: dict[str, tuple[Any, str, str]] = {
    "label_column": (str | None, "NAME", "The label column, by name or by number from 0."),
    "id": (str | None, "NAME", "The column that names the rows, such as a patient's number."),
    "classes": (str | None, "A,B,...", "The classes, in order; columns of other names are left out."),
    "prefix": (str | None, "TEXT", "Prefix of the class columns, such as p_."),
    "ignore": (list[str] | None, "NAME", "A column to leave out. Repeatable."),
}


def reading_flags() -> list[inspect.Parameter]:
    """Return the options that say which column of a table is what, as flags of a command."""
    by_name, made = inspect.Parameter.KEYWORD_ONLY, []
    for name, (kind, metavar, help) in READING.items():
        info = typer.Option(metavar=metavar, help=help, rich_help_panel=INPUT, show_default=False)
        made.append(inspect.Parameter(name, by_name, default=None, annotation=Annotated[kind, info]))
    return made


def take_reading(flags: dict[str, Any]) -> ColumnOptions:
    """Remove the flags of `reading_flags` from `flags` and return them as column options."""
    given = {name: flags.pop(name) for name in READING}
    classes = given.pop("classes")
    try:
        names = tuple(name.strip() for name in next(csv.reader([classes], skipinitialspace=True))) if classes else ()
    except csv.Error:
        names = ("",)
    if "" in names or len(set(names)) < len(names):
        raise ArgumentError(f"expected distinct names, separated by commas, got {shown(classes)}", argument="--classes")
    return ColumnOptions(
        **given | {"classes": names, "prefix": given["prefix"] or "", "ignore": tuple(given["ignore"] or ())}
    )


def read_file(file: Path, reading: ColumnOptions) -> PosteriorFile:
    """Return what a posterior file holds."""
    return read_posteriors(file, **vars(reading))


def allowed_moves(data: PosteriorFile, forbidden: list[str] | None) -> NDArray[np.bool_] | None:
    """Return the moves that both the file and ``--forbid`` allow, ``(C, C)``, or None if all are."""
    if not forbidden:
        return data.allowed
    C = len(data.class_names)
    allowed = np.ones((C, C), np.bool_) if data.allowed is None else data.allowed.copy()
    for rule in forbidden:
        allowed[_forbidden_pair(rule, data.class_names)] = False
    return allowed


def _forbidden_pair(rule: str, names: tuple[str, ...]) -> tuple[int | slice, int | slice]:
    """Read ``FROM:TO``; a class name may hold colons itself, so every split is tried."""
    cuts = [(rule[:at], rule[at + 1 :]) for at, mark in enumerate(rule) if mark == ":"]
    if not cuts:
        raise ArgumentError(f"expected FROM:TO, such as {names[0]}:{names[-1]}, got {shown(rule)}", argument="--forbid")
    known = [pair for pair in cuts if all(_class(part, names) is not None for part in pair)]
    if len(known) > 1:
        raise ArgumentError(f"{shown(rule)} can be read in {len(known)} ways; use class numbers", argument="--forbid")
    if not known:
        unknown = next(part for part in cuts[0] if _class(part, names) is None)
        raise ArgumentError(
            f"{shown(rule)}: expected a class name, a number from 0 to {len(names) - 1} or '*', got {shown(unknown)}"
            + nearest_hint(unknown, names),
            argument="--forbid",
        )
    source, target = (_class(part, names) for part in known[0])
    if source is None or target is None or source == target:
        raise ArgumentError(f"{shown(rule)}: expected two different classes, or '*' on one side", argument="--forbid")
    return source, target


def _class(part: str, names: tuple[str, ...]) -> int | slice | None:
    part = part.strip()
    if part == "*":
        return slice(None)
    return names.index(part) if part in names else ordinal(part, len(names))
