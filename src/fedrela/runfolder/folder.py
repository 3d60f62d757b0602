"""The run folder.

Everything in it but the lock, ``machine.json``, ``timing.jsonl``, ``exclusions.jsonl``, ``report.html`` and
``checkpoint/`` is the same, byte for byte, for the same run, wherever and however often it was interrupted.

The manifest comes last: a folder without it is not a run yet. ``machine.json`` is on disk before any name that
a user's own file could have, so that what an interrupted creation left differs from a folder with other files.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import alone, digest, is_taken, make_folders, measure, read_plain, sweep, write_bytes
from fedrela.files.atomic import TEMPORARY
from fedrela.files.operations import remove, sync_folder
from fedrela.records import Failure
from fedrela.runfolder.checkpoints import Checkpoint, Checkpoints
from fedrela.runfolder.records import (
    CHECKPOINT,
    COMPARED,
    CONFIG,
    LEDGERS,
    LIMIT,
    LOCK,
    MACHINE,
    MANIFEST,
    READABLE,
    REPORT,
    RESULT,
    ROUNDS,
    WRITABLE,
    History,
    Record,
    RecordFolder,
    check_files,
    digests_page,
    page,
    read_digests_page,
    writing,
)

LEDGER = re.compile(r"client-([0-9]{6,})\.json")


class RunFolder(RecordFolder):
    """A run on disk; `create` begins one, `open` opens one.

    Attributes
    ----------
    path
        The folder.
    manifest
        What the run is, as it was given to `create`.
    """

    writable, readable = WRITABLE, READABLE

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        record, data = read_start(self.path)
        self.manifest: Record = {key: value for key, value in record.items() if key != "files"}
        self._history = History(self.path)
        self._checkpoints = Checkpoints(self.path / CHECKPOINT, digest(data), self.path / ROUNDS)
        self._ledgers = self.path / LEDGERS

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Open the run at `path`: a `DataError` where there is none, an `IntegrityError` where it is damaged."""
        return cls(path)

    @classmethod
    def create(
        cls, path: str | Path, manifest: Mapping[str, Any], config: str, machine: Mapping[str, Any]
    ) -> RunFolder:
        """Begin a run in a new or an empty folder.

        Parameters
        ----------
        path
            The folder, made where it is missing.
        manifest
            What the run is, as plain values: see `fedrela.records.RunManifest`.
        config
            The text of ``config.toml``.
        machine
            Start time and facts of the machine, which are never compared.
        """
        with writing(Path(path)):
            begin(Path(path), first_files(manifest, config, machine))
        return cls(path)

    def fork(
        self, target: str | Path, manifest: Mapping[str, Any], config: str, machine: Mapping[str, Any]
    ) -> RunFolder:
        """Begin another run that continues from the newest checkpoint of this one.

        Its checkpoint is written last: what an interrupted fork left is a run without one, and fork may be called
        again.
        """
        checkpoint = self.load_checkpoint()
        if checkpoint is None:
            raise DataError(f"{self.path}: has no checkpoint to continue from; run it up to its first one")
        begun = is_begun(Path(target), first_files(manifest, config, machine)) and RunFolder(target)
        if not begun or len(begun._checkpoints):
            begun = self.create(target, manifest, config, machine)
        with begun.locked(), writing(begun.path):
            for name, data in self._history.heads(checkpoint.round).items():
                write_bytes(begun.path / name, data)
            for client, place in self.ledgers():
                write_bytes(begun.ledger_path(client), read_plain(place, LIMIT))
            begun.save_checkpoint(checkpoint.round, checkpoint.arrays, checkpoint.record)
        return begun

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process out while the block runs: it gets a `BusyError` that names the owner."""
        with contextlib.ExitStack() as held:
            with writing(self.path):
                held.enter_context(alone(self.path / LOCK))
                for folder in (self.path, self.path / CHECKPOINT, self._ledgers):
                    sweep(folder, keep=REPORT)  # a report may be written without the lock
            yield

    @property
    def status(self) -> str:
        """``new``, ``running at round r``, ``interrupted at round r`` or ``done``."""
        if (self.path / RESULT).exists():
            return "done"
        running, rounds = self.running, len(self._history.rounds.sound())
        if running or rounds or len(self._checkpoints):
            return f"{'running' if running else 'interrupted'} at round {rounds}"
        return "new"

    @property
    def running(self) -> bool:
        """Whether another process works on an unfinished run."""
        return not (self.path / RESULT).exists() and is_taken(self.path / LOCK)

    def append_round(self, record: Mapping[str, Any]) -> None:
        """Add the record of the next round: see `fedrela.records.RoundRecord`."""
        with writing(self.path):
            self._history.rounds.append(record)

    def append_timing(self, record: Mapping[str, Any]) -> None:
        """Add the seconds that a round took."""
        with writing(self.path):
            self._history.timing.append(record)

    def rounds(self) -> list[Record]:
        """Return the records of the rounds so far, from round 1."""
        return self._history.read_rounds()

    def timing(self) -> list[Record]:
        """Return the seconds that the rounds so far took."""
        return self._history.timing.read()

    def truncate_rounds(self, after: int) -> None:
        """Drop every round later than `after` from both logs."""
        with writing(self.path):
            self._history.cut(after)

    def note_exclusions(self, round: int, failures: Mapping[int, Failure]) -> None:
        """Note which clients a round leaves out and why; on disk before this returns."""
        with writing(self.path):
            self._history.note(round, failures)

    def exclusions(self) -> dict[int, dict[int, Failure]]:
        """Return the failures noted, by round and client."""
        return self._history.noted()

    def save_checkpoint(self, round: int, arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> None:
        """Keep the state after `round`, whose record is in the log already; wholly or not at all."""
        with writing(self.path):
            self._history.sync()
            self._checkpoints.save(round, arrays, record)

    def load_checkpoint(self) -> Checkpoint | None:
        """Return the newest sound checkpoint, or None before the first; `IntegrityError` where none is sound."""
        return self._checkpoints.load()

    def ledger_path(self, client: int) -> Path:
        """Return where the ledger of a client lies."""
        return ledger_path(self._ledgers, client)

    def ledgers(self) -> list[tuple[int, Path]]:
        """Return client and place of every ledger, by client."""
        return find_ledgers(self._ledgers)

    def clear_ledgers(self, clients: Iterable[int]) -> None:
        """Remove the ledgers of `clients`, where there are any."""
        with writing(self.path):
            clear_ledgers(self._ledgers, clients)

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write ``result.json`` with the digest of every file that is compared: the run is done."""
        with writing(self.path):
            self._history.sync()
            files = {name: measure(self.path / name)[1] for name in self._compared()}
            write_bytes(self.path / RESULT, digests_page(result, files))

    def check(self) -> None:
        """Compare a finished run with its digests: an `IntegrityError` names the file that was changed."""
        result = self.read_json(RESULT)
        check_files(self.path, result)
        for name in self._compared():
            if name not in result["files"]:
                raise IntegrityError(f"{self.path / name}: was added after the run had finished")

    def _compared(self) -> list[str]:
        """Return the names of the files that are compared."""
        there = [name for name in COMPARED if (self.path / name).exists()]
        return there + [f"{LEDGERS}/{place.name}" for _, place in self.ledgers()]


