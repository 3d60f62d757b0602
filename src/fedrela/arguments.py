"""Checks of single arguments: each returns the value, or raises an `ArgumentError` that names the argument."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, SupportsIndex, cast

import numpy as np

from fedrela.errors import ArgumentError
from fedrela.text import not_one_of, shown

MOST_WORKERS = 1024


def check_integer(name: str, value: object, least: int = 1) -> int:
    """Return `value` if it is an integer >= `least`.

    >>> check_integer("rounds", np.int64(3))
    3
    """
    is_integer = hasattr(value, "__index__") and not isinstance(value, bool | np.bool_)
    number = cast(SupportsIndex, value).__index__() if is_integer else least - 1
    if number < least:
        got = shown(number if is_integer else value)
        raise ArgumentError(f"expected an integer >= {least}, got {got}", argument=name)
    return number


def check_workers(name: str, value: Any) -> int | str:
    """Return `value` if it is a number of worker processes, or ``"auto"``."""
    if value == "auto" or (type(value) is int and 1 <= value <= MOST_WORKERS):
        return cast(int | str, value)
    raise ArgumentError(f"expected 'auto' or an integer from 1 to {MOST_WORKERS}, got {shown(value)}", argument=name)


def check_number(name: str, value: object, least: float, below: float = math.inf) -> float:
    """Return `value` as a float if it is a number >= `least` and < `below`.

    >>> check_number("lr", np.float32(0.5), 0)
    0.5
    """
    given = value.item() if isinstance(value, np.generic) else value
    number = given if isinstance(given, int | float) and not isinstance(given, bool) else math.nan
    if not least <= number < below:
        limit = "" if below == math.inf else f" and < {below:g}"
        raise ArgumentError(f"expected a number >= {least:g}{limit}, got {shown(given)}", argument=name)
    return float(number)


def check_fraction(name: str, value: float, *, per_cent_hint: bool = False) -> float:
    """Return `value` as a float if it is a number in [0, 1]."""
    given = value.item() if isinstance(value, np.generic) else value
    real = isinstance(given, int | float) and not isinstance(given, bool)
    if not real or not 0 <= given <= 1:
        per_cent = per_cent_hint and real and given > 1
        hint = "; the official code counts in per cent: 5 there is 0.05 here" if per_cent else ""
        raise ArgumentError(f"expected a fraction from 0 to 1, got {shown(given)}{hint}", argument=name)
    return float(given)


def check_choice(name: str, value: object, choices: Iterable[str], more: str = "") -> str:
    """Return `value` if it is one of `choices`; `more` says in the message what else is allowed."""
    allowed = tuple(choices)
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(not_one_of(value, allowed, more), argument=name)
    return value
