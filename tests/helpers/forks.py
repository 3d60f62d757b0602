"""Children of a warmed process with one thread: what they load is paid for once, and each can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

KILLED = "killed"
LONGEST = 20_000  # bytes of a traceback: less than what a pipe holds


def fork(action: Callable[[], None]) -> tuple[int, int]:
    """Begin an action in a child; return the child and where to read what went wrong."""
    assert len(os.listdir("/proc/self/task")) == 1  # a lock that another thread holds would be held in the child
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    text = ""
    try:
        os.close(reader)
        action()
    except BaseException:
        text = traceback.format_exc()
    finally:
        os.write(writer, text.encode()[-LONGEST:])
        os._exit(bool(text))


def ended(child: int, reader: int) -> str:
    """Wait for a child; return nothing, that it was killed, or what went wrong."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(reader, "rb") as said:
        text = said.read().decode()
    return KILLED if abs(code) == 9 else text or "" if code in (0, 1) else f"exit code {code}"


def in_fork(action: Callable[[], None]) -> str:
    """Carry out an action in a child; see `ended`."""
    return ended(*fork(action))


def memory() -> str | None:
    """Return where to write thousands of small files: a kill does not reach below the file system."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def drive(file: str, *args: object, timeout: float = 3000) -> Any:
    """Run a test module as a program in a fresh folder, and return what it prints as JSON."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        command = [sys.executable, file, folder, *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
