"""Executors of the clients' work: worker processes, or this process if one is enough or no other can be started.

The modules that load torch are imported when an executor is opened, so that the fork server can be started before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fedrela.arguments import check_workers
from fedrela.engine.executors.forkserver import usable_cores, warm_up

if TYPE_CHECKING:
    from fedrela.engine.tasks import TaskResult


class Executor(Protocol):
    """Does the clients' work: in processes, in this process, or at remote clients."""

    remote_clients: bool  # whether clients keep their own labels and states, which are unknown here

    @property
    def size(self) -> int:
        """How many tasks run at a time."""

    def load(self, work: Any, /) -> None:
        """Have ``work(task)`` carry out tasks, in place of what was loaded before."""

    def run(self, tasks: Sequence[Any], /, deadline: float | None = None) -> Iterator[TaskResult]:
        """Carry out tasks, and yield the result of each as it is ready."""


def start_early(workers: int | str | None = None) -> None:
    """Start the server that worker processes are forked from, if there may be several.

    Called early, it loads torch while this process does the same, instead of afterwards.
    """
    if (usable_cores() if workers in (None, "auto") else workers) != 1:
        with contextlib.suppress(OSError):  # `open_executor` reports why there are no processes
            warm_up()


@contextlib.contextmanager
def open_executor(
    workers: int | str, device: str = "cpu", clients: int | None = None
) -> Iterator[tuple[Executor, str]]:
    """Yield an executor, and a note if it is this process because no other can be started.

    Parameters
    ----------
    workers
        Number of processes, or ``"auto"``: one per core, or this one alone where a GPU does the work.
    device
        As in ``[engine]``.
    clients
        More workers than that would have nothing to do.
    """
    from fedrela.engine.executors.pool import Pool
    from fedrela.engine.executors.serial import SerialExecutor
    from fedrela.engine.executors.worker import CannotSendError
    from fedrela.models.runtime import device_of

    processes = check_workers("workers", workers)
    if isinstance(processes, str):
        processes = usable_cores() if device_of(device) == "cpu" else 1
    number, note = min(processes, clients or processes), ""
    executor: Pool | SerialExecutor = SerialExecutor()
    if number > 1:
        try:
            executor = Pool(number)
        except CannotSendError as error:
            note = f"runs in one process, since no others can be started: {error}"
    with executor:
        yield executor, note


def load_or_stay(executor: Executor, work: Any) -> tuple[Executor, str]:
    """Load work into an executor; if it cannot be sent to other processes, into one of this process, with a note."""
    from fedrela.engine.executors.serial import SerialExecutor
    from fedrela.engine.executors.worker import CannotSendError

    note = ""
    try:
        executor.load(work)
    except CannotSendError as error:
        executor, note = SerialExecutor(), f"runs in one process, since its work cannot be sent to another: {error}"
        executor.load(work)
    return executor, note
