"""From a file to TOML values and the positions of their keys; errors are one line with line and column.

`tomllib` does not report positions, so a small scanner finds them. It follows the structure of a text and is lenient
about all else, since `tomllib` validates the text. Where it cannot follow, it stops with what it has found so far.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fedrela.errors import ArgumentError
from fedrela.experiment.toml.writer import DEEPEST, KeyPath, toml_key
from fedrela.text import LONGEST_KEY, printable

LARGEST_FILE = 1 << 20  # bytes
LONGEST_BARE = 200  # characters of a number or date
LONGEST_PATH, LONGEST_SENTENCE = 200, 400  # characters in a message
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_PLAIN_WORDS = {  # start of a message of `tomllib` -> our message
    "Cannot overwrite a value": "given twice",
    "Cannot declare": "given twice",
    "Cannot redefine namespace": "given twice",
    "Cannot mutate immutable namespace": "an inline table ends at its closing brace; write all its keys inside",
    "Duplicate inline table key": "a key in it is given twice",
    "Expected '='": "expected '=' after a key",
    "Expected newline": "more text after a complete statement; write one per line",
    "Illegal character '\\n'": "the quotes are not closed on this line",
    "Invalid hex value": "write a backslash twice, or put the text in single quotes",
    "Invalid initial character": "expected a key here; an inline table is on one line, without a trailing comma",
    "Invalid statement": "not TOML; expected a key, a [table] or a # comment",
    "Invalid value": "not a TOML value; text needs quotes, booleans are true and false",
    "Unescaped": "write a backslash twice, or put the text in single quotes",
}
_WHOLE = ("Cannot", "Duplicate")  # messages about statements that are complete


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
        """Return the path whose statement covers `position`; empty if none does."""
        return next((path for start, path in reversed(self.statements) if start <= position), ())


@dataclass(frozen=True)
class Origin:
    """Where a configuration comes from: its name in messages, and the positions of its keys if it was a text.

    All origins are equal, so that configurations that say the same are equal, wherever they come from.
    """

    name: str = field(default="", compare=False)
    places: Places | None = field(default=None, compare=False)


_BLANK = re.compile(r"[ \t]*")
_EQUALS = re.compile(r"=[ \t]*")
_GAP = re.compile(r"(?:[ \t\n]+|#[^\n]*)*+")
_NEXT = re.compile(_GAP.pattern + r"(?:,|(?=[\]}]))")  # after an item
_LINE_END = re.compile(r"[ \t]*(?:#[^\n]*)?(?=\n|\Z)")
_WORD = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\[^\n])*+"|'[^'\n]*'""")
_STRING = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+""""{0,2}|\'\'\'(?:[^']|'(?!''))*+\'\'\''{0,2}'''
    r"""|"(?:[^"\\\n]|\\[^\n])*+"|'[^'\n]*\'""",
    re.DOTALL,
)
_BARE = re.compile(r"""\d{4}-\d\d-\d\d[ ]\d\d:[^\s,\[\]{}#"']*|[^\s,\[\]{}#"'=]+""")  # a date may hold one blank


def locate(text: str, name: str = "") -> Places:
    r"""Find every key of a TOML text with ``\n`` line ends; a hostile text raises at once.

    >>> places = locate('[data]\nimbalance = { kind = "step", ratio = 20 }\n')
    >>> places.of(("data", "imbalance", "ratio"))
    Place(key=Position(line=2, column=30), value=Position(line=2, column=38))
    >>> places.of(("data",)).value, places.of(("data", "imbalance")).value
    (Position(line=1, column=1), Position(line=2, column=13))
    """
    scanner = _Scanner(text, name)
    try:
        scanner.document()
    except ArgumentError:
        raise
    except ValueError:
        pass  # it cannot be followed further; `tomllib` will say why
    return Places(scanner.places, scanner.statements)


