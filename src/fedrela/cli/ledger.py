"""``fedrela ledger show | verify | undo``: which labels were changed, whether the record is sound, and undo."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from fedrela import core
from fedrela.cli.relabel import show_flows
from fedrela.cli.terminal import LONGEST_NAME, command_group, console, print_line, print_table, refuse_existing
from fedrela.core.audit_log import LOG, PASS, AuditLog, Entry, ledgers_at, record_ledger
from fedrela.core.audit_log import verify as compare_with_log
from fedrela.core.ledger import arrays_digest
from fedrela.core.replay import first_difference, replay
from fedrela.data.posterior_tables import ColumnOptions
from fedrela.data.posteriors import encode_columns, read_posteriors
from fedrela.errors import ArgumentError, DataError, FedrelaError, IntegrityError
from fedrela.files import digest, digest_file, write_bytes
from fedrela.runfolder.names import MANIFEST
from fedrela.text import listed, percent, plural, printable, probability, shown

HELP = """
Show which labels were changed, verify the record, and undo the changes.

[bold]Example[/]: fedrela ledger show clinic.ledger.json; fedrela ledger verify clinic.ledger.json --data clinic.csv;
fedrela ledger undo clinic.ledger.json --reason "the ward coded wrongly until May"

PATH is the ledger of fedrela relabel, or a client's folder of the plug-in, labels/EXPERIMENT/CLIENT, with all
its passes.
"""
HIDDEN = ("number", "time", "event", "previous", "sha256", "ledger", "ledger_sha256", "labels_sha256", "file_sha256",
          "output_sha256", "bytes_sha256", "reading")  # fmt: skip  # of an entry in the table of the log

NODE_FOLDER, NODE_LEDGER = re.compile(r"client-[0-9]+"), re.compile(r"ledger-[0-9]{6,9}\.json")
SHA256 = re.compile(r"[0-9a-fA-F]{64}")

Ledgers = Annotated[Path, typer.Argument(metavar="PATH", help="A ledger, or a client's folder.", show_default=False)]
Moves = Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Number of moves to show, the most probable first.")]
Model = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The model's weights, .safetensors, for --net.", show_default=False)
]
Net = Annotated[
    str | None,
    typer.Option(metavar="MODULE:NAME", help="Class or function that builds the model.", show_default=False),
]
Data = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|MODULE:NAME",
        help="The posterior file; with --model the rows that it scored: .npz with x and y, or your function for them.",
        show_default=False,
    ),
]
Forward = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME",
        help="Your function of model and batch, if you gave one to the plug-in.",
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="KEY", help="Key or position of the label, if you gave it to the plug-in.", show_default=False
    ),
]
Outputs = Annotated[
    str | None,
    typer.Option(metavar="logits|probabilities|logit", help="What the model returns.", show_default="logits"),
]
Head = Annotated[
    str | None,
    typer.Option(
        metavar="SHA256",
        help="The head that you noted earlier, all 64 digits: it must be in the log.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite STEM.original.csv if it exists.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is written into the log.", show_default=False)]


def show(path: Ledgers, moves: Moves = 20) -> None:
    """Show a ledger: settings, limits, digests, moves by class and by row, and the log with its times.

    [bold]Example[/]: fedrela ledger show clinic.ledger.json --moves 50
    """
    log, ledgers = ledgers_at(path)
    screen = console()
    for name, ledger in ledgers.items():
        n, m = ledger.original.size, len(ledger)
        print_line(screen, f"{printable(name)}: {m:,} of {n:,} labels moved ({percent(m / max(n, 1), 2)})", "bold")
        for line in _facts(ledger):
            print_line(screen, line)
        print_line(screen)
        _show_moves(screen, ledger, moves)
    _show_log(screen, log.entries())


def _facts(ledger: core.Ledger) -> list[str]:
    options, origin = ledger.options, ledger.provenance or core.Provenance()
    seed = options.get("seed") if origin.seed is None else origin.seed
    names = _names(ledger)
    forbidden = [f"{names[old]}:{names[new]}" for old, new in options.get("forbidden", [])]
    limits = {name: value for name, value in origin.limits.items() if name not in ("tau", "forbidden", "ineligible")}
    if limits.get("class_tau"):
        of = dict(zip(map(str, range(len(names))), names, strict=True))
        limits["class_tau"] = ", ".join(f"{of.get(c, c)} {tau:g}" for c, tau in limits["class_tau"].items())
    facts = {
        "settings": ", ".join(
            f"{key} {options[key]}"
            for key in ("tau", "spread", "threshold", "target", "normalize", "method")
            if key in options
        )
        + f", seed {seed}"
        + (f", preset {origin.preset}" if origin.preset else ""),
        "limits": ", ".join(
            f"{key} {value}" for key, value in (limits or {"max_fraction": options.get("max_fraction")}).items()
        ),
        "forbidden": listed(forbidden),
        "protected": f"{plural(kept, 'sample')} that must not move" if (kept := options.get("ineligible", 0)) else "",
        "agreement": ""
        if (confirmed := origin.agreement) is None
        else f"the model confirms {percent(confirmed)} of the labels",
        "made by": "" if origin.version is None else f"fedrela {origin.version}",
        "client": f"{options['client']} of {options['experiment']}, round {options['round']}"
        if "client" in options
        else "",
        "refusal": ledger.refusal or "",
        "ledger": f"sha256 {ledger.sha256}",
        "labels": f"sha256 {ledger.labels_sha256}",
    } | {
        name: f"sha256 {value}"
        for name in ("model", "inputs", "policy")
        if (value := getattr(origin, f"{name}_sha256"))
    }
    said = [f"{name:<10} {printable(what)}" for name, what in facts.items() if what]
    return said + [f"{'note':<10} {printable(note)}" for note in ledger.notes]


def _names(ledger: core.Ledger) -> list[str]:
    names = ledger.class_names or tuple(map(str, range(ledger.num_classes)))
    return [printable(name, LONGEST_NAME) for name in names]


def _show_moves(screen: Console, ledger: core.Ledger, most: int) -> None:
    names = _names(ledger)
    if not len(ledger):
        return
    show_flows(screen, names, ledger)
    order = np.argsort(-ledger.rho, kind="stable")[:most]
    which = [printable(ledger.ids[i], LONGEST_NAME) if ledger.ids else str(i) for i in ledger.index]
    cells = [
        (
            which[k],
            names[ledger.old[k]],
            names[ledger.new[k]],
            probability(ledger.posterior[k]),
            probability(ledger.rho[k]),
        )
        for k in order
    ]
    if cells:
        print_table(screen, ("id", "from", "to", "posterior", "rho"), cells, left=("id", "from", "to"))
        left = f"... and {len(ledger) - len(cells):,} more" if len(ledger) > len(cells) else ""
        print_line(screen, left, "dim")


def _show_log(screen: Console, entries: list[Entry]) -> None:
    if not entries:
        print_line(screen, "there is no log beside it")
        return
    rows = [
        (str(entry["number"]), entry["time"], printable(entry["event"], 20),
         ", ".join(f"{key} {printable(value, 80)}" for key, value in entry.items() if key not in HIDDEN))
        for entry in entries
    ]  # fmt: skip
    print_table(screen, ("entry", "time", "event", "what"), rows, left=("time", "event", "what"))
    print_line(screen, f"head {entries[-1]['sha256']}")


def verify(
    path: Ledgers,
    model: Model = None,
    net: Net = None,
    data: Data = None,
    forward: Forward = None,
    label: Label = None,
    outputs: Outputs = None,
    head: Head = None,
) -> None:
    """Check that a ledger was not tampered with, and that model and data give the same moves.

    [bold]Example[/]: fedrela ledger verify clinic.ledger.json --data clinic.csv; fedrela ledger verify labels/icu/3
    --model round-40.safetensors --net task:Net --data rows.npz

    Always: the ledger's own digest, the log's chain of digests, and that the log recorded this ledger and these files.
    With --data the moves are replayed and compared row by row, and the probabilities with those that were read; with
    --model and --net the posterior is replayed too. Any difference is reported, with exit code 4. Of several passes,
    those made by this model are replayed. Store the head that is shown in a separate place: --head detects a log that
    somebody rewrote as a whole, digests included.

    --net imports your module, which runs its code, and so do --forward and a function as --data.
    """
    if (model is None) != (net is None) or (model is not None and data is None):
        raise ArgumentError("--model, --net and --data belong together: the weights, the model class, the rows")
    if outputs is not None and model is None:
        raise ArgumentError("--outputs says what the model returns; give --model, --net and --data too")
    if head is not None and not SHA256.fullmatch(head):
        raise ArgumentError(f"expected the 64 hexadecimal digits of a head, got {shown(head)}", argument="--head")
    log, ledgers = ledgers_at(path)
    screen, said = console(), compare_with_log(log, ledgers, (head or "").lower())
    replays = _replays(log, ledgers, data, model, net, {"forward": forward, "label": label, "outputs": outputs})
    for name, again in replays.items():
        try:
            _compare(ledgers[name], again())
        except FedrelaError as error:
            raise error.prefixed(f"{path}: replay of {name}") from None
        said.append(f"{name}: replay equal: {plural(len(ledgers[name]), 'move')}")
    for name in ledgers.keys() - replays.keys() if replays else ():
        said.append(f"{name}: not replayed: another model made it")
    if data is not None and model is None:
        said += _other_bytes(log, ledgers, Path(data))
    for line in said:
        print_line(screen, printable(line))


def _compare(ledger: core.Ledger, replayed: core.Ledger) -> None:
    """Raise an `IntegrityError` if the moves of a ledger, or the posterior that gave them, differ from the replay's."""
    if (differ := first_difference(ledger, replayed)) is not None:
        raise IntegrityError(f"not equal: {differ}")
    digests = [each.provenance.inputs_sha256 for each in (ledger, replayed) if each.provenance is not None]
    if len(digests) == 2 and None not in digests and digests[0] != digests[1]:
        raise IntegrityError("the moves are equal, but the probabilities are not those that were read: one was changed")


