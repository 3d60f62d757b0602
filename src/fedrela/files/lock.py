"""One process at a time: a lock file that names its holder, and is released when the holder dies."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from fedrela.errors import BusyError
from fedrela.files.operations import append, overwrite
from fedrela.files.reading import open_plain

RETRY_SECONDS = (0.02, 0.1)  # `is_locked` holds the lock for an instant, which must not look like a holder


def try_lock(handle: int) -> bool:
    """Lock an open file until it is closed; False if another process holds it.

    True as well if the operating system or the file system has no such lock.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file `path` now."""
    try:
        with open_plain(path) as file:
            return not try_lock(file.fileno())
    except OSError:
        return False


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file `path` while the block runs; a `BusyError` names the process that holds it.

    The system releases it when the process ends, however it ends. A forked child holds it too.
    """
    append(path, b"")
    with open_plain(path) as file:
        locked = try_lock(file.fileno())
        for seconds in RETRY_SECONDS:
            if not locked:
                time.sleep(seconds)
                locked = try_lock(file.fileno())
        if not locked:
            raise BusyError(f"{path.parent}: {_owner(file.read(1000))} is using it; wait until it has ended")
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        owner = {"pid": os.getpid(), "machine": platform.node(), "started": started}
        overwrite(path, json.dumps(owner).encode() + b"\n")
        yield


@contextlib.contextmanager
def wait_for_lock(path: Path, seconds: float = 10.0) -> Iterator[None]:
    """Hold an existing file, which stays as it is, while the block runs; wait for other holders, but not for ever."""
    with open_plain(path) as file:
        end = time.monotonic() + seconds
        while not try_lock(file.fileno()):
            if time.monotonic() > end:
                raise BusyError(f"{path}: another process holds it; wait until it has ended")
            time.sleep(RETRY_SECONDS[0])
        yield


def _owner(data: bytes) -> str:
    try:
        owner = json.loads(data)
        text = f"process {owner['pid']} on {owner['machine']}, started {owner['started']},"
    except (ValueError, KeyError, TypeError, RecursionError):
        return "another process"
    return text if text.isprintable() and len(text) < 200 else "another process"
