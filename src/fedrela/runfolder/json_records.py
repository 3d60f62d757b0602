"""The files of a run folder: records as canonical JSON with digests, and logs of them.

A record is read back exactly as it was written. A sealed record has its own digest as its last key; a record with
digests also lists the digest of every file that it covers.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

from fedrela.arguments import check_choice
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import (
    digest,
    hold_lock,
    open_plain,
    read_plain,
    remove_temporary,
    safe_path,
    size_and_digest,
    write_bytes,
)
from fedrela.files.operations import append
from fedrela.runfolder import names

LINE_LIMIT = 1 << 26  # bytes; a longer line is damage, not a record
SEAL = "sha256"
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)

Record = dict[str, Any]


def json_line(record: Mapping[str, Any]) -> bytes:
    r"""Return a record as one line.

    >>> json_line({"round": 1, "loss": None})
    b'{"round": 1, "loss": null}\n'
    """
    return (_text(dict(record)) + "\n").encode()


def json_file(record: Mapping[str, Any]) -> bytes:
    """Return a record as a file, one key per line.

    >>> print(json_file({"round": 1, "chosen": [0, 2]}).decode(), end="")
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
    """Read what `form` (`json_line` or `json_file`) returned; raise a `ValueError` for anything else."""
    try:
        record = json.loads(data.decode("ascii"))
        if isinstance(record, dict) and form(record) == data:
            return record
    except RecursionError:
        pass
    raise ValueError("not a record of this format")


def sealed(record: Mapping[str, Any]) -> Record:
    """Return `record` with its own digest as its last key."""
    if SEAL in record:
        raise ArgumentError(f"the key {SEAL!r} is reserved for its digest; choose another", argument="record")
    return {**record, SEAL: digest(json_line(record))}


def unsealed(record: Mapping[str, Any]) -> Record:
    """Return a sealed record without its seal; raise a `ValueError` if it was changed."""
    plain = {key: value for key, value in record.items() if key != SEAL}
    if record.get(SEAL) != digest(json_line(plain)):
        raise ValueError("it does not match its digest")
    return plain


def json_with_digests(record: Mapping[str, Any], files: Mapping[str, str]) -> bytes:
    """Return a sealed record with the digest of each of `files`, by name, as a file."""
    if "files" in record:
        raise ArgumentError("the key 'files' is reserved for digests; choose another", argument="record")
    return json_file(sealed({**record, "files": dict(files)}))


def parse_with_digests(path: Path, data: bytes) -> Record:
    """Return the record with digests in `data`, the content of `path`, without its seal."""
    try:
        record = unsealed(parse(data, json_file))
    except ValueError:
        raise IntegrityError(f"{path}: does not match its digest; it was changed or damaged") from None
    if not isinstance(record.get("files"), dict):
        raise IntegrityError(f"{path}: lists no files; it has another format")
    return record


def check_files(folder: Path, record: Record) -> None:
    """Compare the files of `folder` with what `record` says about them."""
    for name, sha256 in record["files"].items():
        path = safe_path(folder, name)
        try:
            same = size_and_digest(path)[1] == sha256
        except OSError:
            same = False
        if not same:
            raise IntegrityError(f"{path}: does not match its digest; it was changed or damaged")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert an error of the disk to a `DataError`; a place where nothing can be begun is an `ArgumentError`."""
    try:
        yield
    except OSError as error:
        full, begun = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO), os.path.lexists(path / names.MANIFEST)
        failed = f"{path}: cannot be written: {error.strerror or error}"
        if not (full or begun):
            raise ArgumentError(f"{failed}; choose another folder") from None
        first = "allow writing there" if error.errno in FORBIDDEN else "free space or fix the disk"
        advice = f"{first}, then {'continue with `fedrela resume`' if begun else 'try again'}"
        raise DataError(f"{failed}; {advice}") from None


class RecordFolder:
    """A folder of records and other files with fixed names: those that may be written, and those that may be read."""

    writable: ClassVar[tuple[str, ...]]
    readable: ClassVar[tuple[str, ...]]
    subfolders: ClassVar[tuple[str, ...]] = ()

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open the folder `path`; raise a `DataError` if it is missing, an `IntegrityError` if it is damaged."""
        return cls(path)

    def write(self, name: str, data: bytes) -> None:
        """Write one of the files, atomically."""
        with writing(self.path):
            write_bytes(self.path / check_choice("name", name, self.writable), data)

    def read(self, name: str) -> bytes:
        """Return the content of one of the files."""
        path = self.path / check_choice("name", name, self.readable)
        try:
            return read_plain(path, names.LIMIT)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None

    def write_json(self, name: str, record: Mapping[str, Any]) -> None:
        """Write one of the files as a record."""
        self.write(name, json_file(record))

    def read_json(self, name: str) -> Record:
        """Return the record in one of the files."""
        data = self.read(name)
        if name in (names.MANIFEST, names.RESULT):
            return parse_with_digests(self.path / name, data)
        try:
            return parse(data, json_file)
        except ValueError:
            raise IntegrityError(f"{self.path / name}: is damaged") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock out other processes while the block runs: they get a `BusyError` that names the owner."""
        with contextlib.ExitStack() as stack:
            with writing(self.path):
                stack.enter_context(hold_lock(self.path / names.LOCK))
                for name in ("", *self.subfolders):
                    remove_temporary(self.path / name, keep=names.REPORT)  # a report may be written without the lock
            yield


def read_manifest(folder: Path, name: str, what: str) -> tuple[Record, bytes]:
    """Return the record with digests in the file `name` that identifies `folder` as a `what`, and its bytes."""
    try:
        data = read_plain(folder / name, names.LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{folder}: no {what} found; name a folder that has a {name}") from None
    except OSError as error:
        raise DataError(f"{folder / name}: cannot be read: {error.strerror}") from None
    return parse_with_digests(folder / name, data), data


class Log:
    """The append-only log at `path`: one line per record. A kill may tear its last line and no other.

    With `seals` each record has its own digest, for a log whose digest no other file records.
    """

    def __init__(self, path: Path, *, seals: bool = False) -> None:
        self.path = path
        self._seals = seals
        self._is_whole = False  # whether the file is known to end with a whole line

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record; it replaces a torn line at the end."""
        data = json_line(sealed(record) if self._seals else record)
        if not self._is_whole:
            self.keep_first(len(self.read()))
        self._is_whole = False
        append(self.path, data)
        self._is_whole = True

    def read(self) -> list[Record]:
        """Return all records except a torn last one; damage elsewhere is an `IntegrityError`."""
        records, _, torn = self._scan()
        if not torn:
            raise IntegrityError(f"{self.path}: line {len(records) + 1} is damaged")
        return records

    def valid(self) -> list[Record]:
        """Return the records before the first damage."""
        return self._scan()[0]

    def head(self, count: int) -> bytes:
        """Return the lines of the first `count` records, or of the valid ones if they are fewer."""
        _, ends, _ = self._scan()
        size = ([0, *ends])[: count + 1][-1]
        if size == 0:
            return b""
        with self._open() as file:
            return file.read(size)

    def keep_first(self, count: int) -> None:
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
        """Return the leading valid records, where each ends, and whether at most one line follows them."""
        records: list[Record] = []
        ends: list[int] = []
        if not self.path.exists():
            return records, ends, True
        with self._open() as file:
            while data := file.readline(LINE_LIMIT):
                try:
                    record = parse(data, json_line)
                    records.append(unsealed(record) if self._seals else record)
                except ValueError:
                    return records, ends, not file.read(1)
                ends.append(file.tell())
        return records, ends, True
