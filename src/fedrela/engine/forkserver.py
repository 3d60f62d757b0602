"""Starting worker processes: forked from a server that has torch loaded, and without the user's main module."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerProcess
from typing import Any

PRELOAD = ["numpy", "torch", "fedrela.engine.station", "fedrela.engine.worker"]

_starting = threading.Lock()


def warm_up() -> None:
    """Start the server that workers are forked from, and go on while it loads torch.

    Called early, it hides most of a first pool's start. A server that runs already is left as it is.
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
    forkserver.set_forkserver_preload(PRELOAD)
    resource_tracker.ensure_running()  # first, since starting it unblocks the signal
    # The server and its children inherit the mask: Ctrl-C is the parent's, also while they are loading.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _no_main() -> Iterator[None]:
    """Hide the main module, which would be run again in every process: a script needs no guard, and starts quickly."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
