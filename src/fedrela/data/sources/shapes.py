"""Samples of the usual shapes, as the two that a source gives: uint8 images, channels first, and float32 tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import ArgumentError, DataError

LAYOUTS = ("auto", "nchw", "nhwc")
COLOURS = (1, 3)  # grey and RGB


def image_layout(shape: tuple[int, ...], layout: str, where: str) -> str:
    """Return "nhw", "nchw" or "nhwc" for images of `shape`.

    Three dimensions are grey images. Of four, with `layout` "auto", the second is the channels where it is 1 or 3, else
    the last where it is 1 or 3, else nobody knows and `layout` must say it.

    >>> [image_layout(s, "auto", "x") for s in ((9, 8, 8), (9, 3, 8, 8), (9, 8, 8, 3), (9, 3, 3, 3))]
    ['nhw', 'nchw', 'nhwc', 'nchw']
    """
    if layout not in LAYOUTS:
        raise ArgumentError(f"layout: expected one of {', '.join(LAYOUTS)}, got {layout!r}")
    if len(shape) == 3:
        return "nhw"
    if len(shape) != 4:
        raise DataError(f"{where}: expected images (n, height, width) or with channels, got shape {shape}")
    if layout != "auto":
        return layout
    if shape[1] in COLOURS:
        return "nchw"
    if shape[3] in COLOURS:
        return "nhwc"
    raise DataError(f"{where}: shape {shape} does not show its channels; set layout to nchw or nhwc")


def channels_first(images: NDArray[Any], layout: str) -> NDArray[Any]:
    """Return a view of `images` with channels first."""
    if layout == "nhw":
        return images[:, np.newaxis]
    return images.transpose(0, 3, 1, 2) if layout == "nhwc" else images


def channels_first_shape(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Return the shape that `channels_first` gives.

    >>> channels_first_shape((9, 28, 32, 3), "nhwc")
    (9, 3, 28, 32)
    """
    if layout == "nhw":
        return (shape[0], 1, *shape[1:])
    return (shape[0], shape[3], shape[1], shape[2]) if layout == "nhwc" else shape


def check_bytes(dtype: np.dtype[Any], where: str) -> None:
    """Raise where images are not unsigned bytes."""
    if dtype != np.uint8:
        raise DataError(f"{where}: expected images of uint8 (0 to 255), got {dtype}; convert them first")


def table_rows(values: NDArray[Any], where: str) -> NDArray[np.float32]:
    """Return numbers ``(n, features)`` as float32; one that is not finite there is an error with its place."""
    if values.ndim != 2 or not values.shape[1] or values.dtype.kind not in "biuf":
        raise DataError(f"{where}: expected a table of numbers (n, features), got {values.dtype} {values.shape}")
    with np.errstate(over="ignore"):
        rows = values.astype(np.float32)
    finite = np.isfinite(rows)
    if not finite.all():
        i, j = (int(k) for k in np.argwhere(~finite)[0])
        raise DataError(f"{where}: row {i}, column {j}: expected a finite number, got {values[i, j]}")
    return rows


def as_samples(values: NDArray[Any], layout: str, where: str) -> NDArray[Any]:
    """Return an array in memory as images or as a table, by its number of dimensions."""
    if values.ndim == 2:
        return table_rows(values, where)
    check_bytes(values.dtype, where)
    return channels_first(values, image_layout(values.shape, layout, where))
