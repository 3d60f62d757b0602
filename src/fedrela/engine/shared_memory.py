"""Arrays shared by several processes: inputs to read, and rows of named arrays to exchange.

The bytes are in shared memory if they fit, otherwise in a mapped file. Either is unlinked at once, so it vanishes with
the last process that maps it, even after a kill.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fedrela.algorithms.base import ArraySpec, ArraySpecs
from fedrela.errors import ArgumentError, DataError
from fedrela.files.mapped import FileRegion, MappedFile, region_of

SHARED_MEMORY = Path("/dev/shm")
LIMIT = 1 << 30  # bytes of one block in shared memory: unlike those of a file, they cannot leave memory
ALIGNMENT = 64  # bytes, one cache line


class Block:
    """Bytes that a process created and others map, by their `region`; see `create`."""

    def __init__(self, region: FileRegion, file: MappedFile | None = None) -> None:
        self.region = region  # small, hashable, can be pickled
        self._file = file
        self._bytes: mmap.mmap | None = region.map(writable=True)

    @classmethod
    def create(cls, size: int, *, folder: str | Path | None = None, limit: int = LIMIT) -> Block:
        """Create a block of zeros, of `size` bytes.

        It is in shared memory or, if that is full or the block is larger than `limit`, in a file in `folder`, by
        default the folder for temporary files.
        """
        size = max(size, 1)  # an empty file cannot be mapped
        file = None
        with contextlib.suppress(DataError, OSError):  # no such folder, or another process took the space
            if size <= min(limit, shutil.disk_usage(SHARED_MEMORY).free):
                file = MappedFile(SHARED_MEMORY, size)
        file = file or MappedFile(folder or tempfile.gettempdir(), size)
        return cls(file.region, file)

    def array(self, offset: int, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array on the block's own bytes, starting at `offset`."""
        if self._bytes is None:
            raise ArgumentError("it is closed; create another", argument="block")
        return np.frombuffer(self._bytes, dtype, math.prod(shape), offset).reshape(shape)

    def close(self) -> None:
        """Release the block; no other process can map it then, and its memory is freed with the last array on it."""
        self._bytes = None
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True)
class ArrayHandle:
    """Where workers find an array to read; see `SharedMemory.share`."""

    region: FileRegion
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def open(self) -> NDArray[Any]:
        """Return the array, read-only, without a copy."""
        data = self.region.map(writable=False)
        return np.frombuffer(data, self.dtype, math.prod(self.shape), self.offset).reshape(self.shape)


@dataclass(frozen=True)
class RowsHandle:
    """How another process finds `SharedArrays`."""

    region: FileRegion
    specs: ArraySpecs


class SharedArrays:
    """Rows of named arrays, each row of the same shapes, that every process sees.

    >>> arrays = SharedArrays.create({"weights": ArraySpec((3,)), "steps": ArraySpec((), "int64")}, rows=2)
    >>> arrays.row(1)["weights"][...] = 0.5
    >>> SharedArrays.attach(arrays.handle).row(1)["weights"].tolist(), arrays.row_bytes
    ([0.5, 0.5, 0.5], 128)
    """

    def __init__(self, block: Block, specs: ArraySpecs, rows: int = 0) -> None:
        self.block, self.specs, self.rows = block, specs, rows
        self._offsets, self.row_bytes = _offsets(specs)

    @classmethod
    def create(cls, specs: ArraySpecs, rows: int = 1) -> SharedArrays:
        """Create rows of zeros."""
        return cls(Block.create(_offsets(specs)[1] * rows), specs, rows)

    @classmethod
    def attach(cls, handle: RowsHandle) -> SharedArrays:
        """Open what another process created."""
        return cls(Block(handle.region), handle.specs)

    @property
    def handle(self) -> RowsHandle:
        """How another process finds it."""
        return RowsHandle(self.block.region, self.specs)

    def row(self, index: int = 0) -> dict[str, NDArray[Any]]:
        """Return the arrays of a row, as views."""
        start = index * self.row_bytes
        return {
            name: self.block.array(start + self._offsets[name], spec.shape, spec.dtype)
            for name, spec in self.specs.items()
        }

    def close(self) -> None:
        """Release the arrays; their creator removes them."""
        self.block.close()


