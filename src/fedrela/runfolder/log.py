"""A log of records, one line each, that only grows; a kill may tear its last line and no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from fedrela.errors import DataError, IntegrityError
from fedrela.files import open_plain, write_bytes
from fedrela.files.verbs import append
from fedrela.runfolder.text import Record, line, parse, sealed, unsealed

LINE_LIMIT = 1 << 26  # bytes; a longer line is damage, not a record


class Log:
    """The log at `path`.

    Parameters
    ----------
    path
        The file; a missing one is an empty log.
    seals
        Whether each record carries its own digest, for a log that no other file vouches for.
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
