"""Atomic writes of files and folders.

A write goes aside, is synced, renamed over the target, and the folder is synced: at every instant the target is the old
file or the new one, whole. A folder of many files is made the same way.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from fedrela.errors import ArgumentError, DataError
from fedrela.files.verbs import append, link, make_folder, remove, rename, sync, sync_folder, write_aside

ASIDE = re.compile(r"\.(.+)\.[0-9a-f]{12}\.part")


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
    make_folders(path.parent)
    aside = aside_of(path)
    try:
        write_aside(aside, data)
        sync(aside)
        _put_in_place(aside, path, overwrite)
    except BaseException:
        discard(aside)
        raise
    sync_folder(path.parent)


def aside_of(path: Path) -> Path:
    """Return a new name beside `path` for what is not finished."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")


def _put_in_place(aside: Path, path: Path, overwrite: bool) -> None:
    if overwrite:
        rename(aside, path)
        return
    try:
        link(aside, path)
        discard(aside)
    except FileExistsError:
        raise _exists(path) from None
    except OSError:  # a file system without hard links: look first, as well as can be
        if os.path.lexists(path):
            raise _exists(path) from None
        rename(aside, path)


def _exists(path: Path) -> ArgumentError:
    return ArgumentError(f"{path}: exists already; choose another place or allow overwriting")


def make_folders(path: Path) -> None:
    """Make a folder and its missing parents, each on disk before something is put into it."""
    if not path.is_dir():
        make_folders(path.parent)
        make_folder(path)
        sync_folder(path.parent)


@contextlib.contextmanager
def new_folder(target: str | Path) -> Iterator[Path]:
    """Give a fresh folder to fill, which becomes `target` at the end; after an error nothing of it is left.

    Files inside are made with `write_new`. An existing target is an error.
    """
    target = Path(target)
    if os.path.lexists(target):
        raise DataError(f"{target}: exists already; remove it or choose another place")
    make_folders(target.parent)
    aside = aside_of(target)
    try:
        make_folder(aside)
        yield aside
        for folder, _, names in os.walk(aside):
            for name in sorted(names):
                sync(Path(folder, name))
            sync_folder(Path(folder))
        rename(aside, target)
    except BaseException:
        discard(aside)
        raise
    sync_folder(target.parent)


def write_new(path: str | Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file of a `new_folder`, which is synced as a whole; an existing file is an error."""
    write_aside(Path(path), b"")
    for chunk in chunks:
        append(Path(path), chunk)


def remove_tree(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it; links are not followed."""
    if path.is_dir() and not path.is_symlink():
        for entry in sorted(path.iterdir()):
            remove_tree(entry)
    remove(path)


def remove_at_once(path: Path) -> None:
    """Remove a file or a folder, which is there wholly or not at all at every instant."""
    aside = aside_of(path)
    rename(path, aside)
    remove_tree(aside)


def remove_if_there(path: Path) -> None:
    """Remove a file that may be missing."""
    if os.path.lexists(path):
        remove(path)


def discard(path: Path) -> None:
    """Remove what is not finished, as well as can be."""
    with contextlib.suppress(OSError):
        if os.path.lexists(path):
            remove_tree(path)


def sweep(folder: Path, *, keep: str = "") -> None:
    """Remove what killed writers left in `folder`, but not what goes aside for the file `keep`."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = ASIDE.fullmatch(path.name)
        if name and name[1] != keep:
            discard(path)
