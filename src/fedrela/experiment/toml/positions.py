"""Where every key of a TOML text stands: a small scanner for positions alone, since `tomllib` forgets them.

It follows the structure of a text and is lenient about all else: whether the text is TOML is for `tomllib` to say.
Where it cannot follow, it stops, and what it has seen so far stands.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Never

from fedrela.errors import ArgumentError

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


@dataclass(frozen=True)
class Places:
    """The place of every key, table and array item of a text; `statements` has where each path's text begins."""

    known: Mapping[KeyPath, Place]
    statements: Sequence[tuple[Position, KeyPath]] = ()

    def of(self, path: KeyPath) -> Place:
        """Return the place of `path`, or of the innermost table around it that is written down."""
        while path and path not in self.known:
            path = path[:-1]
        return self.known.get(path, Place(START, START))

    def statement_at(self, position: Position) -> KeyPath:
        """Return the path whose statement covers `position`; empty where none does."""
        return next((path for start, path in reversed(self.statements) if start <= position), ())


@dataclass(frozen=True)
class Origin:
    """Where a configuration comes from: how messages call it, and its places where it was a text.

    All origins are equal, so that configurations that say the same are equal, wherever they come from.
    """

    name: str = field(default="", compare=False)
    places: Places | None = field(default=None, compare=False)


DEEPEST = 32  # no configuration nests so deeply; far deeper keys take `tomllib` hours and end its recursion
LONGEST_BARE = 200  # characters; a longer number or date is no mistake of a friend

_BLANK = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\n]+|#[^\n]*)*+")
_LINE_END = re.compile(r"[ \t]*(?:#[^\n]*)?(?=\n|\Z)")
_WORD = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\[^\n])*+"|'[^'\n]*'""")
_STRING = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+""""{0,2}|\'\'\'(?:[^']|'(?!''))*+\'\'\''{0,2}'''
    r"""|"(?:[^"\\\n]|\\[^\n])*+"|'[^'\n]*\'""",
    re.DOTALL,
)
_BARE = re.compile(r"""\d{4}-\d\d-\d\d[ ]\d\d:[^\s,\[\]{}#"']*|[^\s,\[\]{}#"'=]+""")  # a date may hold one blank


class HostileTextError(ArgumentError):
    """A text made to exhaust `tomllib`; carries the place and what is wrong."""

    def __init__(self, position: Position, what: str) -> None:
        super().__init__(what)
        self.position = position


def locate(text: str) -> Places:
    r"""Find every key of a TOML text with ``\n`` line ends; a text that only an enemy writes raises `HostileTextError`.

    Examples
    --------
    >>> places = locate('[data]\nimbalance = { kind = "step", ratio = 20 }\n')
    >>> places.of(("data", "imbalance", "ratio"))
    Place(key=Position(line=2, column=30), value=Position(line=2, column=38))
    >>> places.of(("data",)).value, places.of(("data", "imbalance")).value
    (Position(line=1, column=1), Position(line=2, column=13))
    """
    scanner = _Scanner(text)
    with contextlib.suppress(_LostError):
        scanner.document()
    return Places(scanner.places, scanner.statements)


class _LostError(Exception):
    """The text cannot be followed further; `tomllib` will say why."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line_breaks = [-1, *(match.start() for match in re.finditer("\n", text))]
        self.places: dict[KeyPath, Place] = {(): Place(START, START)}
        self.statements: list[tuple[Position, KeyPath]] = []
        self.tables_in: dict[KeyPath, int] = {}  # arrays of tables, with how many tables each has so far

    def document(self) -> None:
        table: KeyPath = ()
        self.take(_GAP)
        while self.at < len(self.text):
            start = self.here()
            self.statements.append((start, ()))
            if self.text[self.at] == "[":
                table = self.header(start)
            else:
                path = self.mention(table, self.words())
                self.statements[-1] = (start, path)
                self.assignment(path)
            self.take(_LINE_END)
            line, column = self.here()
            self.statements.append((Position(line, column + 1), ()))
            self.take(_GAP)

    def header(self, start: Position) -> KeyPath:
        bracket = "]]" if self.text.startswith("[[", self.at) else "]"
        self.at += len(bracket)
        self.take(_BLANK)
        words = self.words()
        name, where = words.pop()
        path = (*self.mention((), words), name)
        self.statements[-1] = (start, path)
        self.expect(bracket)
        if bracket == "]":
            self.places[path] = Place(self.places.get(path, Place(where, start)).key, start)
            return path
        self.places.setdefault(path, Place(where, start))
        index = self.tables_in.get(path, 0)
        self.tables_in[path] = index + 1
        self.places[*path, index] = Place(where, start)
        return (*path, index)

    def assignment(self, path: KeyPath) -> None:
        self.expect("=")
        self.take(_BLANK)
        self.value(path)

    def value(self, path: KeyPath) -> None:
        if len(path) > DEEPEST:
            self.refuse(f"nested more than {DEEPEST} deep")
        where = self.here()
        self.places[path] = Place(self.places.get(path, Place(where, where)).key, where)
        opening = self.text[self.at : self.at + 1]
        if opening == "[":
            for index in self.items("[]"):
                self.value((*path, index))
        elif opening == "{":
            for _ in self.items("{}"):
                self.assignment(self.mention(path, self.words()))
        elif opening in {'"', "'"}:
            self.take(_STRING)
        elif len(self.take(_BARE)) > LONGEST_BARE:
            self.refuse(f"a number or date of more than {LONGEST_BARE} characters", where)

    def items(self, brackets: str) -> Iterator[int]:
        """Move to each item between two brackets, and yield its number."""
        self.expect(brackets[0])
        for index in itertools.count():
            self.take(_GAP)
            if self.accept(brackets[1]):
                return
            yield index
            self.take(_GAP)
            if not self.accept(","):
                self.expect(brackets[1])
                return

    def words(self) -> list[tuple[str, Position]]:
        """Read a dotted key."""
        words = []
        while True:
            where = self.here()
            words.append((_unquoted(self.take(_WORD)), where))
            if len(words) > DEEPEST:
                self.refuse(f"a key of more than {DEEPEST} parts", where)
            self.take(_BLANK)
            if not self.accept("."):
                return words
            self.take(_BLANK)

    def mention(self, table: KeyPath, words: Sequence[tuple[str, Position]]) -> KeyPath:
        """Note keys where they are written first, and return their path; an array of tables means its last table."""
        path = table
        for name, where in words:
            path = (*path, name)
            self.places.setdefault(path, Place(where, where))
            if path in self.tables_in:
                path = (*path, self.tables_in[path] - 1)
        return path

    def here(self) -> Position:
        line = bisect_left(self.line_breaks, self.at)
        return Position(line, self.at - self.line_breaks[line - 1])

    def take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise _LostError
        self.at = match.end()
        return match.group()

    def accept(self, sign: str) -> bool:
        found = self.text.startswith(sign, self.at)
        self.at += len(sign) if found else 0
        return found

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise _LostError

    def refuse(self, what: str, where: Position | None = None) -> Never:
        raise HostileTextError(where or self.here(), what)


def _unquoted(word: str) -> str:
    if word[0] not in "\"'":
        return word
    try:
        return str(tomllib.loads(f"word = {word}")["word"])
    except ValueError:
        raise _LostError from None
