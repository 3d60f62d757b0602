"""From a file to TOML values and their positions; what cannot be read ends in one line with line and column."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.experiment.toml.positions import HostileTextError, KeyPath, Places, Position, locate
from fedrela.experiment.toml.writer import toml_key
from fedrela.text import LONGEST_KEY, printable

LARGEST_FILE = 1 << 20  # bytes
LONGEST_PATH, LONGEST_SENTENCE = 200, 400  # characters in a message
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_PLAIN_WORDS = {  # how a message of `tomllib` begins, and what we say
    "Cannot overwrite a value": "given twice",
    "Cannot declare": "given twice",
    "Cannot redefine namespace": "given twice",
    "Cannot mutate immutable namespace": "an inline table ends at its closing brace; write all its keys inside",
    "Duplicate inline table key": "a key in it is given twice",
    "Expected '='": "expected '=' after a key",
    "Expected newline": "more text after a complete statement; write one per line",
    "Illegal character '\\n'": "the quotes are not closed on this line",
    "Invalid hex value": "a backslash in text is written twice, or the text in single quotes",
    "Invalid initial character": "expected a key here; an inline table stands on one line, without a last comma",
    "Invalid statement": "not TOML; expected a key, a [table] or a # comment",
    "Invalid value": "not a TOML value; text needs quotes, truth values are true and false",
    "Unescaped": "a backslash in text is written twice, or the text in single quotes",
}
_WHOLE = ("Cannot", "Duplicate")  # messages about statements that are complete


def read_text(path: Path) -> str:
    """Read a file of UTF-8 text that is small enough for a configuration."""
    name = str(path)
    if "\0" in name:
        raise complaint(name, "expected a TOML file; no file can have this name")
    try:
        if path.exists() and not path.is_file():
            raise complaint(name, "a folder; name the TOML file in it" if path.is_dir() else "not a plain file")
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise complaint(name, f"cannot be read: {error.strerror or error}") from None
    check_size(len(data), name)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix("\ufeff")
        what = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise complaint(name, what, _end_of(before)) from None


def check_size(size: int, name: str) -> None:
    """Raise where a text is larger than a configuration ever is."""
    if size > LARGEST_FILE:
        raise complaint(name, f"larger than {LARGEST_FILE} bytes, which no configuration is")


def parse_toml(text: str, name: str) -> tuple[dict[str, Any], Places]:
    """Return the values of a TOML text and the places of its keys."""
    check_size(len(text), name)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        places = locate(text)
        return tomllib.loads(text), places
    except HostileTextError as error:
        raise complaint(name, str(error), error.position) from None
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), text, name, places) from None
    except (ValueError, RecursionError) as error:
        raise complaint(name, f"not TOML that can be read: {error}") from None


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
    return complaint(name, what, position, places.statement_at(position))


def _end_of(text: str) -> Position:
    """Return the place just after a text."""
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))


def complaint(name: str, what: str, position: Position | None = None, path: KeyPath = ()) -> ArgumentError:
    """Return an error of one line: ``name:line:column: key: what is wrong``.

    >>> print(complaint("run.toml", "unknown key", Position(2, 1), ("data", "sorce")))
    run.toml:2:1: data.sorce: unknown key
    """
    return ArgumentError(placed(name, printable(what, LONGEST_SENTENCE), position, path))


def placed(name: str, sentence: str, position: Position | None, path: KeyPath) -> str:
    """Return one line: place, key and sentence; what is not known of the first two is left out."""
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
