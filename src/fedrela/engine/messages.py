"""What travels between the pool and its workers."""

from __future__ import annotations

import copyreg
import io
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

LOAD, ORDER = b"L", b"O"


class Answer(NamedTuple):
    """What a worker sends back; the clock is the same in all processes of a machine."""

    reply: Any
    error: str | None
    began: float
    finished: float


class Done(NamedTuple):
    """What became of the order at `position`: what the work returned, or why it did not."""

    position: int
    reply: Any = None
    error: str | None = None


def dumps(thing: Any) -> bytes:
    """Return `thing` as bytes that any number of workers can read."""
    buffer = io.BytesIO()
    pickler = ForkingPickler(buffer, 5)
    # Torch's own entries in this table would move a tensor to shared memory and let one worker alone read it.
    pickler.dispatch_table = copyreg.dispatch_table
    pickler.dump(thing)
    return buffer.getvalue()


loads = ForkingPickler.loads


def one_line(error: BaseException) -> str:
    r"""Return an error's type and message as one line.

    >>> one_line(ValueError("two\n  lines"))
    'ValueError: two lines'
    """
    return ": ".join([type(error).__name__, *filter(None, [" ".join(str(error).split())])])
