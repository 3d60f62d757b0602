"""Atomic writes of files, folders, arrays and downloads.

Everything is written under a temporary name, synced, renamed to its target, and the folder is synced: at every instant
the target is the complete old file or the complete new one.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from fedrela.errors import ArgumentError, BusyError, DataError
from fedrela.files import operations
from fedrela.files.lock import try_lock
from fedrela.files.operations import open_no_link
from fedrela.files.reading import open_plain

LONGEST_WAIT = 500  # times 20 milliseconds
TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{12}\.part")


def write_bytes(path: str | Path, data: bytes, *, overwrite: bool = True, private: bool = False) -> None:
    """Write `data` to `path` atomically; a missing folder is created.

    With `overwrite` False an existing target is an error, even if it appears during the write. With `private` only
    the owner may read the file.
    """
    path = Path(path)
    make_folders(path.parent)
    with _unfinished(path) as temporary:
        operations.write_temporary(temporary, data, private=private)
        operations.sync(temporary)
        _put_in_place(temporary, path, overwrite)
    operations.sync_folder(path.parent)


def append_line(path: Path, line_after: Callable[[bytes], bytes]) -> None:
    """Add the line that `line_after` returns for the content so far; it is on disk when this returns.

    Only one process at a time does so; others wait. Only the owner may read the file. After a line that a kill cut
    short, the new one starts on a new line.
    """
    make_folders(path.parent)
    operations.append(path, b"", private=True)
    with open_plain(path) as file:
        for _ in range(LONGEST_WAIT):
            if locked := try_lock(file.fileno()):
                break
            time.sleep(0.02)
        if not locked:
            raise BusyError(f"{path}: another process is writing it; wait until it has finished")
        before = file.read()
        line = line_after(before)
        operations.append(path, line if before.endswith(b"\n") or not before else b"\n" + line)
        operations.sync(path)
    operations.sync_folder(path.parent)


def temporary_path(path: Path) -> Path:
    """Return a new hidden name beside `path` for an unfinished file."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")


@contextlib.contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; after an error it is removed, and the error names `path`."""
    temporary = temporary_path(path)
    try:
        yield temporary
    except BaseException as error:
        discard(temporary)
        if isinstance(error, OSError) and str(error.filename) == str(temporary):
            error.filename = str(path)
        raise


def _put_in_place(temporary: Path, path: Path, overwrite: bool) -> None:
    if not overwrite:
        try:
            operations.link(temporary, path)
        except OSError:  # it exists, or the file system has no hard links: check first, which leaves a race
            if os.path.lexists(path):
                raise ArgumentError(f"{path}: exists already; choose another path or allow overwriting") from None
        else:
            discard(temporary)
            return
    operations.rename(temporary, path)


def make_folders(path: Path) -> None:
    """Create a folder and its missing parents, each on disk before its content."""
    if not path.is_dir():
        make_folders(path.parent)
        operations.make_folder(path)
        operations.sync_folder(path.parent)


@contextlib.contextmanager
def first_free(path: Path) -> Iterator[Path]:
    """Create the folder `path`, or the first free one of path-2, path-3 and so on, and yield it to one process only.

    It is removed if it is empty in the end, and so is its parent if that was created here.
    """
    created = [] if path.parent.exists() else [path.parent]
    make_folders(path.parent)
    number, free = 1, path
    while not operations.make_new_folder(free):
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    try:
        yield free
    finally:
        with contextlib.suppress(OSError):
            for folder in (free, *created):
                operations.remove(folder)


@contextlib.contextmanager
def new_folder(target: str | Path) -> Iterator[Path]:
    """Yield a new folder to fill, which becomes `target` at the end; after an error it is removed.

    Write its files with `write_new`. An existing target is an error.
    """
    target = Path(target)
    if os.path.lexists(target):
        raise DataError(f"{target}: exists already; remove it or choose another path")
    make_folders(target.parent)
    with _unfinished(target) as temporary:
        operations.make_folder(temporary)
        yield temporary
        for folder, _, names in os.walk(temporary):
            for name in sorted(names):
                operations.sync(Path(folder, name))
            operations.sync_folder(Path(folder))
        operations.rename(temporary, target)
    operations.sync_folder(target.parent)


def write_new(path: str | Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file of a `new_folder`, which is synced as a whole; an existing file is an error."""
    operations.write_temporary(Path(path), b"")
    for chunk in chunks:
        operations.append(Path(path), chunk)


