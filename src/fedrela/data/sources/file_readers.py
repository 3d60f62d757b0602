"""Locating the files of a source, one kind of read error, and readers of text, CSV, .npy and .npz.

Arrays are checked against their file before anything is allocated; an array of Python objects is a pickle, and refused.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import math
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrela.data.cache import PathOrNone, Progress
from fedrela.errors import ArgumentError, DataError
from fedrela.files import safe_join, safe_path
from fedrela.files.reading import BLOCK
from fedrela.text import one_line

DEFLATE_LIMIT = 1032  # the largest expansion of a deflate stream; a header that claims more is false
LARGEST_ARRAY = 2**34  # bytes; a larger one is a damaged or hostile header
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
DEFAULT_ROOT = Path("data")
Readable = io.BufferedIOBase | IO[bytes]  # a file, a member of an archive, an unpacked stream
DAMAGE = re.compile("[\0\udc80-\udcff]")  # NUL, and bytes that the error handler surrogateescape escaped


def root_folder(root: PathOrNone) -> Path:
    """Return the folder to look in: `root`, or ``data`` in the current folder."""
    return DEFAULT_ROOT if root is None else Path(root).expanduser()


def inside(root: Path, relative: str, where: str) -> Path:
    """Join `root` with a path read from a file; a path that could leave `root` is an error.

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
    """Convert any error of a reader to a `DataError` that names the file."""
    try:
        if isinstance(path, Path) and path.exists() and not (path.is_file() or path.is_dir()):
            raise DataError(f"{path}: expected a regular file, got a pipe or a device, which is never read")
        yield
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be read as {kind}: {error.strerror or error}") from error
    except Exception as error:  # readers of archives, arrays and text raise many kinds
        raise DataError(f"{path}: damaged or invalid {kind}: {one_line(error, 120)}") from error


def read_exactly(stream: Readable, size: int, where: object) -> bytes:
    """Read `size` bytes, or raise."""
    data = stream.read(size)
    if len(data) != size:
        raise DataError(f"{where}: ends early: expected {size} bytes, got {len(data)}")
    return data


def read_text(path: Path, kind: str, limit: int = 1 << 28, errors: str = "strict") -> str:
    """Read a text file in UTF-8 of at most `limit` bytes."""
    with reading(path, kind):
        if path.stat().st_size > limit:
            raise DataError(f"{path}: expected at most {limit} bytes for a {kind}")
        return path.read_bytes().decode("utf-8-sig", errors)


class RowPosition(NamedTuple):
    """Where a row is, for messages: a line of a text file, or a row of an array.

    >>> str(RowPosition(Path("a.csv"), 12)), str(RowPosition(Path("a.npy"), 3, "row "))
    ('a.csv:12', 'a.npy: row 3')
    """

    path: Path
    number: int
    unit: str = ""

    @property
    def in_file(self) -> str:
        """The position without the path."""
        return f"{self.unit}{self.number}"

    def __str__(self) -> str:
        return f"{self.path}:{' ' if self.unit else ''}{self.in_file}"


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file that are not blank: the line on which each begins, from 1, and its cells.

    Errors start with ``FILE:LINE:COLUMN``, where the column is that of the table, from 1.
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


def read_numbers(cells: list[str]) -> list[float]:
    """Return cells as numbers, as Python reads them but without underscores, or raise a `ValueError`."""
    if "_" in "".join(cells):
        raise ValueError  # Python would read 1_0 as 10
    return [float(cell) for cell in cells]


def is_number(cell: str) -> bool:
    """Whether a cell is a number.

    >>> is_number("1e-3"), is_number("1_0"), is_number("")
    (True, False, False)
    """
    try:
        return bool(read_numbers([cell]))
    except ValueError:
        return False


def _broken_column(text: str, delimiter: str) -> int:
    """Return the column, from 1, of the first field that is malformed or too long."""
    field = re.compile(rf' *(?:"[^"]*+(?:""[^"]*+)*+"|[^"{delimiter}\r\n][^{delimiter}\r\n]*+)?{delimiter}')
    column, start = 1, 0
    while (match := field.match(text, start)) and len(match[0]) <= csv.field_size_limit():
        column, start = column + 1, match.end()
    return column


