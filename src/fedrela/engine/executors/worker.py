"""Worker processes: both ends of the pipe between a pool and a worker, and the messages in it."""

from __future__ import annotations

import contextlib
import copyreg
import gc
import io
import math
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
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

LOAD, TASKS = b"L", b"T"  # the first byte of a message
FAST_SECONDS = 0.005  # tasks in one message with a longer one could wait while another worker is idle
AHEAD_SECONDS = 0.1  # so could a message that is sent while the worker is busy with a longer task

END_SECONDS = 10.0  # for a killed process to disappear

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
    batch: int = 0  # number of the message that it was sent with
    is_alone: bool = False  # whether it is sent by itself
    deaths: int = 0


class Worker:
    """One worker process as the pool sees it; replies come in the sequence of the messages."""

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()  # sent and not yet answered; the first message is the one being worked on
        self._batches = 0  # messages so far
        self.seconds = math.inf  # duration of its last task; after a short one, waiting for a message matters
        self.connection, remote = Pipe()  # what to wait on for a reply
        try:
            self._process = forkserver.start(serve, remote)
        except Exception as error:
            self.connection.close()
            raise CannotSendError(f"workers: cannot be started here, {one_line(error)}; use one process") from error
        finally:
            remote.close()

    @property
    def is_fast(self) -> bool:
        """Whether its tasks are so short that several should share a message."""
        return self.seconds < FAST_SECONDS

    def has_room(self, ahead: bool) -> bool:
        """Whether it is idle; with `ahead`, whether it will be idle soon, with no message beyond the current one."""
        if not ahead or not self.jobs:
            return not self.jobs
        return self.seconds < AHEAD_SECONDS and self.jobs[0].batch == self._batches

    def give(self, batch: list[Job], message: bytes) -> None:
        """Send tasks as one message."""
        self._batches += 1
        for job in batch:
            job.batch = self._batches
        self.jobs.extend(batch)
        self.send(message)

    def take(self, number: int = 0) -> list[Job]:
        """Remove the first `number` tasks and return them; 0: all of the current message."""
        number = number or sum(job.batch == self.jobs[0].batch for job in self.jobs)
        return [self.jobs.popleft() for _ in range(number)]

    def send(self, message: bytes) -> None:
        """Send a message."""
        try:
            self.connection.send_bytes(message)
        except OSError:
            raise WorkerDiedError from None

    def receive(self) -> tuple[int, memoryview]:
        """Wait for replies, and return their number and content; 0 comes with the reason why one cannot be read."""
        try:
            message = memoryview(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise WorkerDiedError from None
        return message[0], message[1:]

    def is_alive(self) -> bool:
        """Whether an idle worker is alive: the only thing to read from it would be the end of its pipe."""
        return not self.connection.closed and not self.connection.poll()

    def end(self) -> str:
        """Kill the process, wait until it is gone, and return what ended it."""
        self.jobs.clear()
        if self.connection.closed:
            return "ended"
        # Its end of the pipe closes when it is gone; if the server that it was forked from has died, that is the only
        # sign of it.
        if not self._has_closed(0.0):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid or 0, signal.SIGKILL)
            self._has_closed(END_SECONDS)
        self.connection.close()
        self._process.join(END_SECONDS)
        code = self._process.exitcode
        with contextlib.suppress(ValueError):  # it was killed, but its exit may not be known yet
            self._process.close()
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"

    def _has_closed(self, seconds: float) -> bool:
        """Whether the other end of the pipe closes within some seconds; what is left in it is discarded."""
        end = time.monotonic() + seconds
        try:
            while self.connection.poll(max(0.0, end - time.monotonic())):
                self.connection.recv_bytes()
        except (EOFError, OSError):
            return True
        return False


def serve(connection: Connection) -> None:
    """Process the messages that arrive in a worker process, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    gc.freeze()  # so that the collector skips torch when the work of an earlier run is released
    loaded: list[Work] = []

    with contextlib.suppress(EOFError, OSError):  # the parent has closed the pool, or is gone
        while True:
            message = memoryview(connection.recv_bytes())
            if is_load := message[:1] == LOAD:
                loaded.clear()
                gc.collect()
            # The pool sends no task before a load has succeeded.
            for replies in _work(loaded.append if is_load else loaded[0], message[1:]):
                connection.send_bytes(replies)


def _work(action: Work, body: memoryview) -> Iterator[bytes]:
    """Carry out the tasks of a message, and yield what to send: the replies to short ones together."""
    try:
        tasks = loads(body)
    except Exception as error:
        yield bytes([0]) + dumps(failure_of(error))
        return
    replies: list[Reply] = []
    for task in tasks:
        began = time.monotonic()
        try:
            replies.append(Reply(action(task), None, began, time.monotonic()))
        except Exception as error:
            replies.append(Reply(None, failure_of(error), began, time.monotonic()))
        if time.monotonic() - replies[0].began > FAST_SECONDS:
            yield _packed(replies)
            replies.clear()
    if replies:
        yield _packed(replies)


def _packed(replies: list[Reply]) -> bytes:
    """Return the number of replies and the replies; one that cannot be pickled is replaced by the reason."""
    try:
        return bytes([len(replies)]) + dumps(replies)
    except Exception as error:
        if len(replies) == 1:
            return _packed([replies[0]._replace(value=None, failure=failure_of(error))])
        return _packed([loads(memoryview(_packed([reply]))[1:])[0] for reply in replies])


def _end_with_parent() -> None:
    """End this process when its parent ends, even in the middle of a task."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def dumps(value: Any) -> bytes:
    """Pickle a value to bytes that any number of workers can read."""
    buffer = io.BytesIO()
    pickler = ForkingPickler(buffer, 5)
    # Torch's own entries in this table would move a tensor to shared memory that only one worker can read.
    pickler.dispatch_table = copyreg.dispatch_table
    pickler.dump(value)
    return buffer.getvalue()


loads = ForkingPickler.loads
