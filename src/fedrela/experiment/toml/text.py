"""A small TOML writer: plain values to text that `tomllib` reads back as the same values."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

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
