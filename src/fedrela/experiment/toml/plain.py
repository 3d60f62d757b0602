"""Values that TOML can hold: what a dictionary from Python may bring, brought down to them."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from fedrela.experiment.schema.problems import Problem
from fedrela.experiment.toml.locate import DEEPEST
from fedrela.experiment.toml.places import KeyPath
from fedrela.text import shown

INT64 = range(-(2**63), 2**63)


def as_plain(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Return a copy with plain values only, and what cannot be brought down to them.

    A value of None counts as left out. Paths become text, tuples lists, and numbers of NumPy those of Python.

    >>> as_plain({"a": (1, np.float32(0.5)), "b": None, "c": PurePath("d")})
    ({'a': [1, 0.5], 'c': 'd'}, [])
    """
    problems: list[Problem] = []
    if not isinstance(raw, Mapping):
        _complain(problems, (), f"expected a table, got {shown(raw)}")
        return {}, problems
    return _plain(raw, (), problems), problems


def _plain(value: Any, path: KeyPath, problems: list[Problem]) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Mapping | list | tuple) and len(path) >= DEEPEST:
        _complain(problems, path, f"nested more than {DEEPEST} deep")
    elif isinstance(value, Mapping):
        return {key: _plain(value[key], (*path, key), problems) for key in _keys(value, path, problems)}
    elif isinstance(value, list | tuple):
        return [_plain(item, (*path, i), problems) for i, item in enumerate(value)]
    elif isinstance(value, str | PurePath):
        return _text(str(value), path, problems)
    elif isinstance(value, int) and value not in INT64:
        _complain(problems, path, "expected a number <= 64 bits, got a larger one")
    elif not isinstance(value, bool | int | float | datetime.date | datetime.time):
        _complain(problems, path, f"expected a value that TOML can hold, got {shown(value)}")
    return value


def _keys(table: Mapping[Any, Any], path: KeyPath, problems: list[Problem]) -> list[str]:
    for key in table:
        if isinstance(key, str):
            _text(key, path, problems)
        else:
            _complain(problems, path, f"keys are text, got {shown(key)}")
    return [key for key, value in table.items() if value is not None and isinstance(key, str)]


def _text(text: str, path: KeyPath, problems: list[Problem]) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        _complain(problems, path, f"expected text that UTF-8 can hold, got {shown(text)}")
    return text


def _complain(problems: list[Problem], path: KeyPath, what: str) -> None:
    problems.append(Problem(path, "value", functools.partial(str, what)))
