"""Parameters of an algorithm: a frozen dataclass whose fields know the paper's symbol and the allowed range."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from fedrela.errors import ArgumentError

LARGEST = sys.float_info.max  # also of integers, which Python would let grow without end


def param(
    default: Any,
    symbol: str,
    meaning: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    choices: Sequence[str] = (),
) -> Any:
    """Return a dataclass field for one parameter.

    Parameters
    ----------
    default
        What the official code or the paper uses; its type is the parameter's type.
    symbol, meaning
        As the paper writes it, and what it does.
    low, high
        The least and the greatest value allowed.
    above, below
        Values that must be passed and not only reached.
    choices
        The words allowed, for a parameter that is a word.
    """
    rule = {"low": low, "high": high, "above": above, "below": below, "choices": tuple(choices)}
    return field(default=default, metadata={"symbol": symbol, "meaning": meaning, **rule})


@dataclass(frozen=True)
class Params:
    """No parameters. Those of an algorithm derive from this one, and are checked when they are made."""

    def __post_init__(self) -> None:
        for each in fields(self):
            _check(each.name, getattr(self, each.name), each.default, each.metadata)


def allowed(rule: Any) -> str:
    """Return the values that a parameter may have, in words.

    >>> allowed(param(0.5, "mu", "strength", low=0, below=1).metadata)
    'a number >= 0 and < 1'
    """
    if rule["choices"]:
        return f"one of {', '.join(rule['choices'])}"
    words = {"low": ">=", "above": ">", "high": "<=", "below": "<"}
    limits = [f"{words[key]} {rule[key]:g}" for key in words if math.isfinite(rule[key])]
    return " ".join(["a number", " and ".join(limits)]).strip()


def _check(name: str, value: Any, default: Any, rule: Any) -> None:
    kind = type(default)
    fits = isinstance(value, int | float) and not isinstance(value, bool) if kind is float else type(value) is kind
    if fits and kind is str:
        fits = value in rule["choices"]
    elif fits and kind in (int, float):
        inside = rule["low"] <= value <= rule["high"] and rule["above"] < value < rule["below"]
        fits = inside and abs(value) <= LARGEST
    if not fits:
        needed = {bool: "true or false", str: allowed(rule)}.get(kind, allowed(rule))
        whole = needed.replace("a number", "an integer") if kind is int else needed
        raise ArgumentError(f"{name}: expected {whole}, got {value!r}")