class _Scanner:
    def __init__(self, text: str, name: str) -> None:
        self.text, self.name, self.at = text, name, 0
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
                self.assigned(path)
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
        if not self.text.startswith(bracket, self.at):
            raise ValueError("the header is not closed")
        self.at += len(bracket)
        if bracket == "]":
            self.places[path] = Place(self.places.get(path, Place(where, start)).key, start)
            return path
        self.places.setdefault(path, Place(where, start))
        index = self.tables_in.get(path, 0)
        self.tables_in[path] = index + 1
        self.places[*path, index] = Place(where, start)
        return (*path, index)

    def assigned(self, path: KeyPath) -> None:
        self.take(_EQUALS)
        self.value(path)

    def value(self, path: KeyPath) -> None:
        if len(path) > DEEPEST:
            raise config_error(self.name, f"nested more than {DEEPEST} deep", self.here())
        where = self.here()
        self.places[path] = Place(self.places.get(path, Place(where, where)).key, where)
        opening = self.text[self.at : self.at + 1]
        if opening == "[":
            for index in self.items("]"):
                self.value((*path, index))
        elif opening == "{":
            for _ in self.items("}"):
                self.assigned(self.mention(path, self.words()))
        elif opening in {'"', "'"}:
            self.take(_STRING)
        elif len(self.take(_BARE)) > LONGEST_BARE:
            raise config_error(self.name, f"a number or date of more than {LONGEST_BARE} characters", where)

    def items(self, closing: str) -> Iterator[int]:
        """Move to each item between two brackets, the first of which is here, and yield its number."""
        self.at += 1
        for index in itertools.count():
            self.take(_GAP)
            if self.text.startswith(closing, self.at):
                self.at += 1
                return
            yield index
            self.take(_NEXT)

    def words(self) -> list[tuple[str, Position]]:
        """Read a dotted key."""
        words: list[tuple[str, Position]] = []
        while not words or self.text.startswith(".", self.at):
            self.at += len(words) > 0
            self.take(_BLANK)
            if len(words) == DEEPEST:
                raise config_error(self.name, f"a key of more than {DEEPEST} parts", self.here())
            where, word = self.here(), self.take(_WORD)
            words.append((tomllib.loads(f"word = {word}")["word"] if word[0] in "\"'" else word, where))
            self.take(_BLANK)
        return words

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
            raise ValueError("not what is expected here")
        self.at = match.end()
        return match.group()


def read_text(path: Path) -> str:
    """Read a file of UTF-8 text that is small enough for a configuration."""
    name = str(path)
    if "\0" in name:
        raise config_error(name, "expected a TOML file, got a name with a null character")
    try:
        if path.exists() and not path.is_file():
            raise config_error(name, "a folder; name the TOML file in it" if path.is_dir() else "not a plain file")
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise config_error(name, f"cannot be read: {error.strerror or error}") from None
    check_size(len(data), name)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix("\ufeff")
        what = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise config_error(name, what, _end_of(before)) from None


def check_size(size: int, name: str) -> None:
    """Raise if a text is too large for a configuration."""
    if size > LARGEST_FILE:
        raise config_error(name, f"expected at most {LARGEST_FILE} bytes, got more")


def parse_toml(text: str, name: str) -> tuple[dict[str, Any], Places]:
    """Return the values of a TOML text and the places of its keys."""
    check_size(len(text), name)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    places = locate(text, name)
    try:
        return tomllib.loads(text), places
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), text, name, places) from None
    except (ValueError, RecursionError) as error:
        raise config_error(name, f"not TOML that can be read: {error}") from None


def _syntax_error(message: str, text: str, name: str, places: Places) -> ArgumentError:
    found = _PLACE.search(message)
    words = message[: found.start()] if found else message
    ours = [ours for start, ours in _PLAIN_WORDS.items() if words.startswith(start)]
    what = ours[0] if ours else words[:1].lower() + words[1:]
    if found and found[1]:
        position = Position(int(found[1]), int(found[2]))
    else:
        position = _end_of(text.rstrip())
        what = what if words.startswith(_WHOLE) else "the text ends before this is complete"
    return config_error(name, what, position, places.statement_at(position))


def _end_of(text: str) -> Position:
    """Return the place just after a text."""
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))


def config_error(name: str, what: str, position: Position | None = None, path: KeyPath = ()) -> ArgumentError:
    """Return an error of one line: ``name:line:column: key: what is wrong``.

    >>> print(config_error("run.toml", "unknown key", Position(2, 1), ("data", "sorce")))
    run.toml:2:1: data.sorce: unknown key
    """
    return ArgumentError(error_line(name, printable(what, LONGEST_SENTENCE), position, path))


def error_line(name: str, sentence: str, position: Position | None, path: KeyPath) -> str:
    """Return one line: position, key and sentence; an unknown position or key is left out."""
    place = name if position is None else f"{name}:{position.line}:{position.column}"
    parts = (printable(place), printable(dotted(path), LONGEST_PATH), sentence)
    return ": ".join(part for part in parts if part)


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as one short line, as TOML would write it.

    >>> dotted(("data", "imbalance", "minority", 2)), dotted(("sweep", "relabel.tau"))
    ('data.imbalance.minority[2]', 'sweep."relabel.tau"')
    """
    parts = (f"[{part}]" if isinstance(part, int) else f".{toml_key(part[:LONGEST_KEY])}" for part in path)
    return "".join(parts).removeprefix(".")
