"""Atomic writes of files and folders, and digests.

A write goes aside, is synced, renamed over the target, and the folder is synced: at every instant the target is the old
file or the new one, whole. A folder of many files is made the same way.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from fedrela.errors import ArgumentError, DataError


def write_bytes(path: str | Path, data: bytes, *, overwrite: bool = True) -> None:
    """Write `data` to `path` atomically.

    Parameters
    ----------
    path
        The target; its folder is made where it is missing.
    data
        The whole content.
    overwrite
        With False an existing target is an error, also when it appears during the write.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = aside_of(path)
    try:
        _write_aside(aside, data)
        _put_in_place(aside, path, overwrite)
    finally:
        aside.unlink(missing_ok=True)
    sync(path.parent)


def aside_of(path: Path) -> Path:
    """Return a new name beside `path` for what is not finished."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")


def _write_aside(aside: Path, data: bytes) -> None:
    with open(aside, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _put_in_place(aside: Path, path: Path, overwrite: bool) -> None:
    if overwrite:
        os.replace(aside, path)
        return
    try:
        os.link(aside, path)  # unlike rename, link fails where the target exists
    except FileExistsError:
        raise _exists(path) from None
    except OSError:  # a file system without hard links: look first, as well as can be
        if os.path.lexists(path):
            raise _exists(path) from None
        os.replace(aside, path)


def _exists(path: Path) -> ArgumentError:
    return ArgumentError(f"{path}: exists already; choose another place or allow overwriting")


def sync(path: Path) -> None:
    """Sync a file or a folder to disk."""
    with contextlib.suppress(PermissionError):  # a folder we may write to but not read
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def new_folder(target: str | Path) -> Iterator[Path]:
    """Give a fresh folder to fill, which becomes `target` at the end; after an error nothing of it is left.

    Files inside are made with `write_new`. An existing target is an error.
    """
    target = Path(target)
    if os.path.lexists(target):
        raise DataError(f"{target}: exists already; remove it or choose another place")
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = aside_of(target)
    aside.mkdir()
    try:
        yield aside
        for folder, _, names in os.walk(aside):
            for name in names:
                sync(Path(folder, name))
            sync(Path(folder))
        os.rename(aside, target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    sync(target.parent)


def write_new(path: str | Path, chunks: Iterable[bytes]) -> None:
    """Write a file of a `new_folder`, which is synced as a whole; an existing file is an error."""
    with open(path, "xb") as file:
        for chunk in chunks:
            file.write(chunk)


def digest(data: bytes | memoryview) -> str:
    """SHA-256 of `data` in hexadecimal.

    >>> digest(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(data).hexdigest()


def digest_file(path: str | Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
