"""``fedrela relabel FILE``: new labels and a ledger beside the file."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from fedrela import core
from fedrela.arguments import check_choice
from fedrela.cli import options
from fedrela.cli.options import METHOD
from fedrela.cli.terminal import LONGEST_NAME, console, print_line, print_table
from fedrela.core.options import RelabelKeywords, show_keywords
from fedrela.data.posteriors import PosteriorFile, read_posteriors
from fedrela.errors import ArgumentError, DataError
from fedrela.files import write_bytes
from fedrela.text import printable

MOST_ROWS = 20
LEDGER_FORMATS = ("json", "npz")

SEED = typer.Option(metavar="NUMBER", min=0, help="Seed of the draws: same seed, same labels.", rich_help_panel=METHOD)
OUT = typer.Option(metavar="DIR", help="Folder for the results.", show_default="the folder of FILE")
LEDGER_FORMAT = typer.Option(metavar="|".join(LEDGER_FORMATS), help="json to read, npz for size.")
DRY_RUN = typer.Option("--dry-run", help="Show the same tables, write nothing.")
FORCE = typer.Option("--force", help="Overwrite the results of an earlier run.")


@show_keywords(options.flags(*RelabelKeywords.__annotations__), evaluate=True)
def relabel(
    file: options.File,
    out: Annotated[Path | None, OUT] = None,
    *,
    forbid: options.Forbid = None,
    label_column: options.LabelColumn = None,
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
    keywords = options.parsed(flags)
    ending = check_choice("--ledger-format", ledger_format, LEDGER_FORMATS)
    folder = file.parent if out is None else out
    labels_path = folder / f"{file.stem}.relabelled{file.suffix.lower()}"
    ledger_path = folder / f"{file.stem}.ledger.{ending}"
    if not dry_run:
        _check_targets(folder, labels_path, ledger_path, force)
    data = read_posteriors(file, label_column=label_column)
    allowed = options.allowed_moves(data, forbid)
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


def _check_targets(folder: Path, labels_path: Path, ledger_path: Path, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder} is a file; expected a folder", argument="--out")
    for path in (labels_path, ledger_path):
        if os.path.lexists(path) and not force:
            raise ArgumentError(f"{path}: exists already; --force overwrites it, --out chooses another folder")


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
