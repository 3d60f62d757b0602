"""Observers of the verbs of `fedrela.files`: one takes notes, one ends the process, one plays a failing disk."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrela.files import operations

WRITES = ("write_temporary", "append", "overwrite")


@dataclass
class Notes:
    """Every verb in order, with its arguments: those tried, those done; `marks` are promises made in between."""

    tried: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    done: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    marks: list[tuple[int, str, int]] = field(default_factory=list)

    def __call__(self, moment: str, verb: str, arguments: tuple[Any, ...]) -> None:
        plain = tuple(bytes(each) if isinstance(each, memoryview) else each for each in arguments)
        (self.tried if moment == "before" else self.done).append((verb, plain))

    def tell(self, what: str, round: int) -> None:
        self.marks.append((len(self.done), what, round))

    def promised(self, steps: int) -> frozenset[tuple[str, int]]:
        """Return what had been promised when that many verbs were done."""
        return frozenset((what, round) for at, what, round in self.marks if at <= steps)


def write_half(verb: str, arguments: tuple[Any, ...]) -> None:
    """Carry out a write with the first half of its bytes only."""
    path, data = arguments[:2]
    getattr(operations, verb).__wrapped__(path, bytes(data)[: len(data) // 2])


@dataclass
class Kill:
    """Ends the process hard at the n-th verb tried, from 0: ``before`` it, ``amid`` a write, or ``after`` it."""

    number: int
    moment: str
    tried: int = 0

    def __call__(self, moment: str, verb: str, arguments: tuple[Any, ...]) -> None:
        self.tried += moment == "before"
        if self.tried - 1 == self.number:
            if self.moment == "amid" and moment == "before":
                write_half(verb, arguments)
                os._exit(9)
            if self.moment == moment:
                os._exit(9)


@dataclass
class Fail:
    """Fails the n-th verb tried, from 0, with an error number; ``short`` fails late: half written, or done."""

    number: int
    error: str
    tried: int = 0
    hit: tuple[str, Path] | None = None

    def __call__(self, moment: str, verb: str, arguments: tuple[Any, ...]) -> None:
        self.tried += moment == "before"
        late = self.error == "short" and verb not in WRITES
        if self.tried - 1 == self.number and moment == ("after" if late else "before"):
            self.hit = (verb, arguments[0])
            if self.error == "short" and not late:
                write_half(verb, arguments)
            code = errno.ENOSPC if self.error == "short" else getattr(errno, self.error)
            raise OSError(code, os.strerror(code), str(arguments[0]))
