"""Bytes that every worker process sees.

A block lies in shared memory where it fits, in a mapped file beyond. It has no name in either, so it is gone with the
last process that maps it, also after a kill.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fedrela.errors import ArgumentError, DataError
from fedrela.files.mapped import MappedFile, Place, place_of

SHARED_MEMORY = Path("/dev/shm")
LIMIT = 1 << 30  # bytes of one block in shared memory: unlike a file's, they cannot leave memory

Handle = Place


class Block:
    """Bytes that other processes can attach; see `create` and `attach`.

    Attributes
    ----------
    handle
        What another process attaches it with; small, hashable, can be pickled.
    """

    def __init__(self, handle: Handle, file: MappedFile | None) -> None:
        self.handle = handle
        self._file = file
        self._bytes: mmap.mmap | None = handle.map(writable=True)

    @classmethod
    def create(cls, size: int, *, folder: str | Path | None = None, limit: int = LIMIT) -> Block:
        """Make a block of zeros.

        Parameters
        ----------
        size
            In bytes.
        folder
            Where a block lies that shared memory has no room for; a folder for temporary files by default.
        limit
            The size above which a block is a file in any case.
        """
        if size < 0:
            raise ArgumentError(f"block: expected a size of at least 0, got {size}")
        size = max(size, 1)  # nothing cannot be mapped
        file = None
        if size <= min(limit, _free(SHARED_MEMORY)):
            with contextlib.suppress(DataError, OSError):  # somebody else was quicker
                file = MappedFile(SHARED_MEMORY, size)
        file = file or MappedFile(folder or tempfile.gettempdir(), size)
        return cls(file.place, file)

    @classmethod
    def attach(cls, handle: Handle) -> Block:
        """Map a block that another process made and still holds."""
        return cls(handle, None)

    def array(self, offset: int, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array on the block's own bytes from `offset` on."""
        if self._bytes is None:
            raise ArgumentError("block: it is closed; make another")
        return _view(self._bytes, offset, shape, dtype)

    def close(self) -> None:
        """Let go of the block; whoever made it ends it for others who have not attached it yet.

        Its memory goes with the last array on it.
        """
        self._bytes = None
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Block:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class SharedArray:
    """Where workers find an array to read; see `share`. It can be pickled, and owns its copy in this process."""

    place: Place
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    block: Block | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[SharedArray], tuple[Any, ...]]:
        return SharedArray, (self.place, self.offset, self.shape, self.dtype)

    def close(self) -> None:
        """Let go of the copy; workers that have not opened it yet no longer can."""
        if self.block is not None:
            self.block.close()


def share(array: NDArray[Any], folder: str | Path | None = None) -> SharedArray:
    """Make an array readable in workers.

    Parameters
    ----------
    array
        One that is mapped from a file on disk is left there; any other is copied once into a `Block`.
    folder
        See `Block.create`.

    Returns
    -------
    SharedArray
        To be kept while workers may open it with `shared_array`, and closed then.
    """
    if array.dtype.hasobject:
        raise ArgumentError(f"share: expected an array of plain values, got {array.dtype}; convert it")
    found = _on_disk(array)
    if found is not None:
        return SharedArray(*found, array.shape, array.dtype)
    block = Block.create(array.nbytes, folder=folder)
    block.array(0, array.shape, array.dtype)[...] = array
    return SharedArray(block.handle, 0, array.shape, array.dtype, block)


def shared_array(handle: SharedArray) -> NDArray[Any]:
    """Return the array behind a handle, read-only, without a copy."""
    return _view(handle.place.map(writable=False), handle.offset, handle.shape, handle.dtype)


def _on_disk(array: NDArray[Any]) -> tuple[Place, int] | None:
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
        return place_of(root.filename, offset + array.nbytes), offset
    except FileNotFoundError:  # removed since
        return None


def _view(data: mmap.mmap, offset: int, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    dtype = np.dtype(dtype)
    end = offset + dtype.itemsize * math.prod(shape)
    if offset < 0 or end > len(data):
        raise ArgumentError(f"block: bytes {offset} to {end} are asked for, it has {len(data)}")
    return np.ndarray(shape, dtype, buffer=data, offset=offset)


def _free(folder: Path) -> int:
    try:
        room = os.statvfs(folder)
    except OSError:
        return 0
    return room.f_bavail * room.f_frsize
