"""Files that several processes map at once. A file created here is unlinked at once, so that none is left behind."""

from __future__ import annotations

import mmap
import os
import secrets
import weakref
from dataclasses import dataclass
from pathlib import Path

from fedrela.errors import DataError, IntegrityError
from fedrela.files.operations import reserve

DESCRIPTORS = Path("/proc/self/fd")  # if it exists, other processes can open an unlinked file


@dataclass(frozen=True)
class FileRegion:
    """The first `size` bytes of a file, which any process of this user can map.

    `identity`, device and inode, detects another file under the same path.
    """

    path: str
    size: int
    identity: tuple[int, int]

    def map(self, *, writable: bool) -> mmap.mmap:
        """Map the bytes into this process."""
        try:
            handle = os.open(self.path, os.O_RDWR if writable else os.O_RDONLY)
        except FileNotFoundError:
            raise self._changed() from None
        try:
            status = os.fstat(handle)
            # Reading past the end of a mapped file would kill the process.
            if (status.st_dev, status.st_ino) != self.identity or status.st_size < self.size:
                raise self._changed()
            return mmap.mmap(handle, self.size, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
        finally:
            os.close(handle)

    def _changed(self) -> IntegrityError:
        return IntegrityError(f"{self.path}: the shared file no longer exists; share it again")


def region_of(path: str | Path, size: int) -> FileRegion:
    """Return the first `size` bytes of a file on disk."""
    status = os.stat(path)
    if status.st_size < size:
        raise IntegrityError(f"{path}: expected {size} bytes, got {status.st_size}; create it again")
    return FileRegion(os.path.abspath(path), size, (status.st_dev, status.st_ino))


class MappedFile:
    """A new file of zeros, which others can map until it is closed; mappings outlive that.

    It is unlinked at once if the system lets others open it by its descriptor, so that it vanishes with the last
    process that uses it, however that ends. Elsewhere it is unlinked at `close` or at the end of this process. Its
    `size` bytes are reserved in `folder` at once; `region` says how to map it.
    """

    def __init__(self, folder: str | Path, size: int) -> None:
        folder = Path(folder).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f".fedrela-{os.getpid()}-{secrets.token_hex(6)}.block"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        name = None if DESCRIPTORS.is_dir() else path
        if name is None:
            path.unlink()
        self._removal = weakref.finalize(self, _remove, handle, name)
        try:
            os.ftruncate(handle, size)
            reserve(handle, size)
        except OSError as error:
            self.close()
            raise DataError(f"{folder}: cannot store {size} bytes: {error.strerror}; choose another folder") from None
        status = os.fstat(handle)
        where = path if name else f"/proc/{os.getpid()}/fd/{handle}"
        self.region = FileRegion(str(where), size, (status.st_dev, status.st_ino))

    def close(self) -> None:
        """Close it: no other process can map it from now on."""
        self._removal()


def _remove(handle: int, name: Path | None) -> None:
    os.close(handle)
    if name is not None:
        name.unlink(missing_ok=True)
