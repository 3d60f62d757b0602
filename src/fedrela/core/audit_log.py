"""The log beside a ledger: what happened to the labels and when, as entries that form a hash chain.

Every entry holds the digest of the one before it, and its own. An entry that was changed, removed or inserted
breaks the chain at that line. A ledger's entry holds the ledger's digest, so a ledger that was replaced, even with a
matching digest, no longer matches its log. Rewriting the whole log leaves an intact chain: keep its last digest, the
head, elsewhere, and compare.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

from fedrela.core.ledger import LARGEST as LARGEST_LEDGER
from fedrela.core.ledger import Ledger, record_digest
from fedrela.errors import DataError, IntegrityError
from fedrela.files import append_line, read_plain, size_and_digest
from fedrela.text import shown

LARGEST = 1 << 28  # bytes
LOG = "log.jsonl"  # of a client's folder
PASS = re.compile(r"pass-([0-9]{4,})\.json")  # a ledger in a client's folder
NO_ENTRY = "0" * 64  # the previous digest of the first entry
Entry = dict[str, Any]


class AuditLog:
    """An append-only log, one JSON object per line; only its owner may read it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def append(self, event: str, **facts: Any) -> Entry:
        """Add an entry with the current time, one process at a time; it is on disk when this returns."""
        added: Entry = {}

        def line(before: bytes) -> bytes:
            entries = self._parse(before)
            previous = entries[-1]["sha256"] if entries else NO_ENTRY
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            added.update(number=len(entries) + 1, time=stamp, event=event, **facts, previous=previous)
            added["sha256"] = record_digest(added)
            return json.dumps(added).encode() + b"\n"

        append_line(self.path, line)
        return added

    def entries(self) -> list[Entry]:
        """Return all entries; raise an `IntegrityError` that names the line if the chain is broken."""
        if not os.path.lexists(self.path):
            return []
        try:
            return self._parse(read_plain(self.path, LARGEST))
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror}") from None

    def ledger_entries(self) -> dict[str, Entry]:
        """Return the newest entry of every ledger file in the log, by file name."""
        found = [entry for entry in self.entries() if "ledger_sha256" in entry]
        for entry in found:
            _file_of(self, entry, "ledger")
        return {entry["ledger"]: entry for entry in found}

    def last_undo(self) -> Entry | None:
        """Return the undo that no re-labelling followed, or None."""
        last = [entry for entry in self.entries() if entry["event"] in ("relabel", "undo")][-1:]
        return last[0] if last and last[0]["event"] == "undo" else None

    def _parse(self, data: bytes) -> list[Entry]:
        entries: list[Entry] = []
        previous = NO_ENTRY
        for number, line in enumerate(data.split(b"\n"), 1):
            try:
                entry = json.loads(line)
                body = {key: value for key, value in entry.items() if key != "sha256"}
                valid = entry["sha256"] == record_digest(body) and entry["number"] == len(entries) + 1
                valid = valid and isinstance(entry["event"], str) and isinstance(entry["time"], str)
            except (AttributeError, ValueError, KeyError, TypeError, RecursionError):
                continue  # empty, or cut by a kill: nothing refers to it, or the next entry breaks the chain
            if not valid or entry.get("previous") != previous:
                raise IntegrityError(
                    f"{self.path}:{number}: the chain of entries is broken: one was changed or removed"
                )
            entries.append(entry)
            previous = entry["sha256"]
        return entries


def record_ledger(log: AuditLog, name: str, ledger: Ledger, event: str = "", **facts: Any) -> Entry:
    """Add the entry of a ledger that was written as the file `name`; by default it is a relabel or a refusal."""
    event = event or ("relabel" if ledger.refusal is None else "refusal")
    summary = {"samples": int(ledger.original.size), "moved": len(ledger), "labels_sha256": ledger.labels_sha256}
    summary["bytes_sha256"] = size_and_digest(log.path.parent / name)[1]
    return log.append(event, ledger=name, ledger_sha256=ledger.sha256, **summary, **facts)


def check_ledger(log: AuditLog, name: str, ledger: Ledger) -> Entry | None:
    """Return the newest entry of ledger file `name`, or None; raise `IntegrityError` if it is another ledger's."""
    entry = log.ledger_entries().get(name)
    if entry is not None and entry["ledger_sha256"] != ledger.sha256:
        raise IntegrityError(
            f"{log.path.parent / name}: not the ledger of {entry.get('moved')} moves that entry {entry['number']} of "
            f"{log.path.name} recorded on {entry['time']}; this one has {len(ledger)}: a move was changed or removed"
        )
    return entry


def log_beside(ledger: str | Path) -> AuditLog:
    """Return the log of a ledger file: one per client's folder, else one per file.

    >>> log_beside("labels/icu/3/pass-0001.json").path.as_posix(), log_beside("out/clinic.ledger.json").path.as_posix()
    ('labels/icu/3/log.jsonl', 'out/clinic.ledger.log')
    """
    ledger = Path(ledger)
    return AuditLog(ledger.with_name(LOG) if PASS.fullmatch(ledger.name) else ledger.with_suffix(".log"))


