"""``fedrela preview FILE`` and ``relabel FILE``: what a re-labelling would do, and new labels with a ledger."""

from __future__ import annotations

import inspect
import json
import shlex
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from fedrela import __version__, core
from fedrela.arguments import check_choice
from fedrela.cli.posterior_options import (
    LIMITS,
    File,
    Forbid,
    allowed_moves,
    read_file,
    reading_flags,
    take_reading,
)
from fedrela.cli.terminal import LONGEST_NAME, console, print_line, print_table, refuse_existing
from fedrela.core.audit_log import AuditLog, log_beside, record_ledger
from fedrela.core.equations import agreement
from fedrela.core.ledger import arrays_digest
from fedrela.core.limits import Limits
from fedrela.core.previews import poor_agreement
from fedrela.core.relabel_options import PreviewKeywords, RelabelKeywords, RelabelOptions, show_keywords
from fedrela.data.posterior_tables import ColumnOptions
from fedrela.data.posteriors import PosteriorFile, encode_columns
from fedrela.errors import ArgumentError, DataError
from fedrela.files import digest, digest_file, write_bytes
from fedrela.options import options_of
from fedrela.text import percent, printable, shown

MOST_ROWS = 20
TOP_CLASSES = 3
LEDGER_FORMATS = ("json", "npz")
METHOD = "Method"  # a panel of a help page
METAVARS = {
    "tau": "SHARE",
    "max_fraction": "SHARE",
    "threshold": "higher|order|linear|NUMBER",
    "params": "NAME=VALUE,...",
    "keep": "ROW",
    "class_tau": "CLASS=SHARE",
}
LISTS = ("keep", "class_tau")  # flags that are given several times
RECORDED_LIMITS = ("max_fraction", "forbidden", "ineligible", "absent", "class_tau")
SET_BY_FORBID = ("allowed", "forbidden")  # these have no flags of their own


def flags(*names: str) -> list[inspect.Parameter]:
    """Return options of `RelabelOptions` as flags of a command; help, values and defaults are those declared there."""
    made = []
    for each in [each for each in options_of(RelabelOptions) if each.name in names and each.name not in SET_BY_FORBID]:
        info = typer.Option(
            metavar=METAVARS.get(each.name) or "|".join(each.choices),
            help=f"{each.help[0].upper()}{each.help[1:]}.{' Repeatable.' if each.name in LISTS else ''}",
            rich_help_panel=LIMITS if each.name == "max_fraction" or each.name in Limits.__annotations__ else METHOD,
        )
        default = None if each.name in LISTS else each.default
        kind: Any = list[str] | None if each.name in LISTS else str | None if default is None else type(default)
        by_name = inspect.Parameter.KEYWORD_ONLY
        made.append(inspect.Parameter(each.name, by_name, default=default, annotation=Annotated[kind, info]))
    return made


def parsed(values: dict[str, Any], taus: Sequence[float] = ()) -> dict[str, Any]:
    """Return the flags as keywords of `fedrela.relabel`; raise for a wrong one, or tau, before a large file is read."""
    with suppress(KeyError, TypeError, ValueError):  # not given, or the name of a quantile rule
        values = values | {"threshold": float(values["threshold"])}
    if isinstance(values.get("params"), str):
        try:
            values = values | tomllib.loads(f"params = {{ {values['params']} }}")
        except ValueError:
            raise ArgumentError(f"--params: expected NAME = VALUE, ..., got {shown(values['params'])}") from None
    if "keep" in values:
        values = values | {"keep": values["keep"] or ()}
    if values.get("class_tau"):
        values = values | {"class_tau": dict(map(_class_tau, values["class_tau"]))}
    checked = vars(RelabelOptions(**values))
    for tau in taus:
        RelabelOptions(tau=tau)
    return {name: checked[name] for name in values}


def _class_tau(text: str) -> tuple[str, float]:
    name, _, share = text.rpartition("=")
    try:
        return name, float(share)
    except ValueError:
        what = f"expected CLASS=SHARE, such as ill=0.1, got {shown(text)}"
        raise ArgumentError(what, argument="--class-tau") from None


SEED = typer.Option(metavar="NUMBER", min=0, help="Seed of the draws: same seed, same labels.", rich_help_panel=METHOD)
OUT = typer.Option(metavar="DIR", help="Folder for the results.", show_default="the folder of FILE")
LEDGER_FORMAT = typer.Option(metavar="|".join(LEDGER_FORMATS), help="json for reading, npz for size.")
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


