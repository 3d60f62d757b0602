"""From a file to TOML values and their places; what cannot be read ends in one line with line and column."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.experiment.schema.problems import complaint
from fedrela.experiment.toml.locate import HostileTextError, locate
from fedrela.experiment.toml.places import Places, Position

LARGEST_FILE = 1 << 20  # bytes
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_PLAIN_WORDS = {  # how a message of `tomllib` begins, and what we say
    "Cannot overwrite a value": "given twice",
    "Cannot declare": "given twice",
    "Cannot redefine namespace": "given twice",
    "Cannot mutate immutable namespace": "an inline table ends at its closing brace; write all its keys inside",
    "Duplicate inline table key": "a key in it is given twice",
    "Expected '='": "'=' is needed after a key",
    "Expected newline": "more text after a complete statement; write one a line",
    "Illegal character '\\n'": "the quotes are not closed on this line",
    "Invalid hex value": "a backslash in text is written twice, or the text in single quotes",
    "Invalid initial character": "a key is needed here; an inline table stands on one line, without a last comma",
    "Invalid statement": "not TOML; a key, a [table] or a # comment is needed",
    "Invalid value": "not a TOML value; text needs quotes, truth values are true and false",
    "Unescaped": "a backslash in text is written twice, or the text in single quotes",
}
_WHOLE = ("Cannot", "Duplicate")  # messages about statements that are complete


def read_text(path: Path) -> str:
    """Read a file of UTF-8 text that is small enough for a configuration."""
    name = str(path)
    if "\0" in name:
        raise complaint(name, "no file can have this name; a TOML file is needed")
    try:
        if path.exists() and not path.is_file():
            raise complaint(name, "a folder; name the TOML file in it" if path.is_dir() else "not a plain file")
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise complaint(name, f"cannot be read: {error.strerror or error}; a TOML file is needed") from None
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
    what = next(
        (ours for start, ours in _PLAIN_WORDS.items() if words.startswith(start)), words[:1].lower() + words[1:]
    )
    if found and found[1]:
        position = Position(int(found[1]), int(found[2]))
    else:
        position = _end_of(text.rstrip())
        what = what if words.startswith(_WHOLE) else "the text ends before this is complete"
    return complaint(name, what, position, places.statement_at(position))


def _end_of(text: str) -> Position:
    """Return the place just after a text."""
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))
