"""Work for the pool's tests; workers import this module."""

from __future__ import annotations

import inspect
import os
import signal
import time
from pathlib import Path

import numpy as np
import torch

from fedrela.engine.executors.pool import Pool
from fedrela.engine.shared_memory import ArrayHandle, Block
from fedrela.files.mapped import FileRegion


class Work:
    """What ``make(setup)`` returns, made where it is used."""

    def __init__(self, make, setup=None):
        self.make, self.setup = make, setup

    def __reduce__(self):
        return self.make, (self.setup,)

    def __call__(self, task):
        return self.make(self.setup)(task)


def power(exponent):
    return lambda number: number**exponent


def sums(tensors):
    return lambda name: float(tensors[name].sum())


def read(handles: dict[str, ArrayHandle]):
    arrays = {name: handle.open() for name, handle in handles.items()}
    return lambda name: arrays[name].tolist()


def process(_):
    facts = {
        "pid": os.getpid,
        "threads": torch.get_num_threads,
        "pool": lambda: Pool(1),
        "fail": lambda: divide("two\nlines"),
        "closure": lambda: lambda: None,
        "unreadable": Unreadable,
        "bytes": lambda: bytes(1 << 20),
    }
    return lambda task: facts[task[0]]()


def divide(text):
    raise ZeroDivisionError(text)


def last_line(function):
    """The place that a failure names if the last line of a function raises."""
    lines, start = inspect.getsourcelines(function)
    return f" ({Path(inspect.getfile(function)).name}:{start + len(lines) - 1})"


class Unreadable:
    def __reduce__(self):
        return divide, ("in the parent",)


def deadly(folder: Path):
    """Work that kills its worker: every time, or the first time only."""

    def work(task):
        name, number = task
        mark = folder / str(number)
        if name == "always" or (name == "once" and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "exit":
            os._exit(3)
        return number

    return work


def dies(_):
    os._exit(1)


def counting(place: FileRegion):
    """Work on a counter that all processes see: wait for it, add to it, or let it run on for a minute."""
    counter = Block(place).array(0, (1,), np.int64)

    def work(task):
        name, number = task
        end = time.monotonic() + 60
        while name == "tick" and time.monotonic() < end:
            counter[0] += 1
        while name == "until" and counter[0] < number and time.monotonic() < end:
            time.sleep(0.001)
        if name == "add":
            counter[0] += number
        return os.getpid(), int(counter[0])

    return work


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
