"""``fedrela preview FILE`` and ``relabel FILE``: what a re-labelling would do, and new labels with a ledger."""

from __future__ import annotations

import inspect
import json
import os
import tomllib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from fedrela import core
from fedrela.arguments import check_choice
from fedrela.cli.terminal import LONGEST_NAME, console, print_line, print_table
from fedrela.core.options import PreviewKeywords, RelabelKeywords, RelabelOptions, show_keywords
from fedrela.data.posteriors import PosteriorFile, ordinal, read_posteriors
from fedrela.errors import ArgumentError, DataError
from fedrela.files import write_bytes
from fedrela.options import options_of
from fedrela.text import nearest_hint, printable, shown

MOST_ROWS = 20
TOP_CLASSES = 3
LEDGER_FORMATS = ("json", "npz")
METHOD, LIMITS, INPUT = "Method", "Limits of your own", "Reading the file"  # panels of a help page
METAVARS = {
    "tau": "SHARE",
    "max_fraction": "SHARE",
    "threshold": "higher|order|linear|NUMBER",
    "params": "NAME=VALUE,...",
}


def flags(*names: str) -> list[inspect.Parameter]:
    """Return options of `RelabelOptions` as flags of a command; help, values and defaults are those declared there."""
    made = []
    for each in [each for each in options_of(RelabelOptions) if each.name in names]:
        info = typer.Option(
            metavar=METAVARS.get(each.name) or "|".join(each.choices),
            help=f"{each.help[0].upper()}{each.help[1:]}.",
            rich_help_panel=LIMITS if each.name == "max_fraction" else METHOD,
        )
        kind: Any = str | None if each.default is None else type(each.default)
        by_name = inspect.Parameter.KEYWORD_ONLY
        made.append(inspect.Parameter(each.name, by_name, default=each.default, annotation=Annotated[kind, info]))
    return made