@show_keywords([*flags(*PreviewKeywords.__annotations__), *reading_flags()], evaluate=True)
def preview(file: File, tau: Taus = None, *, forbid: Forbid = None, **flags: Any) -> None:
    """Show how many labels would move at several tau, on average; nothing is written.

    [bold]Example[/]: fedrela preview clinic.csv --tau 0.01 --tau 0.05

    Also shown: how well the model agrees with the labels (plain, and as kappa, corrected for chance), and warnings
    where re-labelling is likely to do harm. If it looks right, run fedrela relabel with the same options.
    """
    taus, reading = tau or core.TAUS, take_reading(flags)
    keywords = parsed(flags, taus)
    data = read_file(file, reading)
    expected = expected_moves(data, taus, rules_of(data, forbid) | keywords)
    show_preview(data.path, [printable(name, LONGEST_NAME) for name in data.class_names], expected)


def rules_of(data: PosteriorFile, forbid: list[str] | None) -> dict[str, Any]:
    """Return which moves may happen, which rows may move, and the names by which limits may name both."""
    allowed = allowed_moves(data, forbid)
    return {"allowed": allowed, "eligible": data.eligible, "class_names": data.class_names, "ids": data.ids}


def expected_moves(data: PosteriorFile, taus: Sequence[float], rules: dict[str, Any]) -> core.Preview:
    """Return the preview of a file; raise a `DataError` that names the row if it is refused."""
    expected = core.preview(data.posterior, data.labels, taus, **rules)
    if expected.refusal is not None:
        raise DataError(f"{data.place(expected.refused_at)}: refused: {expected.refusal}")
    return expected


def show_preview(path: object, names: list[str], expected: core.Preview) -> None:
    """Print expected moves, agreement and warnings."""
    screen = console()
    print_line(screen, f"{printable(path)}: {expected.counts.sum():,} samples, {len(names):,} classes", "bold")
    print_line(screen)
    rows = [
        (f"{row['tau']:g}", f"{row['moves']:,.1f}", percent(row["share"], 2), _top(row["into"], names))
        for row in expected.rows()
    ]
    print_table(screen, ("tau", "expected moves", "share", "mostly to"), rows, left=("tau", "mostly to"))
    print_line(screen)
    agreement = "unknown" if np.isnan(expected.agreement) else percent(expected.agreement)
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


@show_keywords([*flags(*RelabelKeywords.__annotations__), *reading_flags()], evaluate=True)
def relabel(
    file: File,
    out: Annotated[Path | None, OUT] = None,
    *,
    forbid: Forbid = None,
    seed: Annotated[int, SEED] = 0,
    ledger_format: Annotated[str, LEDGER_FORMAT] = "json",
    dry_run: Annotated[bool, DRY_RUN] = False,
    force: Annotated[bool, FORCE] = False,
    **flags: Any,
) -> None:
    """Re-label the majority-class samples that look most like a rarer class.

    [bold]Example[/]: fedrela relabel clinic.csv --tau 0.03 --forbid disease:healthy --out relabelled

    FILE is never written to. STEM.relabelled.csv (or .parquet, .npz) has a row for each row of FILE: id, old and new
    label, whether it moved, posterior of the new label, and rho, the probability of the move. STEM.ledger.json records
    every move with the original labels, and STEM.ledger.log what was done when, as a hash chain (see fedrela ledger).
    Numbers that are not probabilities are refused: nothing is written, exit code 3.
    """
    reading = take_reading(flags)
    keywords = parsed(flags)
    ending = check_choice("--ledger-format", ledger_format, LEDGER_FORMATS)
    folder = file.parent if out is None else out
    labels_path = folder / f"{file.stem}.relabelled{file.suffix.lower()}"
    ledger_path = folder / f"{file.stem}.ledger.{ending}"
    if not dry_run:
        _check_target(folder, (labels_path, ledger_path), force)
    data = read_file(file, reading)
    done = core.relabel(data.posterior, data.labels, seed=seed, **rules_of(data, forbid), **keywords)
    if done.refusal is not None:
        raise DataError(f"{data.place(done.refused_at)}: refused: {done.refusal}")
    screen = console()
    if not dry_run:
        _write(labels_path, ledger_path, (data, reading), done, _own_ledger(data, done, keywords["preset"]), force)
    _show(screen, data, done)
    if dry_run:
        print_line(screen, "dry run: nothing was written")
        return
    undo = f"fedrela.undo({json.dumps(str(ledger_path), ensure_ascii=False)})"
    if str(ledger_path).isprintable():  # else the line as it is shown would name another file
        undo = f"fedrela ledger undo {shlex.quote(str(ledger_path))} --reason TEXT; in Python {undo}"
    undo += " returns the original labels as class numbers; the ledger has the names"
    for name, what in (("labels", labels_path), ("ledger", ledger_path), ("undo  ", undo)):
        screen.print(f"{name}  {printable(what)}", soft_wrap=True)