def _other_bytes(log: AuditLog, ledgers: dict[str, core.Ledger], data: Path) -> list[str]:
    """Return a finding if a file of equal labels and probabilities is not, byte for byte, the one that was read."""
    entries = [entry for name, entry in log.ledger_entries().items() if name in ledgers and "file_sha256" in entry]
    now = digest_file(data) if entries else ""
    return [
        f"{data.name}: not the bytes that entry {entry['number']} of {entry['time']} recorded: "
        "sorted or written anew, or another column was changed"
        for entry in entries
        if entry["file_sha256"] != now
    ]


def _replays(
    log: AuditLog,
    ledgers: dict[str, core.Ledger],
    data: str | None,
    model: Path | None,
    net: str | None,
    how: dict[str, Any],
) -> dict[str, Callable[[], core.Ledger]]:
    """Return functions that replay the moves of each ledger, from a posterior file or from a model and its rows."""
    if data is None:
        return {}
    if model is None or net is None:
        return {
            name: partial(_replayed, each, log.ledger_entries().get(name, {}), Path(data))
            for name, each in ledgers.items()
        }
    from fedrela.components import import_object
    from fedrela.plugin.ledger_replay import load_model, load_rows, made_by, replay_pass

    if how["forward"]:
        how["forward"] = import_object(how["forward"])
    if how["label"] and how["label"].isdecimal():
        how["label"] = int(how["label"])
    network, rows = load_model(net, model), load_rows(data)
    own = {name: each for name, each in ledgers.items() if made_by(network, each)} or ledgers
    return {name: partial(replay_pass, each, network, rows, **how) for name, each in own.items()}


