"""A worker process as the pool sees it."""

from __future__ import annotations

import contextlib
import signal
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Pipe
from typing import Any

from fedrela.engine import forkserver
from fedrela.engine.messages import Answer, loads, one_line
from fedrela.engine.worker import serve
from fedrela.errors import FedrelaError


class CannotSend(FedrelaError):  # noqa: N818, it says what to do next more than what went wrong
    """The work cannot reach worker processes; it can still be done in this one."""


class Died(Exception):  # noqa: N818, an event and no error
    """The worker process has ended by itself."""


@dataclass(slots=True)
class Job:
    """An order on its way."""

    position: int
    order: Any
    message: bytes = b""
    deaths: int = 0


class Worker:
    """One worker process and its pipe; the answers come in the sequence of the messages.

    Attributes
    ----------
    connection
        What to wait on for an answer.
    jobs
        The orders sent and not yet answered; the first is the one being worked on.
    is_swift
        Whether its last order took so little time that waiting for the next one counts.
    """

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()
        self.is_swift = False
        self.connection, theirs = Pipe()
        try:
            self._process = forkserver.start(serve, theirs)
        except Exception as error:
            self.connection.close()
            raise CannotSend(f"workers: cannot be started here, {one_line(error)}; use one process") from error
        finally:
            theirs.close()

    def send(self, message: bytes) -> None:
        """Send a message."""
        try:
            self.connection.send_bytes(message)
        except OSError:
            raise Died from None

    def receive(self) -> Answer:
        """Wait for an answer."""
        try:
            answer = self.connection.recv_bytes()
        except (EOFError, OSError):
            raise Died from None
        return loads(answer)  # type: ignore[no-any-return]

    def is_alive(self) -> bool:
        """Whether a worker that owes no answer still lives: all that could be read from it is the end of its pipe."""
        return not self.connection.closed and not self.connection.poll()

    def end(self) -> str:
        """End the process at once, wait until it is gone, and return what ended it."""
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
        return _cause(code)


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
