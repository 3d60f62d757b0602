"""Values to TOML text that `tomllib` reads back as the same values, and Python values to those that TOML can hold."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from types import FunctionType
from typing import Any

import numpy as np

from fedrela.components import import_name
from fedrela.errors import ArgumentError
from fedrela.text import shown

KeyPath = tuple[str | int, ...]  # keys, and numbers of items in arrays
DEEPEST = 32  # no configuration nests this deeply; far deeper keys take `tomllib` hours and exceed its recursion limit

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def toml_text(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """Return `table` as TOML text: plain keys first, then one section per table, in the order given.

    `path` is that of the table itself, if it is below other tables.

    >>> print(toml_text({"data": {"root": "a b", "partition": {"alpha": 0.3}}, "seed": 1}), end="")
    seed = 1
    <BLANKLINE>
    [data]
    root = "a b"
    <BLANKLINE>
    [data.partition]
    alpha = 0.3
    """
    return "\n".join(_sections(table, path)).lstrip("\n")


def _sections(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    tables = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"{toml_key(key)} = {toml_value(value)}\n" for key, value in table.items() if key not in tables]
    header = f"[{'.'.join(map(toml_key, path))}]\n" if path and (lines or not tables) else ""
    body = ["".join([header, *lines])] if header or lines else []
    return body + [section for key, inner in tables.items() for section in _sections(inner, (*path, key))]


def leaves(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted keys with their values as TOML.

    >>> list(leaves({"seed": 1, "data": {"root": "a"}}))
    [('seed', '1'), ('data.root', '"a"')]
    """
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", toml_value(value)


def toml_key(key: str) -> str:
    """Return a key, in quotes where it needs them.

    >>> toml_key("alpha"), toml_key("relabel.tau")
    ('alpha', '"relabel.tau"')
    """
    return key if _BARE_KEY.fullmatch(key) else toml_string(key)


def toml_value(value: Any) -> str:
    """Return one value; tables and lists inside it are written on the same line.

    >>> toml_value([1, 2.0, True, "a", {"b": 1e-05}])
    '[1, 2.0, true, "a", {b = 1e-05}]'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml_key(key)} = {toml_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return toml_string(str(value))


def toml_string(text: str) -> str:
    r"""Return text in quotes; unprintable characters are escaped, so that no string can control a terminal.

    >>> print(toml_string('say "hi"\n\x1b'))
    "say \"hi\"\n\u001B"
    """
    return '"' + "".join(_ESCAPES.get(ch) or (ch if ch.isprintable() else _code(ch)) for ch in text) + '"'


def _code(ch: str) -> str:
    return f"\\u{ord(ch):04X}" if ord(ch) < 0x10000 else f"\\U{ord(ch):08X}"


INT64 = range(-(2**63), 2**63)
NOT_UTF8 = "expected text that UTF-8 can hold, got "
Problems = list[tuple[KeyPath, str]]


def as_plain(raw: Mapping[str, Any]) -> tuple[dict[str, Any], Problems]:
    """Return a copy with plain values only, and the values that cannot be converted.

    A value of None counts as left out. Paths become text, classes and functions their names, tuples lists, and numbers
    of NumPy those of Python.

    >>> as_plain({"a": (1, np.float32(0.5)), "b": None, "c": PurePath("d")})
    ({'a': [1, 0.5], 'c': 'd'}, [])
    """
    problems: Problems = []
    if not isinstance(raw, Mapping):
        return {}, [((), f"expected a table, got {shown(raw)}")]
    return _plain(raw, (), problems), problems


def _plain(value: Any, path: KeyPath, problems: Problems) -> Any:
    what = ""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Mapping | list | tuple) and len(path) >= DEEPEST:
        what = f"nested more than {DEEPEST} deep"
    elif isinstance(value, Mapping):
        problems += [(path, f"keys are text, got {shown(key)}") for key in value if not isinstance(key, str)]
        given = {key: item for key, item in value.items() if isinstance(key, str)}
        problems += [(path, NOT_UTF8 + shown(key)) for key in given if not _is_utf8(key)]
        return {key: _plain(item, (*path, key), problems) for key, item in given.items() if item is not None}
    elif isinstance(value, list | tuple):
        return [_plain(item, (*path, i), problems) for i, item in enumerate(value)]
    elif isinstance(value, type | FunctionType):
        try:
            return import_name(value)
        except ArgumentError as error:
            what = error.reason
    elif isinstance(value, str | PurePath):
        value = str(value)
        what = "" if _is_utf8(value) else NOT_UTF8 + shown(value)
    elif isinstance(value, int) and value not in INT64:
        what = "expected a number of at most 64 bits, got a larger one"
    elif not isinstance(value, bool | int | float | datetime.date | datetime.time):
        what = f"expected a value that TOML can hold, got {shown(value)}"
    if what:
        problems.append((path, what))
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
