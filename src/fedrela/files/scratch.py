"""Temporary folders. If a kill leaves one behind, the next process that needs one removes it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fedrela.files.atomic import discard
from fedrela.files.lock import hold_lock, is_locked

LOCK = "fedrela.lock"
YOUNG = 60  # seconds for which a lock file may be empty: its process has created it and is about to lock it

_user = getattr(os, "getuid", None)  # None on a system without locks, where any folder may be in use
_locks = contextlib.ExitStack()  # held until this process ends


@contextlib.contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder, by default a temporary one; it is removed at the end or, after a kill, by another process."""
    remove_leftovers(parent)
    folder = Path(tempfile.mkdtemp(prefix="fedrela-", dir=parent))
    try:
        with hold_lock(folder / LOCK):
            yield folder
    finally:
        discard(folder)


def mark_scratch(folder: Path) -> None:
    """Let other processes remove a folder, such as that of multiprocessing, once this process has ended."""
    if not (folder / LOCK).exists():
        remove_leftovers(folder.parent)
        _locks.enter_context(hold_lock(folder / LOCK))


def remove_leftovers(parent: Path | None = None) -> None:
    """Remove the marked folders of this user's processes that have ended, by default from the temporary folder."""
    if _user is None:
        return
    for lock in (parent or Path(tempfile.gettempdir())).glob(f"*/{LOCK}"):
        with contextlib.suppress(OSError):  # another process may be removing it, too
            status, folder = lock.lstat(), lock.parent
            ours = status.st_uid == folder.lstat().st_uid == _user() and not folder.is_symlink()
            was_taken = status.st_size > 0 or status.st_mtime < time.time() - YOUNG
            if ours and was_taken and not is_locked(lock):
                discard(folder)
