"""The worker's side of the pool: load the work once, then answer one order after the other."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from fedrela.engine.messages import LOAD, Answer, dumps, loads, one_line

Work = Callable[[Any], Any]


def serve(connection: Connection) -> None:
    """Answer the messages that arrive, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    gc.freeze()  # what is there by now stays: without it, dropping a former run's work would look at all of torch
    desk = _Desk()
    try:
        while True:
            message = memoryview(connection.recv_bytes())
            action = desk.load if message[:1] == LOAD else desk.do
            connection.send_bytes(_answer(action, message[1:]))
    except (EOFError, OSError):  # the parent has closed the pool, or is gone
        return


class _Desk:
    work: Work | None = None

    def load(self, job: tuple[Callable[[Any], Work], Any]) -> None:
        make, setup = job
        self.work = None
        gc.collect()
        self.work = make(setup)

    def do(self, order: Any) -> Any:
        assert self.work is not None  # the pool sends no order before a load has succeeded
        return self.work(order)


def _answer(action: Work, body: memoryview) -> bytes:
    began = time.monotonic()
    try:
        reply = action(loads(body))
        return dumps(Answer(reply, None, began, time.monotonic()))
    except Exception as error:
        return dumps(Answer(None, one_line(error), began, time.monotonic()))


def _end_with_parent() -> None:
    """End this process with its parent, also in the middle of an order."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
