"""The one reader of .npy and .npz files: block by block, its limits checked before anything is allocated.

An array of Python objects is a pickle and is refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fedrela.data.cache import BLOCK, Progress
from fedrela.data.sources.reading import read_exactly, reading
from fedrela.errors import DataError

DEFLATE_LIMIT = 1032  # no deflate stream expands further
LARGEST_ARRAY = 2**34  # bytes; a larger one is a damaged or hostile header
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclasses.dataclass(frozen=True)
class Header:
    """What an array looks like, and where its values begin."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def nbytes(self) -> int:
        """Size of the values."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes], size: int, where: str) -> Header:
    """Read the header of an array that takes `size` bytes in all, and compare it with that size."""
    version = np.lib.format.read_magic(stream)
    if version not in HEADERS:
        raise DataError(f"{where}: version {version} of the .npy form is not read; save it again with numpy.save")
    shape, fortran, dtype = HEADERS[version](stream)
    if dtype.hasobject:
        raise DataError(f"{where}: holds Python objects, which means a pickle, and pickles are never read")
    if dtype.kind not in "biufUS" or not dtype.itemsize:
        raise DataError(f"{where}: expected numbers or text, got {dtype}")
    header = Header(shape, fortran, dtype, stream.tell())
    declared, held = header.nbytes, size - header.offset
    if declared > LARGEST_ARRAY:
        raise DataError(f"{where}: shape {shape} takes {declared:,} bytes; the limit is {LARGEST_ARRAY:,}")
    if declared != held:
        raise DataError(f"{where}: shape {shape} takes {declared:,} bytes, but the file holds {held:,}")
    return header


def read_values(
    stream: IO[bytes], header: Header, out: NDArray[Any], where: str, progress: Progress | None = None
) -> None:
    """Read the values after `header` into `out`, which has its shape, block by block."""
    row = math.prod(header.shape[1:]) * header.dtype.itemsize
    if header.nbytes and header.fortran and len(header.shape) > 1:
        data = read_exactly(stream, header.nbytes, where)
        out[...] = np.frombuffer(data, header.dtype).reshape(header.shape[::-1]).T
    elif header.nbytes:  # an empty array may declare any number of rows
        step = max(1, BLOCK // row)
        for start in range(0, header.shape[0], step):
            number = min(step, header.shape[0] - start)
            block = np.frombuffer(read_exactly(stream, number * row, where), header.dtype)
            out[start : start + number] = block.reshape(number, *header.shape[1:])
            if progress:
                progress(start + number, header.shape[0], f"decoding {where}")
    stream.read(1)  # reaching the end is what makes zipfile compare the checksum


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
            raise DataError(f"{path}: holds two arrays of one name; save it again with numpy.savez")

    def header(self, name: str) -> Header:
        """Return what array `name` looks like."""
        with self._open(name) as (stream, size, where):
            return read_header(stream, size, where)

    def read(self, name: str) -> NDArray[Any]:
        """Return array `name`."""
        with self._open(name) as (stream, size, where):
            return _read_array(stream, size, where)

    def read_into(self, name: str, out: NDArray[Any], progress: Progress | None = None) -> None:
        """Read array `name` into `out`, which has its shape, block by block."""
        with self._open(name) as (stream, size, where):
            read_values(stream, read_header(stream, size, where), out, where, progress)

    @contextlib.contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], int, str]]:
        with reading(self.path, ".npz file"), zipfile.ZipFile(self.path) as archive:
            info = archive.getinfo(f"{name}.npy")
            claimed, packed = info.file_size, info.compress_size
            usual = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if not usual or claimed > packed * DEFLATE_LIMIT or packed > self.path.stat().st_size:
                raise DataError(f"{self.path}: {name}: not packed as NumPy does; save it again with numpy.savez")
            where = f"{self.path}: {name}"
            with reading(where, ".npy array"), archive.open(info) as stream:
                yield stream, claimed, where


def _read_array(stream: IO[bytes], size: int, where: str) -> NDArray[Any]:
    header = read_header(stream, size, where)
    out = np.empty(header.shape or (1,), header.dtype.newbyteorder("="))
    rows = header if header.shape else dataclasses.replace(header, shape=(1,))
    read_values(stream, rows, out, where)
    if header.dtype.kind == "U":
        points = out.reshape(-1).view(np.uint32)
        if np.any((points > sys.maxunicode) | ((points >= 0xD800) & (points < 0xE000))):
            raise DataError(f"{where}: damaged: holds values that are no characters; save it again with numpy.savez")
    return out.reshape(header.shape)
