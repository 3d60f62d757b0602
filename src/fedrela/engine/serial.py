"""The pool's interface without processes: the work is done here, one order after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

from fedrela.engine.messages import Done, one_line
from fedrela.engine.worker import Work
from fedrela.errors import ArgumentError
from fedrela.models.repeatable import one_thread


class SerialPool:
    """A `fedrela.engine.pool.Pool` of one worker, which is this process; nothing is pickled.

    >>> with SerialPool() as pool:
    ...     pool.load(lambda power: lambda number: number**power, 2)
    ...     [done.reply for done in pool.run([3, 4])]
    [9, 16]
    """

    size = 1
    remote_clients = False

    def __init__(self) -> None:
        self._work: Work | None = None

    def load(self, make: Callable[[Any], Work], setup: Any) -> None:
        """Call ``work = make(setup)``, in place of what was loaded before."""
        self._work = None
        with one_thread():
            self._work = make(setup)

    def run(self, orders: Iterable[Any], deadline: float | None = None) -> Generator[Done, None, None]:
        """Do the orders and yield what becomes of them, in sequence.

        An order that ends more than `deadline` seconds after this call has the error ``"deadline"``; from then on no
        other is begun.
        """
        end = math.inf if deadline is None else time.monotonic() + deadline
        return self._run(enumerate(orders), end)

    def _run(self, orders: Iterable[tuple[int, Any]], end: float) -> Generator[Done, None, None]:
        if self._work is None:
            raise ArgumentError("workers: nothing is loaded; load work first")
        for position, order in orders:
            done = Done(position)
            if time.monotonic() < end:
                try:
                    with one_thread():
                        done = Done(position, self._work(order))
                except Exception as error:
                    done = Done(position, error=one_line(error))
            yield done if time.monotonic() < end else Done(position, error="deadline")

    def close(self) -> None:
        """Let go of the work."""
        self._work = None

    def __enter__(self) -> SerialPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
