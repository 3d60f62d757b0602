"""Worker processes: both ends of the pipe between a pool and a worker, and what travels through it."""

from __future__ import annotations

import contextlib
import copyreg
import gc
import io
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import torch

from fedrela.engine.executors import forkserver
from fedrela.engine.tasks import failure_of
from fedrela.errors import FedrelaError
from fedrela.records import Failure
from fedrela.text import one_line

LOAD, TASK = b"L", b"T"  # the first byte of a message

Work = Callable[[Any], Any]


class CannotSendError(FedrelaError):
    """The work cannot reach worker processes; it can still be done in this one."""


class WorkerDiedError(Exception):
    """The worker process has ended by itself."""


class Reply(NamedTuple):
    """What a worker sends back; the clock is the same in all processes of a machine."""

    value: Any
    failure: Failure | None
    began: float
    finished: float


@dataclass(slots=True)
class Job:
    """A task on its way through the pool."""

    position: int
    task: Any
    message: bytes = b""
    deaths: int = 0


class Worker:
    """One worker process as the pool sees it; replies come in the sequence of the messages."""

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()  # sent and not yet answered; the first is the one being worked on
        self.is_swift = False  # whether its last task took so little time that waiting for the next one counts
        self.connection, theirs = Pipe()  # what to wait on for a reply
        try:
            self._process = forkserver.start(serve, theirs)
        except Exception as error:
            self.connection.close()
            raise CannotSendError(f"workers: cannot be started here, {one_line(error)}; use one process") from error
        finally:
            theirs.close()

    def send(self, message: bytes) -> None:
        """Send a message."""
        try:
            self.connection.send_bytes(message)
        except OSError:
            raise WorkerDiedError from None

    def receive(self) -> Reply:
        """Wait for a reply."""
        try:
            reply = self.connection.recv_bytes()
        except (EOFError, OSError):
            raise WorkerDiedError from None
        return loads(reply)  # type: ignore[no-any-return]

    def is_alive(self) -> bool:
        """Whether a worker that owes no reply still lives: all that could be read from it is the end of its pipe."""
        return not self.connection.closed and not self.connection.poll()

    def end(self) -> str:
        """Kill the process, wait until it is gone, and return what ended it."""
        self.jobs.clear()
        if self.connection.closed:
            return "ended"
        if self._process.is_alive():
            self._process.kill()
        with contextlib.suppress(EOFError, OSError):
            while True:  # its end of the pipe closes when nothing of it runs any more
                self.connection.recv_bytes()
        self.connection.close()
        self._process.join()
        code = self._process.exitcode
        self._process.close()
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"


def serve(connection: Connection) -> None:
    """Answer the messages that arrive in a worker process, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    gc.freeze()  # what is there by now stays: without it, dropping a former run's work would look at all of torch
    loaded: list[Work] = []

    def load(how: tuple[Callable[[Any], Work], Any]) -> None:
        make, setup = how
        loaded.clear()
        gc.collect()
        loaded.append(make(setup))

    with contextlib.suppress(EOFError, OSError):  # the parent has closed the pool, or is gone
        while True:
            message = memoryview(connection.recv_bytes())
            action = load if message[:1] == LOAD else loaded[0]  # the pool sends no task before a load has succeeded
            connection.send_bytes(_reply(action, message[1:]))


def _reply(action: Work, body: memoryview) -> bytes:
    began = time.monotonic()
    try:
        return dumps(Reply(action(loads(body)), None, began, time.monotonic()))
    except Exception as error:
        return dumps(Reply(None, failure_of(error), began, time.monotonic()))


def _end_with_parent() -> None:
    """End this process with its parent, also in the middle of a task."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def dumps(thing: Any) -> bytes:
    """Return `thing` as bytes that any number of workers can read."""
    buffer = io.BytesIO()
    pickler = ForkingPickler(buffer, 5)
    # Torch's own entries in this table would move a tensor to shared memory and let one worker alone read it.
    pickler.dispatch_table = copyreg.dispatch_table
    pickler.dump(thing)
    return buffer.getvalue()


loads = ForkingPickler.loads
