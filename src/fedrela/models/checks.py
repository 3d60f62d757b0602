"""Checks of the sizes and input shapes of models."""

from __future__ import annotations

from collections.abc import Sequence

from fedrela.arguments import check_integer
from fedrela.errors import ArgumentError
from fedrela.text import shown


def sizes(name: str, value: object) -> tuple[int, ...]:
    """Return a list of integers as a tuple, or raise."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ArgumentError(f"expected a list of integers, got {shown(value)}", argument=name)
    return tuple(check_integer(f"{name}[{place}]", size) for place, size in enumerate(value))


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
