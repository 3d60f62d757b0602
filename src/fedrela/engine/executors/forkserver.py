"""Starts worker processes, forked from a server that has loaded torch but not the user's main module; counts cores."""

from __future__ import annotations

import atexit
import contextlib
import math
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, resource_tracker, util
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from fedrela.files.scratch import mark_scratch

PRELOAD = ["numpy", "torch", "fedrela.engine.client", "fedrela.engine.executors.worker", __name__]
LONGEST_TMPDIR = 70  # characters: with the names below it, a socket's path may have about 100
SOCKETS = "FEDRELA_SOCKETS"  # tells the server which folder to remove if its parent was killed


def _remove_sockets(folder: str, parent: int) -> None:
    if os.getppid() != parent:  # else only the server has ended, and its parent may start another
        shutil.rmtree(folder, ignore_errors=True)


if SOCKETS in os.environ:
    atexit.register(_remove_sockets, os.environ.pop(SOCKETS), os.getppid())

_starting = threading.Lock()


def warm_up() -> None:
    """Start the server that workers are forked from, and return while it loads torch.

    Called early, it hides most of the start-up time of the first pool. It does nothing if the server is running.
    """
    with _starting, _no_main():
        _start_server()


def start(target: Callable[..., None], *args: Any) -> ForkServerProcess:
    """Start a daemonic process that calls ``target(*args)``; the user's main module is not imported in it."""
    with _starting, _no_main():
        _start_server()
        process = multiprocessing.get_context("forkserver").Process(target=target, args=args, daemon=True)
        process.start()
    return process


def _start_server() -> None:
    mark_scratch(Path(folder := _socket_folder()))
    forkserver.set_forkserver_preload(PRELOAD)
    resource_tracker.ensure_running()  # first, since starting it unblocks the signal
    # The server and its children inherit the mask: only the parent handles Ctrl-C, even while they are loading.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ[SOCKETS] = folder
    try:
        forkserver.ensure_running()
    finally:
        del os.environ[SOCKETS]
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _socket_folder() -> str:
    """Return multiprocessing's temporary folder; it is in /tmp if the path of the usual place is too long."""
    usual = tempfile.gettempdir()
    try:
        if len(os.fsencode(usual)) > LONGEST_TMPDIR and os.access("/tmp", os.W_OK):
            tempfile.tempdir = "/tmp"
        return util.get_temp_dir()  # creates it the first time
    finally:
        tempfile.tempdir = usual


@contextlib.contextmanager
def _no_main() -> Iterator[None]:
    """Hide the main module, which every process would run again: a script needs no guard, and starts quickly."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def usable_cores(root: str | Path = "/") -> int:
    """Return the number of workers that ``workers = "auto"`` stands for; ``proc`` and ``sys`` lie in `root`.

    That is the number of cores that this process may use, or the limit of its control group (such as a container's),
    rounded up, if that is smaller; at least 1.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = [share for folder in _control_groups(Path(root)) for share in _shares(folder)]
    return max(1, min([cores, *map(math.ceil, shares)]))


def _control_groups(root: Path) -> Iterator[Path]:
    """Yield the folders of this process's control group and of its ancestors, in either version's hierarchy."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, own = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / controllers
        # Inside a container the path may name folders that only the host sees: the top is then the container's own.
        path = top / own.strip("/")
        yield from [path, *(parent for parent in path.parents if parent.is_relative_to(top))]


def _shares(folder: Path) -> Iterator[float]:
    """Yield the limit set in a control group, as processor time over wall time."""
    for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
        try:
            quota, period = " ".join((folder / name).read_text() for name in names).split()
        except (OSError, ValueError):
            continue
        if quota.isdigit() and int(period) > 0:  # "max" and -1 stand for no limit
            yield int(quota) / int(period)
