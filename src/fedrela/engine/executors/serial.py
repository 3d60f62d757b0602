"""The pool's interface without processes: this process does the work, one task after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

from fedrela.engine.tasks import TaskResult, failure_of
from fedrela.errors import ArgumentError
from fedrela.models.runtime import one_thread
from fedrela.records import Failure, FailureKind


class SerialExecutor:
    """A `fedrela.engine.executors.pool.Pool` of one worker, which is this process; nothing is pickled.

    >>> with SerialExecutor() as executor:
    ...     executor.load(lambda number: number**2)
    ...     [result.value for result in executor.run([3, 4])]
    [9, 16]
    """

    size = 1
    remote_clients = False
    _work: Callable[[Any], Any] | None = None

    def load(self, work: Callable[[Any], Any]) -> None:
        """Have ``work(task)`` carry out tasks, in place of what was loaded before."""
        self._work = work

    def run(self, tasks: Iterable[Any], deadline: float | None = None) -> Generator[TaskResult, None, None]:
        """Carry out the tasks in sequence and yield their results.

        A task that ends more than `deadline` seconds after the first one started fails with `FailureKind.DEADLINE`; no
        further task is started after that.
        """
        end = math.inf if deadline is None else time.monotonic() + deadline
        if self._work is None:
            raise ArgumentError("nothing is loaded; load work first", argument="workers")
        for position, task in enumerate(tasks):
            result = TaskResult(position)
            if time.monotonic() < end:
                try:
                    with one_thread():
                        result = TaskResult(position, self._work(task))
                except Exception as error:
                    result = TaskResult(position, failure=failure_of(error))
            late = TaskResult(position, failure=Failure(FailureKind.DEADLINE))
            yield result if time.monotonic() < end else late

    def close(self) -> None:
        """Release the work."""
        self._work = None

    def __enter__(self) -> SerialExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
