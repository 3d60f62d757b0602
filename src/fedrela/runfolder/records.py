"""The files of a run folder: their names, records as canonical JSON with digests, and the logs of a run.

What is read is exactly what was written. A sealed record carries the digest of itself as its last key; a record with
digests also lists the digest of every file that it stands for.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import digest, measure, open_plain, read_plain, safe_path, write_bytes
from fedrela.files.operations import append, sync, sync_folder
from fedrela.records import Failure

MANIFEST, CONFIG, MACHINE, LOCK = "manifest.json", "config.toml", "machine.json", "lock"
ROUNDS, TIMING, EXCLUSIONS = "rounds.jsonl", "timing.jsonl", "exclusions.jsonl"
RELABELLING, GALLERY, RESULT, REPORT = "relabelling.json", "gallery.npz", "result.json", "report.html"
CHECKPOINT, LEDGERS = "checkpoint", "ledgers"

COMPARED = (MANIFEST, CONFIG, ROUNDS, RELABELLING, GALLERY)  # and every ledger
WRITABLE = (MACHINE, RELABELLING, GALLERY, REPORT)
READABLE = (*WRITABLE, MANIFEST, CONFIG, ROUNDS, TIMING, EXCLUSIONS, RESULT)

LIMIT = 1 << 30  # bytes of any of these; checkpoint arrays may be larger
LINE_LIMIT = 1 << 26  # bytes; a longer line is damage, not a record
SEAL = "sha256"

Record = dict[str, Any]


def known(name: str, names: Collection[str]) -> str:
    """Return `name` where it is one of `names`.

    >>> known("../labels", WRITABLE)
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: expected one of machine.json, relabelling.json, gallery.npz, report.html, got '../labels'
    """
    if name not in names:
        raise ArgumentError(f"expected one of {', '.join(names)}, got {name[:80]!r}")
    return name


def line(record: Mapping[str, Any]) -> bytes:
    r"""Return a record as one line.

    >>> line({"round": 1, "loss": None})
    b'{"round": 1, "loss": null}\n'
    """
    return (_text(dict(record)) + "\n").encode()


def page(record: Mapping[str, Any]) -> bytes:
    """Return a record as a file, one key per line.

    >>> print(page({"round": 1, "chosen": [0, 2]}).decode(), end="")
    {
    "round": 1,
    "chosen": [0, 2]
    }
    """
    rows = ",\n".join(f"{_text(key)}: {_text(value)}" for key, value in record.items())
    return f"{{\n{rows}\n}}\n".encode()


def _text(value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"expected plain JSON values: {error}", argument="record") from None


def parse(data: bytes, form: Callable[[Mapping[str, Any]], bytes]) -> Record:
    """Read what `form`, `line` or `page`, returned; a `ValueError` for anything else."""
    try:
        record = json.loads(data.decode("ascii"))
        if isinstance(record, dict) and form(record) == data:
            return record
    except RecursionError:
        pass
    raise ValueError("not a record of this format")


def sealed(record: Mapping[str, Any]) -> Record:
    """Return `record` with the digest of itself as its last key."""
    if SEAL in record:
        raise ArgumentError(f"the key {SEAL!r} is reserved for its digest; choose another", argument="record")
    return {**record, SEAL: digest(line(record))}


def unsealed(record: Mapping[str, Any]) -> Record:
    """Return a sealed record without its seal; a `ValueError` where it was changed."""
    plain = {key: value for key, value in record.items() if key != SEAL}
    if record.get(SEAL) != digest(line(plain)):
        raise ValueError("it does not match its digest")
    return plain


def digests_page(record: Mapping[str, Any], files: Mapping[str, str]) -> bytes:
    """Return a sealed record with the digest of each of `files`, by name, as a page."""
    if "files" in record:
        raise ArgumentError("the key 'files' is reserved for digests; choose another", argument="record")
    return page(sealed({**record, "files": dict(files)}))


def read_digests_page(path: Path, data: bytes) -> Record:
    """Return the record with digests in `data`, the content of `path`, without its seal."""
    try:
        record = unsealed(parse(data, page))
    except ValueError:
        raise IntegrityError(f"{path}: does not match its digest; it was changed or damaged") from None
    if not isinstance(record.get("files"), dict):
        raise IntegrityError(f"{path}: names no files; it is of another format")
    return record


def check_files(folder: Path, record: Record) -> None:
    """Compare the files of `folder` with what `record` says of them."""
    for name, sha256 in record["files"].items():
        path = safe_path(folder, name)
        try:
            same = measure(path)[1] == sha256
        except OSError:
            same = False
        if not same:
            raise IntegrityError(f"{path}: does not match its digest; it was changed or damaged")


class RecordFolder:
    """A folder of records and other files with fixed names: those that may be written, and those that may be read."""

    path: Path
    writable: ClassVar[tuple[str, ...]]
    readable: ClassVar[tuple[str, ...]]

    def write(self, name: str, data: bytes) -> None:
        """Write one of the files, atomically."""
        with writing(self.path):
            write_bytes(self.path / known(name, self.writable), data)

    def read(self, name: str) -> bytes:
        """Return the content of one of the files."""
        path = self.path / known(name, self.readable)
        try:
            return read_plain(path, LIMIT)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None

    def write_json(self, name: str, record: Mapping[str, Any]) -> None:
        """Write one of the files as a record."""
        self.write(name, page(record))

    def read_json(self, name: str) -> Record:
        """Return the record in one of the files."""
        data = self.read(name)
        if name in (MANIFEST, RESULT):
            return read_digests_page(self.path / name, data)
        try:
            return parse(data, page)
        except ValueError:
            raise IntegrityError(f"{self.path / name}: is damaged") from None


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what a failing disk raises into one line."""
    try:
        yield
    except OSError as error:
        advice = "free space or fix the disk, then continue with `fedrela resume`"
        raise DataError(f"{path}: cannot be written: {error.strerror or error}; {advice}") from None


