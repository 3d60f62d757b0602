"""Temporary folders. If a kill leaves one behind, the next process that needs one removes it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fedrela.files.atomic import discard
from fedrela.files.lock import alone, is_taken

LOCK = "fedrela.lock"
YOUNG = 60  # seconds for which a folder may have a lock that is not taken yet

_user = getattr(os, "getuid", None)  # None on a system without locks, where any folder may be in use
_held = contextlib.ExitStack()  # until this process ends


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Yield a new folder that is removed at the end or, after a kill, by another process."""
    remove_leftovers()
    folder = Path(tempfile.mkdtemp(prefix="fedrela-"))
    try:
        with alone(folder / LOCK):
            yield folder
    finally:
        discard(folder)


def mark_scratch(folder: Path) -> None:
    """Let others remove a folder made elsewhere, such as by multiprocessing, once this process has ended."""
    if not (folder / LOCK).exists():
        remove_leftovers()
        _held.enter_context(alone(folder / LOCK))


def remove_leftovers() -> None:
    """Remove the marked folders of processes of this user that are gone."""
    if _user is None:
        return
    for lock in Path(tempfile.gettempdir()).glob(f"*/{LOCK}"):
        with contextlib.suppress(OSError):  # another process may be removing it, too
            facts, folder = lock.lstat(), lock.parent
            ours = facts.st_uid == folder.lstat().st_uid == _user() and not folder.is_symlink()
            if ours and facts.st_mtime < time.time() - YOUNG and not is_taken(lock):
                discard(folder)