def _check_target(folder: Path, paths: tuple[Path, Path], force: bool) -> None:
    """Raise if the results cannot be written, before a large file is read."""
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder} is a file; expected a folder", argument="--out")
    refuse_existing(paths, force, ", --out chooses another folder")
    log_beside(paths[1]).entries()


def _own_ledger(data: PosteriorFile, done: core.Relabelling, preset: str) -> core.Ledger:
    """Return the ledger with the file's class names and row ids, and the provenance of the moves."""
    y = data.labels
    where_from = core.Provenance(
        version=__version__,
        seed=done.ledger.options["seed"],
        preset=preset,
        limits={name: value for name, value in done.ledger.options.items() if name in RECORDED_LIMITS},
        inputs_sha256=arrays_digest({"posterior": np.asarray(data.posterior, np.float64)}),
        agreement=agreement(data.posterior, y) if y.size else None,
    )
    return replace(done.ledger, class_names=data.class_names, ids=data.ids, provenance=where_from)


def _write(
    labels_path: Path,
    ledger_path: Path,
    source: tuple[PosteriorFile, ColumnOptions],
    done: core.Relabelling,
    ledger: core.Ledger,
    force: bool,
) -> None:
    """Write the ledger first and its entry in the log, so that there are never new labels without the original ones."""
    (data, reading), path = source, ledger_path
    content = encode_columns(data.results(done), labels_path.suffix)
    try:
        ledger.save(path, overwrite=force)
        log: AuditLog = log_beside(ledger_path)
        path = log.path
        record_ledger(
            log, ledger_path.name, ledger, file=str(data.path), file_sha256=digest_file(data.path),
            reading={name: value for name, value in vars(reading).items() if value},
            labels=list(map(str, data.written)), output=labels_path.name, output_sha256=digest(content),
        )  # fmt: skip
        path = labels_path
        write_bytes(path, content, overwrite=force, private=True)
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be written: {error.strerror}; --out chooses another folder") from None


def _show(screen: Console, data: PosteriorFile, done: core.Relabelling) -> None:
    names = [printable(name, LONGEST_NAME) for name in data.class_names]
    n, m, tau = done.labels.size, done.moved.size, done.ledger.options["tau"]
    print_line(screen, f"{printable(data.path)}: {n:,} samples, {len(names):,} classes, tau {tau:g}", "bold")
    print_line(screen)
    if m:
        show_flows(screen, names, done.ledger)
        _show_counts(screen, names, done)
    print_line(screen, f"moved {m:,} of {n:,} labels ({percent(done.share, 2)})", "bold")
    for note in [*_no_room(done.ledger), *done.ledger.notes]:
        print_line(screen, f"note: {printable(note)}")
    if poor := poor_agreement(data.posterior, data.labels):
        print_line(screen, f"warning: {poor}", "yellow")


def _no_room(ledger: core.Ledger) -> list[str]:
    """Say that no label could move since tau * n is below 1 for every class, if that is so."""
    options, n = ledger.options, ledger.original.size
    if options["method"] == "fedrela" and options["threshold"] not in ("higher", "order"):
        return []  # these thresholds do not count samples
    tau = RelabelOptions(tau=options["tau"], class_tau=options.get("class_tau")).taus(ledger.num_classes).max()
    return (
        [f"no label can move: tau {tau:g} of {n:,} samples is less than one sample"] if n and int(tau * n) < 1 else []
    )


def show_flows(screen: Console, names: list[str], ledger: core.Ledger) -> None:
    """Print the moves from class to class, the most frequent first."""
    pairs, moves = np.unique(np.stack([ledger.old, ledger.new], axis=1), axis=0, return_counts=True)
    order = np.argsort(-moves, kind="stable")[:MOST_ROWS]
    rows = [(names[pairs[k, 0]], names[pairs[k, 1]], f"{moves[k]:,}") for k in order]
    print_table(screen, ("from", "to", "moved"), rows, left=("from", "to"))
    _end_table(screen, len(pairs), "pairs of classes")


def _show_counts(screen: Console, names: list[str], done: core.Relabelling) -> None:
    """Print the classes with their counts: all of them if they are few, else those that changed most."""
    before = np.bincount(done.ledger.original, minlength=len(names))
    after = np.bincount(done.labels, minlength=len(names))
    change = after - before
    order = np.argsort(-np.abs(change), kind="stable") if len(names) > MOST_ROWS else range(len(names))
    rows = [(names[c], f"{before[c]:,}", f"{after[c]:,}", f"{change[c]:+,}") for c in order[:MOST_ROWS]]
    print_table(screen, ("class", "before", "after", "change"), rows, left=("class",))
    _end_table(screen, len(names), "classes, with smaller changes or none")


def _end_table(screen: Console, number: int, what: str) -> None:
    if number > MOST_ROWS:
        print_line(screen, f"... and {number - MOST_ROWS:,} more {what}", "dim")
    print_line(screen)
