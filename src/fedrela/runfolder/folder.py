"""The run folder.

Everything in it but the lock, ``machine.json``, ``timing.jsonl``, ``exclusions.jsonl``, ``report.html`` and
``checkpoint/`` is the same, byte for byte, for the same run, wherever and however often it was interrupted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from fedrela.errors import DataError, IntegrityError
from fedrela.files import alone, digest, is_taken, measure, read_plain, sweep, write_bytes
from fedrela.records import Failure
from fedrela.runfolder import ledgers, names, start
from fedrela.runfolder.checkpoints import Checkpoint, Checkpoints
from fedrela.runfolder.history import History
from fedrela.runfolder.text import Record, page, parse
from fedrela.runfolder.vouched import check_files, read_vouching, vouching


class RunFolder:
    """A run on disk; `create` begins one, `open` opens one.

    Attributes
    ----------
    path
        The folder.
    manifest
        What the run is, as it was given to `create`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        record, data = start.read_start(self.path)
        self.manifest: Record = {key: value for key, value in record.items() if key != "files"}
        self._history = History(self.path)
        self._checkpoints = Checkpoints(self.path / names.CHECKPOINT, digest(data), self.path / names.ROUNDS)
        self._ledgers = self.path / names.LEDGERS

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
            start.begin(Path(path), start.first_files(manifest, config, machine))
        return cls(path)

    def fork(
        self, target: str | Path, manifest: Mapping[str, Any], config: str, machine: Mapping[str, Any]
    ) -> RunFolder:
        """Begin another run that goes on from the newest checkpoint of this one.

        Its checkpoint is written last: what an interrupted fork left is a run without one, and fork may be called
        again.
        """
        checkpoint = self.load_checkpoint()
        if checkpoint is None:
            raise DataError(f"{self.path}: has no checkpoint to go on from; run it up to its first one")
        begun = start.is_begun(Path(target), start.first_files(manifest, config, machine)) and RunFolder(target)
        if not begun or len(begun._checkpoints):
            begun = self.create(target, manifest, config, machine)
        with begun.locked(), writing(begun.path):
            for name, data in self._history.heads(checkpoint.round).items():
                write_bytes(begun.path / name, data)
            for client, place in self.ledgers():
                write_bytes(begun.ledger_path(client), read_plain(place, names.LIMIT))
            begun.save_checkpoint(checkpoint.round, checkpoint.arrays, checkpoint.record)
        return begun

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process out while the block runs: it gets a `BusyError` that names the owner."""
        with contextlib.ExitStack() as held:
            with writing(self.path):
                held.enter_context(alone(self.path / names.LOCK))
                for folder in (self.path, self.path / names.CHECKPOINT, self._ledgers):
                    sweep(folder, keep=names.REPORT)  # a report may be written without the lock
            yield

    @property
    def status(self) -> str:
        """``new``, ``running at round r``, ``interrupted at round r`` or ``done``."""
        if (self.path / names.RESULT).exists():
            return "done"
        taken, rounds = is_taken(self.path / names.LOCK), len(self._history.rounds.sound())
        if taken or rounds or len(self._checkpoints):
            return f"{'running' if taken else 'interrupted'} at round {rounds}"
        return "new"

    def append_round(self, record: Mapping[str, Any]) -> None:
        """Add the record of the next round: see `fedrela.records.RoundRecord`."""
        with writing(self.path):
            self._history.rounds.append(record)

    def append_timing(self, record: Mapping[str, Any]) -> None:
        """Add what a round took."""
        with writing(self.path):
            self._history.timing.append(record)

    def rounds(self) -> list[Record]:
        """Return the records of the rounds so far, from round 1."""
        return self._history.read_rounds()

    def timing(self) -> list[Record]:
        """Return what the rounds so far took."""
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

    def write(self, name: str, data: bytes) -> None:
        """Write one of the files that a run adds, atomically."""
        with writing(self.path):
            write_bytes(self.path / names.known(name, names.WRITABLE), data)

    def read(self, name: str) -> bytes:
        """Return the content of one of the files of a run."""
        path = self.path / names.known(name, names.READABLE)
        try:
            return read_plain(path, names.LIMIT)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None

    def write_json(self, name: str, record: Mapping[str, Any]) -> None:
        """Write one of the files that a run adds, as a record."""
        self.write(name, page(record))

    def read_json(self, name: str) -> Record:
        """Return the record in one of the files of a run."""
        data = self.read(name)
        if name in (names.MANIFEST, names.RESULT):
            return read_vouching(self.path / name, data)
        try:
            return parse(data, page)
        except ValueError:
            raise IntegrityError(f"{self.path / name}: is damaged") from None

    def ledger_path(self, client: int) -> Path:
        """Return where the ledger of a client lies."""
        return ledgers.ledger_path(self._ledgers, client)

    def ledgers(self) -> list[tuple[int, Path]]:
        """Return client and place of every ledger, by client."""
        return ledgers.find_ledgers(self._ledgers)

    def clear_ledgers(self, clients: Iterable[int]) -> None:
        """Remove the ledgers of `clients`, where there are any."""
        with writing(self.path):
            ledgers.clear_ledgers(self._ledgers, clients)

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write ``result.json`` with the digest of every file that is compared: the run is done."""
        with writing(self.path):
            self._history.sync()
            files = {name: measure(self.path / name)[1] for name in self._compared()}
            write_bytes(self.path / names.RESULT, vouching(result, files))

    def check(self) -> None:
        """Compare a finished run with its digests: an `IntegrityError` names the file that was changed."""
        result = self.read_json(names.RESULT)
        check_files(self.path, result)
        for name in self._compared():
            if name not in result["files"]:
                raise IntegrityError(f"{self.path / name}: was added after the run had finished")

    def _compared(self) -> list[str]:
        """Return the names of the files that are compared."""
        there = [name for name in names.COMPARED if (self.path / name).exists()]
        return there + [f"{names.LEDGERS}/{place.name}" for _, place in self.ledgers()]


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a failing disk raises into one line."""
    try:
        yield
    except OSError as error:
        advice = "make room or mend the disk, then `fedrela resume` goes on"
        raise DataError(f"{path}: cannot be written: {error.strerror or error}; {advice}") from None
