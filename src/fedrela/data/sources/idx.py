"""IDX files of unsigned bytes, as MNIST and its successors use them, read strictly."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.data.cache import BLOCK, Progress
from fedrela.data.sources.places import Readable, read_exactly, reading
from fedrela.errors import DataError

UNSIGNED_BYTE = 8
DEFLATE_LIMIT = 1032  # no deflate stream expands further, so a header that claims more lies


def map_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Map a plain IDX file into memory, read-only."""
    with reading(path, "IDX file"):
        with path.open("rb") as file:
            shape = _read_header(file, dimensions, path)
            offset = file.tell()
        expected, size = offset + math.prod(shape), path.stat().st_size
        if size != expected:
            raise DataError(f"{path}: {expected} bytes were expected from its header {shape}, {size} are there")
        return np.memmap(path, np.uint8, "r", offset, shape)


def unzip_idx(
    path: Path,
    dimensions: int,
    allocate: Callable[[tuple[int, ...]], NDArray[Any]],
    progress: Progress | None = None,
) -> NDArray[np.uint8]:
    """Decode a gzip IDX file into the array that `allocate` returns for its shape."""
    with reading(path, "gzip IDX file"), gzip.open(path, "rb") as file:
        shape = _read_header(file, dimensions, path)
        total, room = math.prod(shape), path.stat().st_size * DEFLATE_LIMIT
        if total > room:
            raise DataError(f"{path}: its header claims {total} bytes, but a file of this size holds {room} at most")
        array = allocate(shape)
        flat = array.reshape(-1)
        for start in range(0, total, BLOCK):
            size = min(BLOCK, total - start)
            flat[start : start + size] = np.frombuffer(read_exactly(file, size, path), np.uint8)
            if progress:
                progress(start + size, total, f"decoding {path.name}")
        if file.read(1):
            raise DataError(f"{path}: goes on after the {total} bytes that its header {shape} announces")
    return array


def _read_header(file: Readable, dimensions: int, path: Path) -> tuple[int, ...]:
    magic = read_exactly(file, 4, path)
    expected = bytes((0, 0, UNSIGNED_BYTE, dimensions))
    if magic != expected:
        raise DataError(f"{path}: no IDX file of {dimensions} dimensions: starts {magic.hex()}, not {expected.hex()}")
    sizes = np.frombuffer(read_exactly(file, 4 * dimensions, path), ">u4")
    shape = tuple(int(size) for size in sizes)
    if 0 in shape:
        raise DataError(f"{path}: holds nothing: its header says {shape}")
    return shape