def first_files(manifest: Mapping[str, Any], config: str, machine: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files a run begins with, in the order in which they are written."""
    toml = config.encode()
    return {MACHINE: page(machine), CONFIG: toml, MANIFEST: digests_page(manifest, {CONFIG: digest(toml)})}


def begin(path: Path, files: Mapping[str, bytes]) -> None:
    """Write the first files to a place that is free."""
    _check_free(path, files)
    make_folders(path)
    with alone(path / LOCK):
        _check_free(path, files)
        sweep(path)
        for name, data in files.items():
            write_bytes(path / name, data)


def read_start(path: Path) -> tuple[Record, bytes]:
    """Return the manifest of the run at `path`, as a record and as it lies there, after checking the folder."""
    try:
        data = read_plain(path / MANIFEST, LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{path}: no run found; name a folder that has a {MANIFEST}") from None
    except OSError as error:
        raise DataError(f"{path / MANIFEST}: cannot be read: {error.strerror}") from None
    record = read_digests_page(path / MANIFEST, data)
    for name in (CHECKPOINT, LEDGERS):
        if (path / name).is_symlink():
            raise IntegrityError(f"{path / name}: expected a folder, found a link; put the folder back")
    check_files(path, record)
    return record, data


def is_begun(path: Path, files: Mapping[str, bytes]) -> bool:
    """Whether the very run that begins with `files` is at `path`, whatever its machine."""
    return (path / MANIFEST).exists() and read_start(path)[1] == files[MANIFEST]


def _check_free(path: Path, files: Mapping[str, bytes]) -> None:
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise ArgumentError(f"{path}: expected a folder, found something else; choose another path")
    if is_begun(path, files):
        raise ArgumentError(f"{path}: this run exists already; continue it with `fedrela resume`")
    names = set(os.listdir(path))
    if MANIFEST in names:
        raise ArgumentError(f"{path}: it holds another run; choose a new or an empty folder")
    unfinished = {name for name in names if (found := TEMPORARY.fullmatch(name)) and found[1] in files}
    if names - unfinished - {LOCK, MACHINE} - ({CONFIG} if MACHINE in names else set()):
        raise ArgumentError(f"{path}: it holds other files; choose a new or an empty folder")


def ledger_path(folder: Path, client: int) -> Path:
    """Return where the ledger of a client lies.

    >>> ledger_path(Path("ledgers"), 3).as_posix()
    'ledgers/client-000003.json'
    """
    if client < 0:
        raise ArgumentError(f"clients count from 0, got {client}", argument="client")
    return folder / f"client-{client:06}.json"


def find_ledgers(folder: Path) -> list[tuple[int, Path]]:
    """Return client and place of every ledger, by client."""
    places = folder.iterdir() if folder.is_dir() else ()
    named = [(LEDGER.fullmatch(place.name), place) for place in places]
    return sorted((int(name[1]), place) for name, place in named if name)


def clear_ledgers(folder: Path, clients: Iterable[int]) -> None:
    """Remove the ledgers of `clients`, where there are any."""
    unwanted = set(clients)
    gone = [place for client, place in find_ledgers(folder) if client in unwanted]
    for place in gone:
        remove(place)
    if gone:
        sync_folder(folder)
