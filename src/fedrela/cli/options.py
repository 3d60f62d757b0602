"""The options that `relabel` and `preview` share, and what they mean for a file at hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from fedrela.core.options import NORMALIZATIONS, PRESETS, QUANTILES, SPREADS, TARGETS, resolve
from fedrela.data.posterior_csv import nearest, ordinal
from fedrela.data.posteriors import PosteriorFile, read_posteriors
from fedrela.errors import ArgumentError

METHOD, LIMITS, INPUT = "Method", "Limits of your own", "Reading the file"  # panels of a help page


def option(panel: str, values: tuple[str, ...] | str, help: str, **more: Any) -> Any:
    """Describe an option: its panel on the help page, the values or the word for its value, and a sentence."""
    metavar = values if isinstance(values, str) else "|".join(values)
    return typer.Option(metavar=metavar, help=help, rich_help_panel=panel, **more)


File = Annotated[Path, typer.Argument(metavar="FILE", help="Posterior and labels, .csv or .npz.", show_default=False)]
Preset = Annotated[str, option(METHOD, tuple(PRESETS), "The paper's equations, or what the official code does.")]
Spread = Annotated[str | None, option(METHOD, SPREADS, "Deviation inside a class; overrides the preset.")]
Threshold = Annotated[
    str | None, option(METHOD, (*QUANTILES, "NUMBER"), "Quantile rule, or a constant score; overrides the preset.")
]
Target = Annotated[str | None, option(METHOD, TARGETS, "Which class a moved sample goes to; overrides the preset.")]
Normalize = Annotated[str, option(METHOD, NORMALIZATIONS, "The paper's z-score, or one of its ablations.")]
MaxFraction = Annotated[float, option(LIMITS, "SHARE", "At most this share of all labels changes.")]
Forbid = Annotated[
    list[str] | None,
    option(
        LIMITS, "FROM:TO", "A move that must not happen, by class names or numbers; '*' on one side: any. Repeatable."
    ),
]
LabelColumn = Annotated[str | None, option(INPUT, "NAME", "CSV: the label column, by name or by number from 0.")]

FORMATS = """
[bold].csv[/]: one probability column a class and a label column. With a header its names are the classes, and
the label column is called label, labels, y, class or target, or is the last. Without a header the last column is the
label and the classes are 0, 1, 2 ... Labels are class names or numbers from 0.

[bold].npz[/]: arrays 'posterior' (n, C) and 'labels' (n,); if you like also 'class_names' (C,), 'allowed' (C, C)
for moves that may happen, and 'eligible' (n,) for samples that may move, both booleans.
"""


@dataclass(frozen=True)
class Choices:
    """What the shared options said."""

    preset: str
    spread: str | None
    threshold: str | None
    target: str | None
    normalize: str
    max_fraction: float
    forbid: tuple[str, ...]
    label_column: str | None

    @property
    def method(self) -> dict[str, Any]:
        """The keyword arguments of `fedrela.relabel` and `fedrela.preview` that need no file."""
        names = ("preset", "spread", "target", "normalize", "max_fraction")
        return {name: getattr(self, name) for name in names} | {"threshold": _number_or_word(self.threshold)}

    def check(self, taus: list[float]) -> None:
        """Raise for a wrong option now, so that a slip does not wait for a large file."""
        for tau in taus:
            resolve(2, tau=tau, **self.method)

    def read(self, file: Path) -> PosteriorFile:
        """Read the posterior file."""
        return read_posteriors(file, label_column=self.label_column)

    def arguments(self, data: PosteriorFile) -> dict[str, Any]:
        """Return all keyword arguments for the file at hand."""
        return self.method | {"allowed": allowed_moves(data, self.forbid), "eligible": data.eligible}


def _number_or_word(threshold: str | None) -> str | float | None:
    try:
        return None if threshold is None else float(threshold)
    except ValueError:
        return threshold


def allowed_moves(data: PosteriorFile, forbidden: tuple[str, ...]) -> NDArray[np.bool_] | None:
    """Return the moves that remain of those that the file allows, ``(C, C)``, or None where nothing is forbidden."""
    if not forbidden:
        return data.allowed
    C = len(data.class_names)
    allowed = np.ones((C, C), np.bool_) if data.allowed is None else data.allowed.copy()
    for rule in forbidden:
        allowed[_forbidden_pair(rule, data.class_names)] = False
    return allowed


def _forbidden_pair(rule: str, names: tuple[str, ...]) -> tuple[int | slice, int | slice]:
    """Read ``FROM:TO``; a class name may itself hold colons, so every way to cut the rule is tried."""
    cuts = [(rule[:at], rule[at + 1 :]) for at, mark in enumerate(rule) if mark == ":"]
    if not cuts:
        raise ArgumentError(f"--forbid: FROM:TO is needed, such as {names[0]}:{names[-1]}, got {rule!r}")
    known = [pair for pair in cuts if all(_class(part, names) is not None for part in pair)]
    if len(known) > 1:
        raise ArgumentError(f"--forbid: {rule!r} can be read in {len(known)} ways; use class numbers")
    if not known:
        unknown = next(part for part in cuts[0] if _class(part, names) is None)
        raise ArgumentError(
            f"--forbid: {rule!r}: no class {unknown!r}; the nearest is {nearest(unknown, names)!r}, "
            f"and numbers from 0 to {len(names) - 1} and '*' may be used"
        )
    source, target = (_class(part, names) for part in known[0])
    if source is None or target is None or source == target:
        raise ArgumentError(f"--forbid: {rule!r}: two different classes, or '*' on one side, are needed")
    return source, target


def _class(part: str, names: tuple[str, ...]) -> int | slice | None:
    part = part.strip()
    if part == "*":
        return slice(None)
    if part in names:
        return names.index(part)
    return ordinal(part, len(names))
