"""Where the files of a source lie, and one way for reading them to fail."""

from __future__ import annotations

import contextlib
import csv
import functools
import gzip
import io
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol

from fedrela.data.cache import BLOCK, PathOrNone
from fedrela.errors import ArgumentError, DataError
from fedrela.files import safe_join, safe_path
from fedrela.text import one_line

DEFAULT_ROOT = Path("data")
DAMAGE = re.compile("[\0\udc80-\udcff]")  # NUL, and what the error handler surrogateescape makes of bytes


class Readable(Protocol):
    """Whatever bytes are read from: a file, a member of an archive, an unpacked stream."""

    def read(self, size: int = ..., /) -> bytes:
        """Read at most `size` bytes."""


def root_folder(root: PathOrNone) -> Path:
    """Return the folder to look in: `root`, or ``data`` in the current folder."""
    return DEFAULT_ROOT if root is None else Path(root).expanduser()


def inside(root: Path, relative: str, where: str) -> Path:
    """Join `root` with a path that a file names; a path that could leave `root` is an error.

    >>> inside(Path("set"), "train/n01440764/1.JPEG", "list.txt:1").as_posix()
    'set/train/n01440764/1.JPEG'
    >>> inside(Path("set"), "train/../../1.JPEG", "list.txt:2")
    Traceback (most recent call last):
    ...
    fedrela.errors.DataError: list.txt:2: 'train/../../1.JPEG' is not a plain path below set
    """
    folder, slash, name = relative.rpartition("/")
    try:
        return safe_join(_below(root, folder) if slash else root, name)
    except DataError:
        raise DataError(f"{where}: {relative[:80]!r} is not a plain path below {root}") from None


@functools.lru_cache(4096)  # a list names few folders and many files
def _below(root: Path, folder: str) -> Path:
    return safe_path(root, folder)


@contextlib.contextmanager
def reading(path: Path | str, kind: str) -> Iterator[None]:
    """Turn whatever a damaged file makes a reader raise into one line that names the file."""
    try:
        yield
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be read as {kind}: {error.strerror or error}") from error
    except Exception as error:  # readers of archives, arrays and text have many kinds
        raise DataError(f"{path}: damaged, or no {kind}: {one_line(error, 120)}") from error


def read_exactly(stream: Readable, size: int, where: object) -> bytes:
    """Read `size` bytes or say how many were there."""
    data = stream.read(size)
    if len(data) != size:
        raise DataError(f"{where}: ends early: expected {size} bytes, got {len(data)}")
    return data


def read_text(path: Path, kind: str, limit: int = 1 << 28, errors: str = "strict") -> str:
    """Read a text file in UTF-8 of at most `limit` bytes."""
    with reading(path, kind):
        if path.stat().st_size > limit:
            raise DataError(f"{path}: larger than {limit} bytes, which no {kind} is")
        return path.read_bytes().decode("utf-8-sig", errors)


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file that are not blank: the line on which each begins, from 1, and its cells.

    An error in a file says ``FILE:LINE:COLUMN``, where the column is that of the table, from 1.
    """
    text = read_text(path, "CSV file", 1 << 34, "surrogateescape")
    damaged = DAMAGE.search(text)
    lines = list(io.StringIO(text, newline=""))
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    line = 1
    try:
        for cells in reader:
            for column, cell in enumerate(cells if damaged else (), 1):
                if found := DAMAGE.search(cell):
                    what = f"byte 0x{ord(found[0]) % 256:02x} is not text in UTF-8; save the file as UTF-8"
                    raise DataError(f"{path}:{line}:{column}: {what}")
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        column = _broken_column("".join(lines[line - 1 :]), re.escape(delimiter))
        what = f"{error}; quotes enclose a whole field, and a quote inside is doubled"
        raise DataError(f"{path}:{line}:{column}: {what}") from None


def _broken_column(text: str, mark: str) -> int:
    """Return the column, from 1, of the first field that is not well formed or is too long."""
    field = re.compile(rf' *(?:"[^"]*+(?:""[^"]*+)*+"|[^"{mark}\r\n][^{mark}\r\n]*+)?{mark}')
    column, at = 1, 0
    while (found := field.match(text, at)) and len(found[0]) <= csv.field_size_limit():
        column, at = column + 1, found.end()
    return column


def named_file(source: str, root: PathOrNone, file: str | None, holding: str) -> Path:
    """Return the one file a source reads: `root` itself, or `file` in it."""
    if root is None and file is None:
        raise ArgumentError(f"expected the file with {holding}, or its folder and the option file", argument="root")
    path = root_folder(root) if file is None else root_folder(root) / file
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder; name the file with {holding} in it", argument="file")
    if not path.is_file():
        raise DataError(f"{source}: {path} is missing; put the file with {holding} there")
    return path


def archive_members(path: Path, wanted: Sequence[str]) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yield last name part, size and stream of every member in `wanted`, in the archive's order.

    A stream must be read before the next member is asked for. Only plain files count; a member twice or missing is an
    error.
    """
    missing = set(wanted)
    with gzip.open(path, "rb") as unpacked, tarfile.open(fileobj=unpacked, mode="r|", bufsize=BLOCK) as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.name in wanted and member.isreg() else None
            if stream is None:
                continue
            if member.name not in missing:
                raise DataError(f"{path}: {member.name} is there twice; get the archive again")
            missing.remove(member.name)
            yield member.name.rsplit("/", 1)[-1], member.size, stream
            if not missing:
                return
    raise DataError(f"{path}: {min(missing)} is not in it; get the archive again")