class SharedMemory:
    """The shared arrays of a run by name, and arrays to read."""

    def __init__(self) -> None:
        self._arrays: dict[str, SharedArrays] = {}
        self._copies: list[Block] = []

    def __getitem__(self, name: str) -> SharedArrays:
        return self._arrays[name]

    def allocate(self, name: str, specs: ArraySpecs, rows: int = 1) -> SharedArrays:
        """Return the arrays of that name, recreated if their specs changed or there are too few rows."""
        arrays = self._arrays.get(name)
        if arrays is None or arrays.specs != specs or arrays.rows < rows:
            if arrays is not None:
                arrays.close()
            self._arrays[name] = SharedArrays.create(specs, rows)
        return self._arrays[name]

    def write_broadcast(self, arrays: Mapping[str, NDArray[Any]]) -> SharedArrays:
        """Write the arrays that every client receives to shared memory."""
        specs = {name: ArraySpec(array.shape, str(array.dtype)) for name, array in arrays.items()}
        broadcast = self.allocate("broadcast", specs)
        for name, target in broadcast.row().items():
            target[...] = arrays[name]
        return broadcast

    def share(self, array: NDArray[Any]) -> ArrayHandle:
        """Make an array readable in workers: one that is mapped from a file is not copied, others are."""
        if array.dtype.hasobject:
            raise ArgumentError(f"expected an array of plain values, got {array.dtype}; convert it", argument="share")
        location = _on_disk(array)
        if location is None:
            block = Block.create(array.nbytes)
            block.array(0, array.shape, array.dtype)[...] = array
            self._copies.append(block)
            location = block.region, 0
        return ArrayHandle(*location, array.shape, array.dtype)

    def close(self) -> None:
        """Release everything; workers that have not opened it yet can no longer do so."""
        for block in [*(arrays.block for arrays in self._arrays.values()), *self._copies]:
            block.close()


def copy_declared(owner: str, target: Mapping[str, NDArray[Any]], arrays: Mapping[str, Any], specs: ArraySpecs) -> None:
    """Copy arrays into a row; names, shapes and dtypes must be as declared, else the error names the owner."""
    if set(arrays) != set(specs):
        name = sorted(set(arrays) ^ set(specs))[0]
        what = "is declared but missing" if name in specs else "is not declared"
        raise ArgumentError(f"{owner}: {name!r} {what}")
    for name, spec in specs.items():
        array = np.asarray(arrays[name])
        if array.shape != spec.shape or array.dtype != spec.dtype:
            got = f"got {array.dtype} of shape {array.shape}"
            raise ArgumentError(f"{owner}: {name!r}: expected {spec.dtype} of shape {spec.shape}, {got}")
        target[name][...] = array


def _offsets(specs: ArraySpecs) -> tuple[dict[str, int], int]:
    """Return where each array starts in a row, and the bytes of a row."""
    offsets, end = {}, 0
    for name, spec in specs.items():
        offsets[name] = end
        end += -(-spec.nbytes // ALIGNMENT) * ALIGNMENT
    return offsets, end


def _on_disk(array: NDArray[Any]) -> tuple[FileRegion, int] | None:
    """Return the file that an array is mapped from and its offset there, or None."""
    root: Any = array
    while isinstance(root, np.ndarray) and not isinstance(root.base, mmap.mmap):
        root = root.base
    # A copy-on-write array may differ from its file; one with gaps would need its strides.
    if not isinstance(root, np.memmap) or root.mode == "c" or not array.flags.c_contiguous:
        return None
    if root.filename is None or not array.size:
        return None
    offset = root.offset + array.ctypes.data - root.ctypes.data
    try:
        return region_of(root.filename, offset + array.nbytes), offset
    except FileNotFoundError:  # removed since
        return None
