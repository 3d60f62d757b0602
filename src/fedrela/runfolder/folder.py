"""The run folder.

Everything in it except the lock, ``machine.json``, ``timing.jsonl``, ``exclusions.jsonl``, ``report.html`` and
``checkpoint/`` is the same, byte for byte, for the same run, however often it was interrupted.

The manifest is written last: a folder without it is not a run yet. ``machine.json`` is on disk before any name that
a user's own file could have, to distinguish an interrupted creation from a folder with other files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import (
    digest,
    hold_lock,
    is_locked,
    make_folders,
    read_plain,
    remove_temporary,
    size_and_digest,
    write_bytes,
)
from fedrela.files.atomic import TEMPORARY
from fedrela.files.operations import remove, sync, sync_folder
from fedrela.records import Failure
from fedrela.runfolder import names
from fedrela.runfolder.checkpoints import Checkpoint, Checkpoints, vector_digest
from fedrela.runfolder.json_records import (
    Log,
    Record,
    RecordFolder,
    check_files,
    json_file,
    json_with_digests,
    read_manifest,
    writing,
)

LEDGER = re.compile(r"client-([0-9]{6,})\.json")


class RunStatus(StrEnum):
    """How far a run, or a grid of runs, has come.

    Examples
    --------
    >>> RunStatus.INTERRUPTED.at_round(12), RunStatus.DONE.at_round(20)
    ('interrupted at round 12', 'done')
    """

    MISSING = "missing"
    NEW = "new"
    RUNNING = "running"  # in another process
    INTERRUPTED = "interrupted"
    DONE = "done"

    def at_round(self, round: int) -> str:
        """Return the status of a run as it is shown: with its last round, if it has begun and is not done."""
        return f"{self} at round {round}" if self in (RunStatus.RUNNING, RunStatus.INTERRUPTED) else str(self)


class RunFolder(RecordFolder):
    """A run on disk; `create` starts one, `open` opens one.

    Parameters
    ----------
    path
        The folder of a run.

    Examples
    --------
    >>> import tempfile
    >>> from fedrela.experiment import run
    >>> small = {"train": {"rounds": 1, "epochs": 1}, "data": {"partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as home:
    ...     _ = run(small, out=home + "/run", workers=1)
    ...     folder = RunFolder.open(home + "/run")
    ...     folder.status_text, len(folder.rounds()), [client for client, path in folder.ledgers()]
    ('done', 1, [0, 1])
    """

    writable, readable, subfolders = names.WRITABLE, names.READABLE, (names.CHECKPOINT, names.LEDGERS)

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        record, data = read_start(self.path)
        # As passed to `create`.
        self.manifest: Record = {key: value for key, value in record.items() if key != "files"}
        self._rounds = Log(self.path / names.ROUNDS)
        self._timing = Log(self.path / names.TIMING)
        self._exclusions = Log(self.path / names.EXCLUSIONS, seals=True)
        self._notes: int | None = None  # how many exclusions the log has, if known
        self._checkpoints = Checkpoints(self.path / names.CHECKPOINT, digest(data), self._rounds.path)
        self._ledgers = self.path / names.LEDGERS

    @classmethod
    def create(
        cls, path: str | Path, manifest: Mapping[str, Any], config: str, machine: Mapping[str, Any]
    ) -> RunFolder:
        """Start a run in a new or an empty folder, which is created if missing.

        `manifest` identifies the run, as plain values of a `fedrela.records.RunManifest`; `config` is the text of
        ``config.toml``; `machine` has start time and facts of the machine, which are never compared.
        """
        with writing(Path(path)):
            begin(Path(path), initial_files(manifest, config, machine))
        return cls(path)

    def fork(
        self, target: str | Path, manifest: Mapping[str, Any], config: str, machine: Mapping[str, Any]
    ) -> RunFolder:
        """Start another run that continues from the newest checkpoint of this one.

        Its checkpoint is written last: an interrupted fork leaves a run without one, and can be repeated.
        """
        checkpoint = self.load_checkpoint()
        if checkpoint is None:
            raise DataError(f"{self.path}: has no checkpoint to continue from; run it up to its first one")
        new = is_same_run(Path(target), initial_files(manifest, config, machine)) and RunFolder(target)
        if not new or len(new._checkpoints):
            new = self.create(target, manifest, config, machine)
        with new.locked(), writing(new.path):
            self._check_order(self._rounds.valid()[: checkpoint.round], checkpoint.round)
            write_bytes(new.path / names.ROUNDS, self._rounds.head(checkpoint.round))
            write_bytes(new.path / names.TIMING, self._timing.head(self._timed(checkpoint.round)))
            for client, path in self.ledgers():
                write_bytes(new.ledger_path(client), read_plain(path, names.LIMIT))
            new.save_checkpoint(checkpoint.round, checkpoint.arrays, checkpoint.record)
        return new

    @property
    def status(self) -> RunStatus:
        """How far the run has come: ``NEW``, ``RUNNING``, ``INTERRUPTED`` or ``DONE``."""
        if (self.path / names.RESULT).exists():
            return RunStatus.DONE
        if is_locked(self.path / names.LOCK):
            return RunStatus.RUNNING
        return RunStatus.INTERRUPTED if self._rounds.valid() or len(self._checkpoints) else RunStatus.NEW

    @property
    def status_text(self) -> str:
        """The status as it is shown: ``new``, ``running at round r``, ``interrupted at round r`` or ``done``."""
        return self.status.at_round(len(self._rounds.valid()))

    def append_round(self, record: Mapping[str, Any]) -> None:
        """Add the record of the next round: see `fedrela.records.RoundRecord`."""
        with writing(self.path):
            self._rounds.append(record)

    def append_timing(self, record: Mapping[str, Any]) -> None:
        """Add the seconds that a round took."""
        with writing(self.path):
            self._timing.append(record)

    def rounds(self) -> list[Record]:
        """Return the records of the rounds so far, from round 1."""
        records = self._rounds.read()
        self._check_order(records, len(records))
        return records

    def timing(self) -> list[Record]:
        """Return the seconds that the rounds so far took."""
        return self._timing.read()

    def truncate_rounds(self, after: int) -> None:
        """Drop every round later than `after` from both logs."""
        with writing(self.path):
            self._check_order(self._rounds.valid()[:after], after)
            self._rounds.keep_first(after)
            self._timing.keep_first(self._timed(after))

    def _timed(self, after: int) -> int:
        """Return how many leading timings have ascending rounds up to `after`, since no digest protects this log."""
        count = last = 0
        for record in self._timing.valid():
            if record.get("round") not in range(last + 1, after + 1):
                break
            count, last = count + 1, int(record["round"])
        return count

    def _check_order(self, records: list[Record], count: int) -> None:
        if [record.get("round") for record in records] != list(range(1, count + 1)):
            raise IntegrityError(f"{self._rounds.path}: expected rounds 1 to {count} in order; it was damaged")

    def note_exclusions(self, round: int, failures: Mapping[int, Failure]) -> None:
        """Record which clients a round leaves out and why; it is on disk when this returns."""
        if failures:
            with writing(self.path):
                count = len(self._exclusions.read()) if self._notes is None else self._notes
                self._notes = None
                excluded = [[client, failure.as_record()] for client, failure in sorted(failures.items())]
                self._exclusions.append({"note": count + 1, "round": round, "excluded": excluded})
                sync(self._exclusions.path)
                sync_folder(self.path)
                self._notes = count + 1

    def exclusions(self) -> dict[int, dict[int, Failure]]:
        """Return the failures by round and client; the first note on a client in a round counts."""
        noted: dict[int, dict[int, Failure]] = {}
        try:
            for number, record in enumerate(self._exclusions.read(), 1):
                if record["note"] != number:
                    raise ValueError("a line is missing")
                failures = noted.setdefault(record["round"], {})
                for client, failure in record["excluded"]:
                    failures.setdefault(client, Failure.from_record(failure))
        except (KeyError, TypeError, ValueError):
            path = self._exclusions.path
            raise IntegrityError(f"{path}: does not have every note in order; it was damaged") from None
        return noted

    def save_checkpoint(self, round: int, arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> None:
        """Store the state after `round`, whose record is in the log already; completely or not at all."""
        with writing(self.path):
            self._sync_rounds()
            self._checkpoints.save(round, arrays, record)

    def load_checkpoint(self) -> Checkpoint | None:
        """Return the newest valid checkpoint, or None before the first; raise `IntegrityError` if none is valid."""
        return self._checkpoints.load()

    def _sync_rounds(self) -> None:
        """Wait until every round is on disk."""
        for log in (self._rounds, self._timing):
            if log.path.exists():
                sync(log.path)
        sync_folder(self.path)

    def ledger_path(self, client: int) -> Path:
        """Return the path of a client's ledger, such as ``ledgers/client-000003.json``."""
        if client < 0:
            raise ArgumentError(f"clients count from 0, got {client}", argument="client")
        return self._ledgers / f"client-{client:06}.json"

    def ledgers(self) -> list[tuple[int, Path]]:
        """Return client and path of every ledger, by client."""
        paths = self._ledgers.iterdir() if self._ledgers.is_dir() else ()
        named = [(LEDGER.fullmatch(path.name), path) for path in paths]
        return sorted((int(name[1]), path) for name, path in named if name)

    def clear_ledgers(self, clients: Iterable[int]) -> None:
        """Remove the ledgers of `clients`, if there are any."""
        chosen = set(clients)
        with writing(self.path):
            paths = [path for client, path in self.ledgers() if client in chosen]
            for path in paths:
                remove(path)
            if paths:
                sync_folder(self._ledgers)

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write ``result.json`` with the digest of every file that is compared: the run is done."""
        with writing(self.path):
            self._checkpoints.prune()
            self._sync_rounds()
            files = {name: size_and_digest(self.path / name)[1] for name in self._compared()}
            write_bytes(self.path / names.RESULT, json_with_digests(result, files))

    def check(self, only: str | None = None) -> None:
        """Compare a finished run, or one file of it, with its digests; an `IntegrityError` names a changed file."""
        result = self.read_json(names.RESULT)
        if only is not None:
            check_files(self.path, {"files": {only: result["files"][only]}})
            return
        check_files(self.path, result)
        for name in self._compared():
            if name not in result["files"]:
                raise IntegrityError(f"{self.path / name}: was added after the run had finished")

    def final_checkpoint(self) -> Checkpoint:
        """Return the checkpoint with the final model of a finished run; raise `IntegrityError` if it is lost."""
        result, model = self.read_json(names.RESULT), self.manifest["model"]
        try:
            saved = self.load_checkpoint()
            why = f"the newest valid checkpoint is of round {saved.round}" if saved else "there is no checkpoint"
            why += f" ({saved.note})" if saved and saved.note else ""
        except IntegrityError as error:
            saved, why = None, f"{names.CHECKPOINT}: {error.reason}"
        if saved is not None and saved.round == result["rounds"]:
            arrays, weights = [(name, shape) for name, shape, _ in model["arrays"]], saved.arrays.get("weights")
            if weights is not None and vector_digest(arrays, model["dtype"], weights) == result["weights_sha256"]:
                return saved
            why = "the checkpoint holds another model"
        advice = f"run {names.CONFIG} in a new folder for the same model"
        what = f"the final model, of round {result['rounds']}, is lost: {why}; {advice}"
        raise IntegrityError(what, path=self.path)

    def _compared(self) -> list[str]:
        """Return the names of the files that are compared."""
        existing = [name for name in names.COMPARED if (self.path / name).exists()]
        return existing + [f"{names.LEDGERS}/{path.name}" for _, path in self.ledgers()]


def initial_files(manifest: Mapping[str, Any], config: str, machine: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files a run starts with, in the order in which they are written."""
    toml = config.encode()
    digests = json_with_digests(manifest, {names.CONFIG: digest(toml)})
    return {names.MACHINE: json_file(machine), names.CONFIG: toml, names.MANIFEST: digests}


def begin(path: Path, files: Mapping[str, bytes]) -> None:
    """Write the first files to a folder that is new or empty."""
    _check_free(path, files)
    make_folders(path)
    with hold_lock(path / names.LOCK):
        _check_free(path, files)
        remove_temporary(path)
        for name, data in files.items():
            write_bytes(path / name, data)


def read_start(path: Path) -> tuple[Record, bytes]:
    """Return the manifest of the run at `path`, as a record and as bytes, after checking the folder."""
    record, data = read_manifest(path, names.MANIFEST, "run")
    for name in (names.CHECKPOINT, names.LEDGERS):
        if (path / name).is_symlink():
            raise IntegrityError(f"{path / name}: expected a folder, got a link; put the folder back")
    check_files(path, record)
    return record, data


def is_same_run(path: Path, files: Mapping[str, bytes]) -> bool:
    """Whether the run that starts with `files` is at `path`, whatever its machine."""
    return (path / names.MANIFEST).exists() and read_start(path)[1] == files[names.MANIFEST]


def _check_free(path: Path, files: Mapping[str, bytes]) -> None:
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise ArgumentError(f"{path}: expected a folder; choose another path")
    if is_same_run(path, files):
        raise ArgumentError(f"{path}: this run exists already; continue it with `fedrela resume`")
    existing = set(os.listdir(path))
    if names.MANIFEST in existing:
        raise ArgumentError(f"{path}: contains another run; choose a new or an empty folder")
    unfinished = {name for name in existing if (match := TEMPORARY.fullmatch(name)) and match[1] in files}
    if existing - unfinished - {names.LOCK, names.MACHINE} - ({names.CONFIG} if names.MACHINE in existing else set()):
        raise ArgumentError(f"{path}: contains other files; choose a new or an empty folder")