def parsed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the flags as keywords of `fedrela.relabel`; raise for a wrong one before a large file is read."""
    with suppress(KeyError, TypeError, ValueError):  # not given, or the name of a quantile rule
        values = values | {"threshold": float(values["threshold"])}
    if isinstance(values.get("params"), str):
        try:
            values = values | tomllib.loads(f"params = {{ {values['params']} }}")
        except ValueError:
            raise ArgumentError(f"--params: expected NAME = VALUE, ..., got {shown(values['params'])}") from None
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

SEED = typer.Option(metavar="NUMBER", min=0, help="Seed of the draws: same seed, same labels.", rich_help_panel=METHOD)
OUT = typer.Option(metavar="DIR", help="Folder for the results.", show_default="the folder of FILE")
LEDGER_FORMAT = typer.Option(metavar="|".join(LEDGER_FORMATS), help="json to read, npz for size.")
DRY_RUN = typer.Option("--dry-run", help="Show the same tables, write nothing.")
FORCE = typer.Option("--force", help="Overwrite the results of an earlier run.")
Taus = Annotated[
    list[float] | None,
    typer.Option(
        metavar="SHARE",
        help="Share of samples whose score may pass the threshold of a class. Repeatable.",
        show_default=", ".join(map(str, core.TAUS)),
        rich_help_panel=METHOD,
    ),
]


@show_keywords(flags(*PreviewKeywords.__annotations__), evaluate=True)
def preview(
    file: File, tau: Taus = None, *, forbid: Forbid = None, label_column: LabelColumn = None, **flags: Any
) -> None:
    """Show how many labels would move at several tau, on average; nothing is written.

    [bold]Example[/]: fedrela preview clinic.csv --tau 0.01 --tau 0.05

    Also shown: how well the model agrees with the labels (plain, and as kappa, corrected for chance), and warnings
    where re-labelling is likely to do harm. If it looks right, run fedrela relabel with the same options.
    """
    taus = tau or core.TAUS
    keywords = parsed(flags)
    for each in taus:
        parsed({"tau": each})
    data = read_posteriors(file, label_column=label_column)
    allowed = allowed_moves(data, forbid)
    expected = core.preview(data.posterior, data.labels, taus, allowed=allowed, eligible=data.eligible, **keywords)
    if expected.refusal is not None:
        raise DataError(f"{data.place(expected.refused_at)}: refused: {expected.refusal}")
    _show_preview(data.path, [printable(name, LONGEST_NAME) for name in data.class_names], expected)


def _show_preview(path: object, names: list[str], expected: core.Preview) -> None:
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


@show_keywords(flags(*RelabelKeywords.__annotations__), evaluate=True)
def relabel(
    file: File,
    out: Annotated[Path | None, OUT] = None,
    *,
    forbid: Forbid = None,
    label_column: LabelColumn = None,
    seed: Annotated[int, SEED] = 0,
    ledger_format: Annotated[str, LEDGER_FORMAT] = "json",
    dry_run: Annotated[bool, DRY_RUN] = False,
    force: Annotated[bool, FORCE] = False,
    **flags: Any,
) -> None:
    """Re-label the majority-class samples that look most like a rarer class.

    [bold]Example[/]: fedrela relabel clinic.csv --tau 0.03 --forbid disease:healthy --out relabelled

    FILE is never written to. The new labels go to STEM.relabelled.csv (or .npz) and a record of every move, with the
    original labels, to STEM.ledger.json. Numbers that are not probabilities are refused: nothing is written, exit
    code 3.
    """
    keywords = parsed(flags)
    ending = check_choice("--ledger-format", ledger_format, LEDGER_FORMATS)
    folder = file.parent if out is None else out
    labels_path = folder / f"{file.stem}.relabelled{file.suffix.lower()}"
    ledger_path = folder / f"{file.stem}.ledger.{ending}"
    if not dry_run:
        if folder.exists() and not folder.is_dir():
            raise ArgumentError(f"{folder} is a file; expected a folder", argument="--out")
        for path in (labels_path, ledger_path):
            if os.path.lexists(path) and not force:
                raise ArgumentError(f"{path}: exists already; --force overwrites it, --out chooses another folder")
    data = read_posteriors(file, label_column=label_column)
    allowed = allowed_moves(data, forbid)
    done = core.relabel(data.posterior, data.labels, seed=seed, allowed=allowed, eligible=data.eligible, **keywords)
    if done.refusal is not None:
        raise DataError(f"{data.place(done.refused_at)}: refused: {done.refusal}")
    if not dry_run:
        _write(labels_path, ledger_path, data, done, force)
    screen = console()
    _show(screen, data, done)
    if dry_run:
        print_line(screen, "dry run: nothing was written")
        return
    undo = f"fedrela.undo({json.dumps(str(ledger_path), ensure_ascii=False)})"
    undo += " returns the original labels as class numbers; the ledger has the names"
    for name, what in (("labels", labels_path), ("ledger", ledger_path), ("undo  ", undo)):
        screen.print(f"{name}  {printable(what)}", soft_wrap=True)


def _write(labels_path: Path, ledger_path: Path, data: PosteriorFile, done: core.Relabelling, force: bool) -> None:
    """Write the ledger first, so that there are never new labels without the original ones."""
    path = ledger_path
    try:
        replace(done.ledger, class_names=data.class_names).save(path, overwrite=force)
        path = labels_path
        write_bytes(path, data.encode(done.labels), overwrite=force)
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be written: {error.strerror}; --out chooses another folder") from None


def _show(screen: Console, data: PosteriorFile, done: core.Relabelling) -> None:
    names = [printable(name, LONGEST_NAME) for name in data.class_names]
    n, m, tau = done.labels.size, done.moved.size, done.ledger.options["tau"]
    print_line(screen, f"{printable(data.path)}: {n:,} samples, {len(names):,} classes, tau {tau:g}", "bold")
    print_line(screen)
    if m:
        _show_moves(screen, names, done.ledger)
        _show_counts(screen, names, done)
    print_line(screen, f"moved {m:,} of {n:,} labels ({done.share:.2%})", "bold")
    for note in done.ledger.notes:
        print_line(screen, f"note: {printable(note)}")


def _show_moves(screen: Console, names: list[str], ledger: core.Ledger) -> None:
    """Moves from class to class, the most frequent first."""
    pairs, moves = np.unique(np.stack([ledger.old, ledger.new], axis=1), axis=0, return_counts=True)
    order = np.argsort(-moves, kind="stable")[:MOST_ROWS]
    rows = [(names[pairs[k, 0]], names[pairs[k, 1]], f"{moves[k]:,}") for k in order]
    print_table(screen, ("from", "to", "moved"), rows, words=("from", "to"))
    _end_table(screen, len(pairs), "pairs of classes")


def _show_counts(screen: Console, names: list[str], done: core.Relabelling) -> None:
    """Classes with their counts: all of them where they are few, else those that changed most."""
    before = np.bincount(done.ledger.original, minlength=len(names))
    after = np.bincount(done.labels, minlength=len(names))
    change = after - before
    order = np.argsort(-np.abs(change), kind="stable") if len(names) > MOST_ROWS else range(len(names))
    rows = [(names[c], f"{before[c]:,}", f"{after[c]:,}", f"{change[c]:+,}") for c in order[:MOST_ROWS]]
    print_table(screen, ("class", "before", "after", "change"), rows, words=("class",))
    _end_table(screen, len(names), "classes, with smaller changes or none")


def _end_table(screen: Console, number: int, what: str) -> None:
    if number > MOST_ROWS:
        print_line(screen, f"... and {number - MOST_ROWS:,} more {what}", "dim")
    print_line(screen)


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