def ledgers_at(path: str | Path) -> tuple[AuditLog, dict[str, Ledger]]:
    """Return the log and the ledgers, by file name, of a ledger file or of a client's folder with all its passes."""
    path = Path(path)
    if not path.is_dir():
        return log_beside(path), {path.name: Ledger.load(path)}
    names = sorted(each.name for each in path.iterdir() if PASS.fullmatch(each.name))
    log = AuditLog(path / LOG)
    if not names and not log.entries():
        raise DataError(f"{path}: no ledger here; expected a ledger file, or a client's folder with pass-0001.json")
    return log, {name: Ledger.load(path / name) for name in names}


def verify(log: AuditLog, ledgers: dict[str, Ledger], head: str = "", *, outputs: bool = True) -> list[str]:
    """Compare ledgers with their log, and return findings as sentences; raise an `IntegrityError` if they differ.

    `head` is the digest of the log's last entry at an earlier time; the log may have grown since. With `outputs` the
    files of new labels are compared, too, unless a later re-labelling has replaced them.
    """
    entries, findings = log.entries(), []
    digests = [entry["sha256"] for entry in entries]
    if head and head not in digests:
        raise IntegrityError(f"{log.path}: no entry has the digest {head}: the log was rewritten or cut short")
    for name, ledger in ledgers.items():
        if (entry := check_ledger(log, name, ledger)) is not None:
            findings.append(f"{name}: matches entry {entry['number']} of {entry['time']}: {len(ledger)} moves")
            if entry["event"] == "found":
                findings.append(
                    f"{name}: logged when it was found, not when it was made: "
                    "its writer was killed, the log was removed, or it was saved without one"
                )
        elif ledger.provenance is not None or entries:
            raise IntegrityError(
                f"{log.path.parent / name}: has no entry in {log.path.name}: the log was removed or cut short"
            )
        else:
            findings.append(f"{name}: has no log; matches its own digest: {len(ledger)} moves")
            _check_bytes(log.path.parent / name, ledger, findings)
    newest = {str(entry.get("output")): entry["number"] for entry in entries if "ledger_sha256" in entry}
    for entry in log.ledger_entries().values():
        is_newest = newest[str(entry.get("output"))] == entry["number"]  # of those that wrote this file
        _check_files(log, entry, findings, outputs and is_newest)
    if (undone := log.last_undo()) is not None:
        findings.append(f"undone on {undone['time']}, entry {undone['number']}: {undone.get('reason')}")
    if entries:
        noun = "entry" if len(entries) == 1 else "entries"
        findings.append(f"{log.path.name}: {len(entries)} {noun}, unbroken; head {digests[-1]}")
    return findings


def _check_bytes(path: Path, ledger: Ledger, findings: list[str]) -> None:
    """Compare a file with what its ledger writes: JSON has one form, but packed npz may differ by version of zlib."""
    if read_plain(path, LARGEST_LEDGER) == ledger.as_bytes(path.suffix):
        return
    if path.suffix == ".json":
        raise IntegrityError(f"{path}: expected the bytes that its ledger writes, got others: it was changed")
    what = "not the bytes that fedrela writes: it was changed, or compressed by another version of zlib"
    findings.append(f"{path.name}: {what}")


def _check_files(log: AuditLog, entry: Entry, findings: list[str], output: bool) -> None:
    """Compare the ledger of an entry, and with `output` the new labels, with what it recorded."""
    path, when = _file_of(log, entry, "ledger"), f"entry {entry['number']} of {entry['time']}"
    if not os.path.lexists(path):
        raise IntegrityError(f"{path}: was removed; entry {entry['number']} recorded it on {entry['time']}")
    recorded = entry.get("bytes_sha256")
    if _digest(path) != recorded and recorded is not None:
        raise IntegrityError(f"{path}: its bytes were changed after {when}")
    if entry.get("output") is None:
        return
    path = _file_of(log, entry, "output")
    if not output:
        return
    if not os.path.lexists(path):
        findings.append(f"{path.name}: no longer exists")
    elif _digest(path) != entry.get("output_sha256"):
        raise IntegrityError(f"{path}: was changed after {when}")
    else:
        findings.append(f"{path.name}: unchanged")


def _file_of(log: AuditLog, entry: Entry, key: str) -> Path:
    """Return the file beside the log that an entry names; any name the system allows, but no path."""
    name = entry.get(key)
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".."):
        what = f"expected the name of a file in its folder, got {shown(name)}"
        raise IntegrityError(f"{log.path}: entry {entry['number']}: {key}: {what}")
    return log.path.parent / name


def _digest(path: Path) -> str:
    """Return the digest of a plain file, and never wait for a pipe or a device."""
    try:
        return size_and_digest(path)[1]
    except OSError as error:
        why = "a link" if path.is_symlink() else error.strerror
        raise IntegrityError(f"{path}: expected a plain file, got: {why}") from None
