"""What a killed process must not leave: processes, and bytes in shared memory."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PARENT, SESSION = 1, 3  # places in /proc/PID/stat after the name
PATIENCE = 60  # seconds


def processes(place: int, number: int) -> list[int]:
    """Return the living processes of which `number` is the parent or the session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            facts = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if facts[0] not in "ZX" and int(facts[place]) == number:
            found.append(int(folder.name))
    return found


def wait_for(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.002)


def shared_bytes(process: int) -> int:
    """Return how many bytes of a process that is gone still have a name somewhere.

    A kill between the making of a name and its removal leaves an empty file, which holds nothing.
    """
    places = {"/dev/shm", tempfile.gettempdir(), os.environ.get("TMPDIR", "/tmp")}
    left = [path for place in places for path in Path(place).glob(f".fedrela-{process}-*")]
    size = sum(path.stat().st_size for path in left)
    for path in left:
        path.unlink()
    return size
