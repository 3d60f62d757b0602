"""``fedrela preview FILE``: what a re-labelling would do on average; nothing is drawn and nothing written."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedrela import core
from fedrela.cli import options
from fedrela.cli.show import LONGEST_NAME, console, draw, inert, say
from fedrela.errors import DataError

TAUS = (0.01, 0.03, 0.05, 0.1, 0.2)
TOP_CLASSES = 3

HELP = f"""
Show how many labels would move at several tau, on average; nothing is written.

[bold]Example[/]: fedrela preview clinic.csv --tau 0.01 --tau 0.05

Also shown: how well the model agrees with the labels (plain, and as kappa, corrected for chance), and warnings where
a re-labelling would rather do harm. What looks right goes to fedrela relabel with the same options.
{options.FORMATS}"""

Taus = Annotated[
    list[float] | None,
    options.option(
        options.METHOD,
        "SHARE",
        "Share of samples that may pass a class's threshold. Repeatable.",
        show_default=", ".join(map(str, TAUS)),
    ),
]


def preview(
    file: options.File,
    tau: Taus = None,
    preset: options.Preset = "paper",
    spread: options.Spread = None,
    threshold: options.Threshold = None,
    target: options.Target = None,
    normalize: options.Normalize = "zscore",
    max_fraction: options.MaxFraction = 1.0,
    forbid: options.Forbid = None,
    label_column: options.LabelColumn = None,
) -> None:
    """Preview a posterior file; see `HELP`."""
    choices = options.Choices(
        preset, spread, threshold, target, normalize, max_fraction, tuple(forbid or ()), label_column
    )
    taus = tau or list(TAUS)
    choices.check(taus)
    data = choices.read(file)
    expected = core.preview(data.posterior, data.labels, taus, **choices.arguments(data))
    if expected.refusal is not None:
        raise DataError(f"{data.place(expected.refused_at)}: refused: {expected.refusal}")
    _show(data.path, [inert(name, LONGEST_NAME) for name in data.class_names], expected)


def _show(path: object, names: list[str], expected: core.Preview) -> None:
    screen = console()
    say(screen, f"{inert(path)}: {expected.counts.sum():,} samples, {len(names):,} classes", "bold")
    say(screen)
    rows = [
        (f"{row['tau']:g}", f"{row['moves']:,.1f}", f"{row['share']:.2%}", _top(row["into"], names))
        for row in expected.rows()
    ]
    draw(screen, ("tau", "expected moves", "share", "mostly to"), rows, words=("tau", "mostly to"))
    say(screen)
    agreement = "unknown" if np.isnan(expected.agreement) else f"{expected.agreement:.1%}"
    kappa = "not defined" if np.isnan(expected.kappa) else f"{expected.kappa:.2f}"
    say(screen, f"agreement of the model with the labels {agreement}, kappa {kappa}")
    for text in expected.warnings:
        say(screen, f"warning: {inert(text)}", "yellow")


def _top(into: list[float], names: list[str]) -> str:
    """Return the classes that would gain most, with their expected gain."""
    gains = [(gain, code) for code, gain in enumerate(into) if gain > 0]
    gains.sort(key=lambda pair: (-pair[0], pair[1]))
    said = [f"{names[code]} {gain:,.1f}" for gain, code in gains[:TOP_CLASSES]]
    rest = [f"{len(gains) - TOP_CLASSES} more"] if len(gains) > TOP_CLASSES else []
    return ", ".join(said + rest) or "-"