def named_file(source: str, root: PathOrNone, file: str | None, content: str) -> Path:
    """Return the one file that a source reads: `root` itself, or `file` in it."""
    if root is None and file is None:
        raise ArgumentError(f"expected the file with {content}, or its folder and the option file", argument="root")
    path = root_folder(root) if file is None else root_folder(root) / file
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder; name the file with {content} in it", argument="file")
    if not path.is_file():
        raise DataError(f"{source}: {path} is missing; put the file with {content} there")
    return path


@dataclass(frozen=True)
class Header:
    """Shape and dtype of an array, and where its values begin."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def nbytes(self) -> int:
        """Size of the values."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes], size: int, where: str) -> Header:
    """Read the header of an array of `size` bytes in all, and compare it with that size."""
    version = np.lib.format.read_magic(stream)
    if version not in HEADERS:
        raise DataError(f"{where}: unsupported .npy version {version}; save it again with numpy.save")
    shape, fortran, dtype = HEADERS[version](stream)
    if dtype.hasobject:
        raise DataError(f"{where}: contains Python objects, which means a pickle, and pickles are never read")
    if dtype.kind not in "biufUS" or not dtype.itemsize:
        raise DataError(f"{where}: expected numbers or text, got {dtype}")
    header = Header(shape, fortran, dtype, stream.tell())
    declared, actual = header.nbytes, size - header.offset
    if declared > LARGEST_ARRAY:
        raise DataError(f"{where}: shape {shape} takes {declared:,} bytes; the limit is {LARGEST_ARRAY:,}")
    if declared != actual:
        raise DataError(f"{where}: shape {shape} takes {declared:,} bytes, but the file has {actual:,}")
    return header


def read_npy(path: Path) -> NDArray[Any]:
    """Read a whole .npy file."""
    with reading(path, ".npy file"), path.open("rb") as file:
        return _read_array(file, path.stat().st_size, str(path))


class Npz:
    """The arrays of an .npz file, read one by one by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, ".npz file"), zipfile.ZipFile(path) as archive:
            listed = archive.infolist()
        self.names = [info.filename.removesuffix(".npy") for info in listed if info.filename.endswith(".npy")]
        if len(set(self.names)) != len(self.names):
            raise DataError(f"{path}: has two arrays of one name; save it again with numpy.savez")

    def header(self, name: str) -> Header:
        """Return the header of array `name`."""
        with self._open(name) as (stream, size, where):
            return read_header(stream, size, where)

    def read(self, name: str) -> NDArray[Any]:
        """Return array `name`."""
        with self._open(name) as (stream, size, where):
            return _read_array(stream, size, where)

    def read_into(self, name: str, out: NDArray[Any], progress: Progress | None = None) -> None:
        """Read array `name` into `out`, which has its shape, block by block."""
        with self._open(name) as (stream, size, where):
            header = read_header(stream, size, where)
            row = math.prod(header.shape[1:]) * header.dtype.itemsize
            if header.fortran or not row:  # its rows are not one after the other, or there are none
                out[...] = self.read(name)
                return
            step = max(1, BLOCK // row)
            for start in range(0, header.shape[0], step):
                number = min(step, header.shape[0] - start)
                block = np.frombuffer(read_exactly(stream, number * row, where), header.dtype)
                out[start : start + number] = block.reshape(number, *header.shape[1:])
                if progress:
                    progress(start + number, header.shape[0], f"decoding {where}")
            stream.read(1)  # reaching the end is what makes zipfile compare the checksum

    @contextlib.contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], int, str]]:
        with reading(self.path, ".npz file"), zipfile.ZipFile(self.path) as archive:
            info = archive.getinfo(f"{name}.npy")
            claimed, packed = info.file_size, info.compress_size
            is_usual = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if not is_usual or claimed > packed * DEFLATE_LIMIT or packed > self.path.stat().st_size:
                raise DataError(f"{self.path}: {name}: not packed as NumPy does; save it again with numpy.savez")
            where = f"{self.path}: {name}"
            with reading(where, ".npy array"), archive.open(info) as stream:
                yield stream, claimed, where


def _read_array(stream: IO[bytes], size: int, where: str) -> NDArray[Any]:
    read_header(stream, size, where)  # raises before anything is allocated
    stream.seek(0)
    array = np.lib.format.read_array(stream, allow_pickle=False)
    stream.read(1)  # as above
    array = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    if array.dtype.kind == "U":
        points = array.reshape(-1).view(np.uint32)
        if np.any((points > sys.maxunicode) | ((points >= 0xD800) & (points < 0xE000))):
            raise DataError(f"{where}: damaged: has values that are not characters; save it again with numpy.savez")
    return array
