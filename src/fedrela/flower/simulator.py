"""Flower's simulator, whose clients are Ray processes: quiet, stopped by the signals that stop a run, and cleaned up.

Flower runs in a separate thread. The caller waits; a `KeyboardInterrupt` there ends the clients' processes, and the
server at its next message, before Ray is shut down. Shutting down Ray while Flower waits for a client would crash.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fedrela.errors import STOP_SIGNALS
from fedrela.files.scratch import scratch

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
POLL_SECONDS = 0.1  # seconds between two checks for replies, or for the end of the simulation
STOP_SECONDS = 60  # how long an interrupted run waits for Flower and Ray to end
SOCKET = "/session_2026-01-01_00-00-00_000000_0000000/sockets/plasma_store"  # what Ray adds to its folder
LONGEST_SOCKET = 103  # bytes of a socket's path that every system accepts


class StoppableGrid(Grid):
    """A grid that raises `KeyboardInterrupt` at its next use once it is stopped."""

    def __init__(self, grid: Grid, stopped: threading.Event) -> None:
        self._grid, self._stopped = grid, stopped

    def check(self) -> None:
        """Raise if the grid is stopped."""
        if self._stopped.is_set():
            raise KeyboardInterrupt

    def set_run(self, run: Any) -> None:
        """Set which run messages belong to."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """The run that messages belong to."""
        return self._grid.run

    def create_message(self, *args: Any, **more: Any) -> Message:
        """Return a message of the grid."""
        return self._grid.create_message(*args, **more)

    def get_node_ids(self) -> Iterable[int]:
        """Return the nodes that are connected."""
        self.check()
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send messages, and return their ids."""
        self.check()
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies that have arrived."""
        self.check()
        return self._grid.pull_messages(message_ids)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Send messages, and return the replies that arrive in time."""
        left, replies = set(self.push_messages(messages)), list[Message]()
        end = None if timeout is None else time.monotonic() + timeout
        while left and (end is None or time.monotonic() < end):
            arrived = list(self.pull_messages(left))
            replies += arrived
            left -= {reply.metadata.reply_to_message_id for reply in arrived}
            if left:
                self._stopped.wait(POLL_SECONDS)
        return replies


def simulate(work: Callable[[Grid], Any], app: ClientApp, clients: int, cores: int) -> Any:
    """Call `work` with a grid of Flower's simulator, and return its result; the clients are Ray processes."""
    from flwr.simulation import run_simulation

    server, done = ServerApp(), dict[str, Any]()
    stopped, ended = threading.Event(), threading.Event()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        try:
            done["result"] = work(StoppableGrid(grid, stopped))
        except BaseException as error:  # raised again below: the simulator's thread would print many lines
            done["error"] = error

    def run(folder: Path) -> None:
        init = {"num_cpus": cores, "_temp_dir": str(folder), "log_to_driver": False, "logging_level": "error"}
        backend: Any = {"client_resources": {"num_cpus": 1}, "init_args": init}
        try:
            if hasattr(signal, "pthread_sigmask"):  # for Ray's processes: a signal to the whole group stops this one
                signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
            run_simulation(server, app, num_supernodes=clients, backend_config=backend)
        except BaseException as error:
            done.setdefault("error", error)
        finally:
            ended.set()

    with _quiet() as home, _ray_folder(home) as folder:
        try:
            threading.Thread(target=run, args=[folder], daemon=True).start()  # so are the threads that it starts
            _wait(ended)
        except KeyboardInterrupt:
            stopped.set()
            logging.getLogger("flwr").setLevel(logging.CRITICAL + 1)  # else it logs the end of each client
            _wait(ended, _end_clients, STOP_SECONDS)
            raise
    if "error" in done:
        raise done["error"]
    return done["result"]


def _wait(ended: threading.Event, act: Callable[[], None] = lambda: None, seconds: float = math.inf) -> None:
    """Wait for the end of the simulation, for so many seconds at most; call `act` every now and then.

    Ray takes over SIGTERM below Python, so Python's handlers are installed repeatedly. This waits for an event, not
    for the thread itself: Python 3.11 regards a thread as ended if waiting for it is interrupted.
    """
    is_main = threading.current_thread() is threading.main_thread()
    end = time.monotonic() + seconds
    while not ended.is_set() and time.monotonic() < end:
        for number in STOP_SIGNALS if is_main else ():
            if (handler := signal.getsignal(number)) is not None:
                signal.signal(number, handler)
        act()
        ended.wait(POLL_SECONDS)


def _end_clients() -> None:
    """End the clients' processes, so that Flower need not wait for their tasks."""
    ray: Any = sys.modules.get("ray")  # which Flower has loaded
    with contextlib.suppress(Exception):  # Ray is just starting or ending; or it has changed: then tasks are awaited
        if ray.is_initialized():
            for actor in ray._private.state.actors(actor_state_name="ALIVE"):
                worker = ray._private.worker.global_worker.core_worker
                worker.kill_actor(ray.ActorID.from_hex(actor), True)  # at once, and for good


@contextlib.contextmanager
def _ray_folder(home: Path) -> Iterator[Path]:
    """Yield a folder for Ray's files: `home` unless the paths of Ray's sockets would be too long there."""
    if sys.platform == "win32" or len(os.fsencode(f"{home}{SOCKET}")) <= LONGEST_SOCKET:
        yield home
    else:
        with scratch(Path("/tmp")) as folder:
            yield folder


@contextlib.contextmanager
def _quiet() -> Iterator[Path]:
    """Keep Flower and Ray from sending telemetry, from writing to the home folder, and from logging.

    Yield a folder that is removed at the end.
    """
    logger = logging.getLogger("flwr")
    level, before = logger.level, dict(os.environ)
    with scratch() as home, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ.update(QUIET | {"FLWR_HOME": os.environ.get("FLWR_HOME", str(home)), "OMP_NUM_THREADS": "1"})
        logger.setLevel(logging.ERROR)
        try:
            yield home
        finally:
            logger.setLevel(level)
            os.environ.clear()
            os.environ.update(before)