def remove_tree(path: Path) -> None:
    """Remove a file, a link, or a folder with its content; links are not followed."""
    if path.is_dir() and not path.is_symlink():
        for entry in sorted(path.iterdir()):
            remove_tree(entry)
    operations.remove(path)


def remove_atomically(path: Path) -> None:
    """Remove a file or a folder, which at every instant is complete or gone."""
    temporary = temporary_path(path)
    operations.rename(path, temporary)
    remove_tree(temporary)


def remove_if_exists(path: Path) -> None:
    """Remove a file that may be missing."""
    if os.path.lexists(path):
        operations.remove(path)


def discard(path: Path) -> None:
    """Remove an unfinished file or folder; errors are ignored."""
    with contextlib.suppress(OSError):
        if os.path.lexists(path):
            remove_tree(path)


def remove_temporary(folder: Path, *, keep: str = "", older: float = 0.0) -> None:
    """Remove temporary files of killed processes in `folder`, at least `older` seconds old, except those of `keep`."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = TEMPORARY.fullmatch(path.name)
        with contextlib.suppress(OSError):  # another process may be removing it too
            if name and name[1] != keep and (not older or path.lstat().st_mtime < time.time() - older):
                discard(path)


class NewArrayFile:
    """An array on disk to fill, `array`, which becomes the .npy file `target`; only its owner may read it."""

    def __init__(self, target: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.target = target
        self.path = temporary_path(target)
        try:
            self.array = map_temporary(self.path, shape, dtype)
        except BaseException:
            self.discard()
            raise

    def finish(self) -> None:
        """Write out the values and rename the file to its target."""
        self.array.flush()
        _finish(self.path, self.target)

    def discard(self) -> None:
        """Remove the unfinished file."""
        remove_if_exists(self.path)


@operations.operation
def map_temporary(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> np.memmap[Any, Any]:
    """Create a memory-mapped .npy file to fill, which only its owner may read."""
    os.close(operations.open_private(str(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
    with open(path, "r+b") as file:
        operations.reserve(file.fileno(), path.stat().st_size)
    return array


class PartialFile:
    """An unfinished file that grows beside its target, survives a failure, and is renamed at the end.

    Used in a ``with`` statement, by one process at a time. An empty part is removed on exit.
    """

    def __init__(self, target: str | Path) -> None:
        target = Path(target)
        self.path = target.with_name(f".{target.name}.part")

    def __enter__(self) -> PartialFile:
        make_folders(self.path.parent)
        operations.append(self.path, b"")
        self._file = open(self.path, "ab", opener=open_no_link)
        try:
            _lock(self._file, self.path)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.size == 0:
                remove_if_exists(self.path)
        finally:
            self._file.close()

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self._file.tell()

    def restart(self) -> None:
        """Discard all bytes."""
        self._file.seek(0)
        operations.overwrite(self.path, b"")

    def append(self, chunk: bytes) -> None:
        """Add `chunk` at the end."""
        operations.append(self.path, chunk, self._file)

    def finish(self, target: Path) -> None:
        """Sync the part and rename it to `target`, in the same folder."""
        self._file.flush()
        _finish(self.path, target)


def _finish(temporary: Path, target: Path) -> None:
    operations.sync(temporary)
    operations.rename(temporary, target)
    operations.sync_folder(target.parent)


def _lock(file: BinaryIO, path: Path) -> None:
    """Hold `file` exclusively until it is closed."""
    locked = try_lock(file.fileno())
    try:
        # The previous holder may have renamed the file between our open and our lock.
        locked = locked and os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        locked = False
    if not locked:
        raise BusyError(f"{path}: another process is writing it; wait until it has finished")
