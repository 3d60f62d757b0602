"""``fedrela preview FILE``: what a re-labelling would do on average, without drawing or writing anything."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from fedrela import core
from fedrela.cli import options
from fedrela.cli.terminal import LONGEST_NAME, console, print_line, print_table
from fedrela.core.options import PreviewKeywords, show_keywords
from fedrela.data.posteriors import read_posteriors
from fedrela.errors import DataError
from fedrela.text import printable

TOP_CLASSES = 3

Taus = Annotated[
    list[float] | None,
    typer.Option(
        metavar="SHARE",
        help="Share of samples whose score may pass the threshold of a class. Repeatable.",
        show_default=", ".join(map(str, core.TAUS)),
        rich_help_panel=options.METHOD,
    ),
]


@show_keywords(options.flags(*PreviewKeywords.__annotations__), evaluate=True)
def preview(
    file: options.File,
    tau: Taus = None,
    *,
    forbid: options.Forbid = None,
    label_column: options.LabelColumn = None,
    **flags: Any,
) -> None:
    """Show how many labels would move at several tau, on average; nothing is written.

    [bold]Example[/]: fedrela preview clinic.csv --tau 0.01 --tau 0.05

    Also shown: how well the model agrees with the labels (plain, and as kappa, corrected for chance), and warnings
    where re-labelling is likely to do harm. If it looks right, run fedrela relabel with the same options.
    """
    taus = tau or core.TAUS
    keywords = options.parsed(flags)
    for each in taus:
        options.parsed({"tau": each})
    data = read_posteriors(file, label_column=label_column)
    allowed = options.allowed_moves(data, forbid)
    expected = core.preview(data.posterior, data.labels, taus, allowed=allowed, eligible=data.eligible, **keywords)
    if expected.refusal is not None:
        raise DataError(f"{data.place(expected.refused_at)}: refused: {expected.refusal}")
    _show(data.path, [printable(name, LONGEST_NAME) for name in data.class_names], expected)


def _show(path: object, names: list[str], expected: core.Preview) -> None:
    screen = console()
    print_line(screen, f"{printable(path)}: {expected.counts.sum():,} samples, {len(names):,} classes", "bold")
    print_line(screen)
    rows = [
        (f"{row['tau']:g}", f"{row['moves']:,.1f}", f"{row['share']:.2%}", _top(row["into"], names))
        for row in expected.rows()
    ]
    print_table(screen, ("tau", "expected moves", "share", "mostly to"), rows, words=("tau", "mostly to"))
    print_line(screen)
    agreement = "unknown" if np.isnan(expected.agreement) else f"{expected.agreement:.1%}"
    kappa = "not defined" if np.isnan(expected.kappa) else f"{expected.kappa:.2f}"
    print_line(screen, f"agreement of the model with the labels {agreement}, kappa {kappa}")
    for text in expected.warnings:
        print_line(screen, f"warning: {printable(text)}", "yellow")


def _top(into: list[float], names: list[str]) -> str:
    """Return the classes that would gain most, with their expected gain."""
    gaining = sorted((c for c, gain in enumerate(into) if gain > 0), key=lambda c: -into[c])
    said = [f"{names[c]} {into[c]:,.1f}" for c in gaining[:TOP_CLASSES]]
    rest = [f"{len(gaining) - TOP_CLASSES} more"] if len(gaining) > TOP_CLASSES else []
    return ", ".join(said + rest) or "-"
