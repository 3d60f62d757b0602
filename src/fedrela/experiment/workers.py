"""The executor that does the clients' work: worker processes, or this process.

The modules that load torch are imported when an executor is opened, so that the fork server can be started first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fedrela.engine.cores import usable_cores
from fedrela.engine.forkserver import warm_up
from fedrela.errors import ArgumentError
from fedrela.experiment.schema.engine import MOST_WORKERS

if TYPE_CHECKING:
    from fedrela.engine.pool import Pool
    from fedrela.engine.run import Executor
    from fedrela.engine.serial import SerialPool


def start_early(workers: int | str | None = None) -> None:
    """Start the server that worker processes are forked from, where more than one may be wanted.

    It loads torch while this process does so as well: called before that, it saves the time of one of the two.
    """
    if (usable_cores() if workers in (None, "auto") else workers) != 1:
        with contextlib.suppress(OSError):  # whoever opens an executor is told why there is none
            warm_up()


@contextlib.contextmanager
def open_executor(
    workers: int | str, device: str = "cpu", clients: int | None = None
) -> Iterator[tuple[Executor, str]]:
    """Give an executor, and a note where it is this process because no other can be had.

    Parameters
    ----------
    workers
        Processes, or ``"auto"``: one a core, or this one alone where a GPU does the work.
    device
        As in ``[engine]``.
    clients
        More workers than that would have nothing to do.
    """
    executor, note = _crew(_number(workers, device), clients)
    with executor:
        yield executor, note


def _number(workers: int | str, device: str) -> int:
    from fedrela.models.given import device_of

    if workers == "auto":
        return usable_cores() if device_of(device) == "cpu" else 1
    if type(workers) is int and 1 <= workers <= MOST_WORKERS:
        return workers
    raise ArgumentError(f"expected 'auto' or an integer from 1 to {MOST_WORKERS}, got {workers!r}", argument="workers")


def _crew(number: int, clients: int | None) -> tuple[Pool | SerialPool, str]:
    from fedrela.engine.pool import CannotSend, Pool
    from fedrela.engine.serial import SerialPool

    number = min(number, clients or number)
    if number == 1:
        return SerialPool(), ""
    try:
        return Pool(number), ""
    except CannotSend as error:
        return SerialPool(), f"runs in one process, since others cannot be had: {error}"