class Log:
    """The log at `path`: one line per record. It only grows; a kill may tear its last line and no other.

    Parameters
    ----------
    path
        The file; a missing one is an empty log.
    seals
        Whether each record carries its own digest, for a log whose digest no other file holds.
    """

    def __init__(self, path: Path, *, seals: bool = False) -> None:
        self.path = path
        self._seals = seals
        self._whole = False  # whether the file is known to end with a whole line

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record; a torn line at the end gives way to it."""
        data = line(sealed(record) if self._seals else record)
        if not self._whole:
            self.cut(len(self.read()))
        self._whole = False
        append(self.path, data)
        self._whole = True

    def read(self) -> list[Record]:
        """Return all records but a torn last one; damage elsewhere is an `IntegrityError`."""
        records, _, torn = self._scan()
        if not torn:
            raise IntegrityError(f"{self.path}: line {len(records) + 1} is damaged")
        return records

    def sound(self) -> list[Record]:
        """Return the records before the first damage."""
        return self._scan()[0]

    def head(self, count: int) -> bytes:
        """Return the lines of the first `count` records, or of the sound ones where they are fewer."""
        _, ends, _ = self._scan()
        size = ([0, *ends])[: count + 1][-1]
        if size == 0:
            return b""
        with self._open() as file:
            return file.read(size)

    def cut(self, count: int) -> None:
        """Drop everything after the first `count` records, atomically."""
        data = self.head(count)
        if self.path.exists() and self.path.stat().st_size != len(data):
            write_bytes(self.path, data)

    def _open(self) -> BinaryIO:
        try:
            return open_plain(self.path)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _scan(self) -> tuple[list[Record], list[int], bool]:
        """Return the sound records from the start, where each ends, and whether at most one line follows them."""
        records: list[Record] = []
        ends: list[int] = []
        if not self.path.exists():
            return records, ends, True
        with self._open() as file:
            while data := file.readline(LINE_LIMIT):
                try:
                    record = parse(data, line)
                    records.append(unsealed(record) if self._seals else record)
                except ValueError:
                    return records, ends, not file.read(1)
                ends.append(file.tell())
        return records, ends, True


class History:
    """The logs in the run folder `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rounds = Log(path / ROUNDS)
        self.timing = Log(path / TIMING)
        self.exclusions = Log(path / EXCLUSIONS, seals=True)
        self._notes: int | None = None  # how many exclusions the log holds, where that is known

    def sync(self) -> None:
        """Wait until every round is on disk."""
        for log in (self.rounds, self.timing):
            if log.path.exists():
                sync(log.path)
        sync_folder(self.path)

    def read_rounds(self) -> list[Record]:
        """Return the records of all rounds, the first of which is round 1."""
        records = self.rounds.read()
        self._check_order(records, len(records))
        return records

    def heads(self, after: int) -> dict[str, bytes]:
        """Return, by name, the two logs of rounds up to round `after`."""
        self._check_order(self.rounds.sound()[:after], after)
        return {ROUNDS: self.rounds.head(after), TIMING: self.timing.head(self._timed(after))}

    def cut(self, after: int) -> None:
        """Drop every round later than `after`."""
        self._check_order(self.rounds.sound()[:after], after)
        self.rounds.cut(after)
        self.timing.cut(self._timed(after))

    def _timed(self, after: int) -> int:
        """Return how many timings from the start are of rising rounds up to `after`: no digest protects this log."""
        count = last = 0
        for record in self.timing.sound():
            if record.get("round") not in range(last + 1, after + 1):
                break
            count, last = count + 1, int(record["round"])
        return count

    def _check_order(self, records: list[Record], count: int) -> None:
        if [record.get("round") for record in records] != list(range(1, count + 1)):
            raise IntegrityError(f"{self.rounds.path}: expected rounds 1 to {count} in order; it was damaged")

    def note(self, round: int, failures: Mapping[int, Failure]) -> None:
        """Note which clients a round leaves out, and wait until that is on disk."""
        if failures:
            count = len(self.exclusions.read()) if self._notes is None else self._notes
            self._notes = None
            excluded = [[client, failure.as_record()] for client, failure in sorted(failures.items())]
            self.exclusions.append({"note": count + 1, "round": round, "excluded": excluded})
            sync(self.exclusions.path)
            sync_folder(self.path)
            self._notes = count + 1

    def noted(self) -> dict[int, dict[int, Failure]]:
        """Return the failures by round and client; the first note on a client in a round counts."""
        noted: dict[int, dict[int, Failure]] = {}
        try:
            for number, record in enumerate(self.exclusions.read(), 1):
                if record["note"] != number:
                    raise ValueError("a line is missing")
                failures = noted.setdefault(record["round"], {})
                for client, failure in record["excluded"]:
                    failures.setdefault(client, Failure.from_record(failure))
        except (KeyError, TypeError, ValueError):
            raise IntegrityError(f"{self.exclusions.path}: does not hold every note in order; it was damaged") from None
        return noted
