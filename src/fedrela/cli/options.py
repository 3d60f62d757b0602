"""The options that `relabel` and `preview` share, and what they mean for a file at hand."""

from __future__ import annotations

import inspect
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from fedrela.core.options import RelabelOptions
from fedrela.data.posteriors import PosteriorFile, ordinal
from fedrela.errors import ArgumentError
from fedrela.options import options_of
from fedrela.text import nearest_hint, shown

METHOD, LIMITS, INPUT = "Method", "Limits of your own", "Reading the file"  # panels of a help page
METAVARS = {"tau": "SHARE", "max_fraction": "SHARE", "threshold": "higher|order|linear|NUMBER"}


def flags(*names: str) -> list[inspect.Parameter]:
    """Return options of `RelabelOptions` as flags of a command; help, values and defaults are those declared there."""
    made = []
    for each in [each for each in options_of(RelabelOptions) if each.name in names]:
        info = typer.Option(
            metavar=METAVARS.get(each.name) or "|".join(each.choices),
            help=f"{each.help[0].upper()}{each.help[1:]}.",
            rich_help_panel=LIMITS if each.name == "max_fraction" else METHOD,
        )
        of: Any = str | None if each.default is None else type(each.default)
        kind = Annotated[of, info]
        made.append(inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=kind))
    return made


def parsed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the flags as keywords of `fedrela.relabel`; raise for a wrong one before a large file is read."""
    with suppress(KeyError, TypeError, ValueError):  # not given, or the name of a quantile rule
        values = values | {"threshold": float(values["threshold"])}
    checked = vars(RelabelOptions(**values))
    return {name: checked[name] for name in values}


File = Annotated[Path, typer.Argument(metavar="FILE", help="Posterior and labels, .csv or .npz.", show_default=False)]
Forbid = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FROM:TO",
        help="A move that must not happen, by class names or numbers; '*' on one side: any. Repeatable.",
        rich_help_panel=LIMITS,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="CSV: the label column, by name or by number from 0.", rich_help_panel=INPUT),
]

FILE_FORMATS = """
[bold].csv[/]: one probability column per class and a label column. With a header its names are the classes, and
the label column is called label, labels, y, class or target, or is the last. Without a header the last column is the
label and the classes are 0, 1, 2 ... Labels are class names or numbers from 0.

[bold].npz[/]: arrays 'posterior' (n, C) and 'labels' (n,); optionally 'class_names' (C,), and as booleans 'allowed'
(C, C) for moves that may happen and 'eligible' (n,) for samples that may move.
"""


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
