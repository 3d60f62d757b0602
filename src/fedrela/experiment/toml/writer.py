"""Values to TOML text that `tomllib` reads back as the same values, and Python values to those that TOML can hold."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from fedrela.experiment.toml.positions import DEEPEST, KeyPath
from fedrela.text import shown

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def toml_text(table: Mapping[str, Any]) -> str:
    """Return `table` as TOML text: plain keys first, then one section a table, in the order given.

    Examples
    --------
    >>> print(toml_text({"data": {"root": "a b", "partition": {"alpha": 0.3}}, "seed": 1}), end="")
    seed = 1
    <BLANKLINE>
    [data]
    root = "a b"
    <BLANKLINE>
    [data.partition]
    alpha = 0.3
    """
    return "\n".join(_sections(table, ())).lstrip("\n")


def _sections(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    tables = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"{toml_key(key)} = {toml_value(value)}\n" for key, value in table.items() if key not in tables]
    header = f"[{'.'.join(map(toml_key, path))}]\n" if path and (lines or not tables) else ""
    body = ["".join([header, *lines])] if header or lines else []
    return body + [section for key, inner in tables.items() for section in _sections(inner, (*path, key))]


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
    r"""Return text in quotes; what does not print is escaped, so that no string can drive a terminal.

    >>> print(toml_string('say "hi"\n\x1b'))
    "say \"hi\"\n\u001B"
    """
    return '"' + "".join(_ESCAPES.get(ch) or (ch if ch.isprintable() else _code(ch)) for ch in text) + '"'


def _code(ch: str) -> str:
    return f"\\u{ord(ch):04X}" if ord(ch) < 0x10000 else f"\\U{ord(ch):08X}"


INT64 = range(-(2**63), 2**63)


def as_plain(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[KeyPath, str]]]:
    """Return a copy with plain values only, and what cannot be brought down to them.

    A value of None counts as left out. Paths become text, tuples lists, and numbers of NumPy those of Python.

    >>> as_plain({"a": (1, np.float32(0.5)), "b": None, "c": PurePath("d")})
    ({'a': [1, 0.5], 'c': 'd'}, [])
    """
    problems: list[tuple[KeyPath, str]] = []
    if not isinstance(raw, Mapping):
        _complain(problems, (), f"expected a table, got {shown(raw)}")
        return {}, problems
    return _plain(raw, (), problems), problems


def _plain(value: Any, path: KeyPath, problems: list[tuple[KeyPath, str]]) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Mapping | list | tuple) and len(path) >= DEEPEST:
        _complain(problems, path, f"nested more than {DEEPEST} deep")
    elif isinstance(value, Mapping):
        return {key: _plain(value[key], (*path, key), problems) for key in _keys(value, path, problems)}
    elif isinstance(value, list | tuple):
        return [_plain(item, (*path, i), problems) for i, item in enumerate(value)]
    elif isinstance(value, str | PurePath):
        return _utf8(str(value), path, problems)
    elif isinstance(value, int) and value not in INT64:
        _complain(problems, path, "expected a number of at most 64 bits, got a larger one")
    elif not isinstance(value, bool | int | float | datetime.date | datetime.time):
        _complain(problems, path, f"expected a value that TOML can hold, got {shown(value)}")
    return value


def _keys(table: Mapping[Any, Any], path: KeyPath, problems: list[tuple[KeyPath, str]]) -> list[str]:
    for key in table:
        if isinstance(key, str):
            _utf8(key, path, problems)
        else:
            _complain(problems, path, f"keys are text, got {shown(key)}")
    return [key for key, value in table.items() if value is not None and isinstance(key, str)]


def _utf8(text: str, path: KeyPath, problems: list[tuple[KeyPath, str]]) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        _complain(problems, path, f"expected text that UTF-8 can hold, got {shown(text)}")
    return text


def _complain(problems: list[tuple[KeyPath, str]], path: KeyPath, what: str) -> None:
    problems.append((path, what))
