"""The door of the models: names, sizes and options are checked here, and every message is one line."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import SupportsIndex, cast

from fedrela.errors import ArgumentError


def whole(name: str, value: object, least: int = 1) -> int:
    """Return `value` where it is an integer >= `least`, or raise."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"expected an integer, got {str(value)[:40]!r}", argument=name)
    number = cast(SupportsIndex, value).__index__()
    if number < least:
        raise ArgumentError(f"expected at least {least}, got {number}", argument=name)
    return number


def real(name: str, value: object, least: float, below: float = math.inf) -> float:
    """Return `value` where it is a number from `least` up to and without `below`, or raise."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not least <= number < below:
        limit = "" if below == math.inf else f" and below {below:g}"
        raise ArgumentError(f"expected a number >= {least:g}{limit}, got {str(value)[:40]!r}", argument=name)
    return float(number)


def one_of(name: str, value: object, choices: Iterable[str]) -> str:
    """Return `value` where it is one of `choices`, or raise and name the nearest."""
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    near = difflib.get_close_matches(str(value)[:60], known, 1, 0.5)
    hint = f"nearest: {near[0]!r}" if near else f"there are {', '.join(known) or 'none'}"
    raise ArgumentError(f"there is no {str(value)[:40]!r}; {hint}", argument=name)


def sizes(name: str, value: object) -> tuple[int, ...]:
    """Return a list of integers as a tuple, or raise."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ArgumentError(f"expected a list of integers, got {str(value)[:40]!r}", argument=name)
    return tuple(whole(f"{name}[{place}]", size) for place, size in enumerate(value))


def image(model: str, input_shape: Sequence[int], smallest: int = 1) -> tuple[int, int, int]:
    """Return an input shape as (channels, height, width), or raise where it is no image or too small a one."""
    if len(input_shape) != 3:
        raise ArgumentError(
            f"{model}: expected images (channels, height, width), got samples of shape {tuple(input_shape)}; "
            "for tables take mlp or logistic"
        )
    channels, height, width = input_shape
    if min(height, width) < smallest:
        raise ArgumentError(
            f"{model}: expected images of at least {smallest} x {smallest} pixels, got {height} x {width}; "
            "for small ones take cnn_small or mlp"
        )
    return channels, height, width
