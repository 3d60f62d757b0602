"""Files that several processes map at once. A file created here has no name, so that nothing of it is left behind."""

from __future__ import annotations

import mmap
import os
import secrets
import weakref
from dataclasses import dataclass
from pathlib import Path

from fedrela.errors import DataError, IntegrityError
from fedrela.files.operations import reserve

DESCRIPTORS = Path("/proc/self/fd")  # if it exists, other processes can open a file that has lost its name


@dataclass(frozen=True)
class FileRegion:
    """The first `size` bytes of a file, which any process of this user can map.

    By `identity`, device and inode, another file under the same path is noticed.
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
            facts = os.fstat(handle)
            # Reading past the end of a mapped file would kill the process.
            if (facts.st_dev, facts.st_ino) != self.identity or facts.st_size < self.size:
                raise self._changed()
            return mmap.mmap(handle, self.size, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
        finally:
            os.close(handle)

    def _changed(self) -> IntegrityError:
        return IntegrityError(f"{self.path}: the shared file is no longer there; share it again")


def region_of(path: str | Path, size: int) -> FileRegion:
    """Return the first `size` bytes of a file on disk."""
    facts = os.stat(path)
    if facts.st_size < size:
        raise IntegrityError(f"{path}: expected {size} bytes, the file has {facts.st_size}; create it again")
    return FileRegion(os.path.abspath(path), size, (facts.st_dev, facts.st_ino))


class MappedFile:
    """A new file of zeros, which others can map until it is closed; mappings outlive that.

    It loses its name at once if the system lets others open it by its descriptor, so that it vanishes with the
    last process that uses it, however that ends. Elsewhere the name goes at `close` or at the end of this process.
    Its `size` bytes are claimed in `folder` at once; `place` says how to map it.
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
            raise DataError(f"{folder}: cannot hold {size} bytes: {error.strerror}; choose another folder") from None
        facts = os.fstat(handle)
        where = path if name else f"/proc/{os.getpid()}/fd/{handle}"
        self.place = FileRegion(str(where), size, (facts.st_dev, facts.st_ino))

    def close(self) -> None:
        """Close it: no other process can map it from now on."""
        self._removal()


def _remove(handle: int, name: Path | None) -> None:
    os.close(handle)
    if name is not None:
        name.unlink(missing_ok=True)
