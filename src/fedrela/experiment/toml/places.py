"""Places in a TOML text: where a key is written and where its value begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

KeyPath = tuple[str | int, ...]  # keys, and numbers of items in arrays


class Position(NamedTuple):
    """Line and column, both from 1, the column in characters."""

    line: int
    column: int


START = Position(1, 1)


class Place(NamedTuple):
    """Where a key is written first, and where its value begins.

    The value of a table is the bracket of its header or its opening brace; that of a table which only dotted keys
    mention is the key itself. An item of an array has no key of its own, so both are the item.
    """

    key: Position
    value: Position


class Statement(NamedTuple):
    """One header or one key with its value; `end` is None where the scanner could not follow it to its end."""

    path: KeyPath
    start: Position
    end: Position | None


@dataclass(frozen=True)
class Places:
    """The place of every key, table and array item of a text."""

    known: Mapping[KeyPath, Place]
    statements: Sequence[Statement] = ()

    def of(self, path: KeyPath) -> Place:
        """Return the place of `path`, or of the innermost table around it that is written down."""
        while path and path not in self.known:
            path = path[:-1]
        return self.known.get(path, Place(START, START))

    def statement_at(self, position: Position) -> KeyPath:
        """Return the path whose statement covers `position`; empty where none does."""
        for path, start, end in self.statements:
            if start <= position and (end is None or position <= end):
                return path
        return ()


@dataclass(frozen=True)
class Origin:
    """Where a configuration comes from: how messages call it, and its places where it was a text.

    All origins are equal, so that configurations that say the same are equal, wherever they come from.
    """

    name: str = field(default="", compare=False)
    places: Places | None = field(default=None, compare=False)