def _replayed(ledger: core.Ledger, entry: Entry, data: Path) -> core.Ledger:
    """Return the ledger that a posterior file gives."""
    if "client" in ledger.options:
        raise ArgumentError("made by a model: give --model and --net, and its rows as --data")
    recorded = entry.get("reading", {})
    if not isinstance(recorded, dict) or not recorded.keys() <= {each.name for each in fields(ColumnOptions)}:
        raise IntegrityError(f"reading: expected the options of columns in entry {entry['number']} of the log")
    reading = {name: tuple(value) if isinstance(value, list) else value for name, value in recorded.items()}
    file = read_posteriors(data, **reading)
    order = np.arange(len(file.labels))
    if ledger.ids and file.ids and sorted(ledger.ids) == sorted(file.ids):  # the file may have been sorted since
        place = {name: row for row, name in enumerate(file.ids)}
        order = np.array([place[name] for name in ledger.ids], np.int64)
    if not np.array_equal(file.labels[order], ledger.original):
        raise IntegrityError(f"{data}: its labels are not the ledger's original labels")
    inputs = arrays_digest({"posterior": np.asarray(file.posterior[order], np.float64)})
    return replace(replay(ledger, file.posterior[order]), provenance=core.Provenance(inputs_sha256=inputs))


def undo(path: Ledgers, reason: Reason, force: Force = False) -> None:
    """Undo a re-labelling; the reason becomes an entry in the log.

    [bold]Example[/]: fedrela ledger undo clinic.ledger.json --reason "the ward coded wrongly until May"

    For a ledger of fedrela relabel, the original labels are written to STEM.original.csv, with their ids. A client of
    the plug-in, named by its folder, returns to its original labels from its next round on. Nothing is deleted.
    """
    if not reason.strip():
        raise ArgumentError("expected a reason, got nothing", argument="--reason")
    if path.name == LOG or path.suffix == ".log":
        raise ArgumentError(f"{path} is a log; expected the ledger beside it, or the client's folder")
    log, ledgers = ledgers_at(path)
    folder = path if path.is_dir() else path.parent
    if why := _why_not(folder.resolve(), path.name):
        raise ArgumentError(f"{path}: belongs to {why}")
    compare_with_log(log, ledgers, outputs=False)  # nothing is taken from the new labels
    if (undone := log.last_undo()) is not None:
        raise DataError(f"{path}: was already undone on {undone['time']}: {printable(undone.get('reason'), 80)}")
    if path.is_dir() or PASS.fullmatch(path.name):
        from fedrela.plugin.store import LabelStore

        LabelStore(folder.absolute().parent.parent, folder.absolute().parent.name, folder.absolute().name).undo(reason)
        what = "this client trains on its original labels from its next round on"
    else:
        what = f"original labels in {_write_original(path, ledgers[path.name], log, reason, force)}"
    print_line(
        console(), f"undone: {printable(what)}; entry {log.entries()[-1]['number']} of {printable(log.path.name)}"
    )


