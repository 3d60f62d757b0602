"""The operations that change what is on disk.

Every write consists of these, and each of them can be observed: an observer is called before and after it with its
name and arguments. A test can thus kill the process at any step, raise the errors of a failing disk, write part of the
data, or keep a log, and covers new writes without a change.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar

# Called with "before" or "after", the operation, and its arguments (a path first).
Observer = Callable[[str, str, tuple[Any, ...]], None]
P = ParamSpec("P")
R = TypeVar("R")

_observer: Observer | None = None


@contextlib.contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Call `observer` before and after every operation while the block runs."""
    global _observer
    former, _observer = _observer, observer
    try:
        yield
    finally:
        _observer = former


def operation(action: Callable[P, R]) -> Callable[P, R]:
    """Make `action`, which takes positional arguments, observable."""

    @functools.wraps(action)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if _observer is None:
            return action(*args, **kwargs)
        _observer("before", action.__name__, args)
        result = action(*args, **kwargs)
        _observer("after", action.__name__, args)
        return result

    return wrapped


def open_no_link(path: str, flags: int, mode: int = 0o666) -> int:
    """Open a file, never through a symbolic link, and without waiting where it is a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), mode)


open_private = functools.partial(open_no_link, mode=0o600)  # a new file is for its owner alone


def reserve(handle: int, size: int) -> None:
    """Reserve the disk blocks of an open file now: a full disk would later kill a process that writes to it."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise


@operation
def write_temporary(path: Path, data: bytes | memoryview, *, private: bool = False) -> None:
    """Write a file that does not exist yet."""
    with open(path, "xb", opener=open_private if private else open_no_link) as file:
        file.write(data)


@operation
def append(path: Path, data: bytes | memoryview, file: BinaryIO | None = None, *, private: bool = False) -> None:
    """Add `data` to the end of a file, through `file` if it is open already; a missing file is created."""
    if file is not None:
        file.write(data)
        return
    with open(path, "ab", opener=open_private if private else open_no_link) as opened:
        opened.write(data)


@operation
def overwrite(path: Path, data: bytes) -> None:
    """Replace the content of a file in place, which is not atomic: only for content that nothing depends on."""
    with open(path, "r+b", opener=open_no_link) as file:
        file.write(data)
        file.truncate()  # last: some file systems sync a file at once if it was emptied first


@operation
def sync(path: Path) -> None:
    """Wait until a file's content is on disk."""
    _sync(path)


@operation
def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk."""
    with contextlib.suppress(PermissionError):  # a folder we may write to but not read
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@operation
def rename(source: Path, target: Path) -> None:
    """Replace one file or folder by another, atomically."""
    os.replace(source, target)


@operation
def link(source: Path, target: Path) -> None:
    """Give a file a second name; unlike rename, this fails if the name exists."""
    os.link(source, target)


@operation
def make_folder(path: Path) -> None:
    """Create a folder unless it exists."""
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from None


@operation
def make_new_folder(path: Path) -> bool:
    """Create a folder and return True; False if something of that name exists."""
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


@operation
def remove(path: Path) -> None:
    """Remove a file, a link or an empty folder."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()