def _why_not(folder: Path, name: str) -> str:
    """Return whose ledger it is if nobody would read an undo, and what to do instead; else an empty string."""
    instead = "fedrela.undo returns the original labels"
    if (folder.parent / MANIFEST).exists():
        return f"a run folder, where there is nothing to undo; {instead}"
    if not (NODE_LEDGER.fullmatch(name) and NODE_FOLDER.fullmatch(folder.name)):
        return ""
    if (folder / "data.sha256").exists():
        undone = (
            "enabled = false under [policy] in its node.toml: from its next round on it trains on its original labels"
        )
        return f"a node of a federation, which reads no undo; set {undone}"
    return f"a client of an exported app, which reads no undo; {instead}"


def _write_original(path: Path, ledger: core.Ledger, log: AuditLog, reason: str, force: bool) -> Path:
    labels = core.undo(ledger).tolist()
    written = log.ledger_entries().get(path.name, {}).get("labels")  # as the file has them
    if not isinstance(written, list) or len(written) != ledger.num_classes:
        written = ledger.class_names or range(ledger.num_classes)
    ids = ledger.ids or range(len(labels))
    content = encode_columns({"id": list(ids), "label": [str(written[label]) for label in labels]}, ".csv")
    target = path.with_name(f"{path.name.removesuffix(path.suffix).removesuffix('.ledger')}.original.csv")
    refuse_existing([target], force)
    try:
        write_bytes(target, content, overwrite=force, private=True)
    except OSError as error:
        raise ArgumentError(f"{target}: cannot be written: {error.strerror}") from None
    if path.name not in log.ledger_entries():
        record_ledger(log, path.name, ledger, "found")
    log.append("undo", reason=reason, moved=len(ledger), output=target.name, output_sha256=digest(content))
    return target


app = command_group(HELP, show=show, verify=verify, undo=undo)
