"""A source from arrays in memory: images as uint8 with channels first, tables as float32, other arrays as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_choice
from fedrela.data.sources.base import Source, refuse_multi_label
from fedrela.data.sources.labels import TEST_SHARE, encode_clients, encode_labels, plain_values, stratified
from fedrela.errors import ArgumentError, DataError

FORMS = ("auto", "array")
LAYOUTS = ("auto", "nchw", "nhwc")
COLOURS = (1, 3)  # grey and RGB


def from_arrays(
    x: ArrayLike,
    y: ArrayLike,
    x_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    *,
    class_names: Sequence[str] | None = None,
    client_ids: ArrayLike | None = None,
    test_share: float = TEST_SHARE.default,
    seed: int = 0,
    layout: str = "auto",
    form: str = "auto",
    name: str = "arrays",
) -> Source:
    """Make a source of samples `x` and labels `y`.

    Parameters
    ----------
    x, x_test
        Images as uint8, ``(n, height, width)`` or with channels first or last (see `layout`); a table
        ``(n, features)`` of numbers; or arrays of any other shape (see `form`).
    y, y_test
        Labels, integers or text. Without `class_names` the classes are the distinct values in order; with it,
        integers are positions in it.
    class_names
        Names of the classes 0 .. C - 1.
    client_ids
        Natural client of every row of `x`, integers or text.
    test_share, seed
        Without `x_test`, this share of every class is held out; the same seed gives the same split.
    layout
        Where the channels are: "auto", "nchw" or "nhwc"; see `fedrela.data.sources.arrays.image_layout`.
    form
        What `x` is: "auto" treats two dimensions as a table, bytes as images, and everything else as arrays; "array"
        treats two dimensions as an array too, such as token ids. Integers are stored as int64, floats as float32.
    name
        Name of the source in messages.

    Examples
    --------
    >>> source = from_arrays([[0.0], [1.0], [2.0], [3.0]], ["b", "b", "a", "a"], test_share=0.5)
    >>> source.class_names, len(source.y_train), len(source.y_test)
    (('a', 'b'), 2, 2)
    """
    if (x_test is None) != (y_test is None):
        raise ArgumentError("expected both x_test and y_test, or neither", argument="x_test")
    samples, values = np.asarray(x), np.asarray(y)
    refuse_multi_label(values.shape, f"{name}: y")
    clients = None if client_ids is None else encode_clients(client_ids, f"{name}: client_ids")
    for what, array in (("y", values), ("client_ids", clients)):
        if array is not None and array.shape != samples.shape[:1]:
            raise ArgumentError(f"expected one per sample, shape {samples.shape[:1]}, got {array.shape}", argument=what)
    rows = as_samples(samples, layout, f"{name}: x", form)
    labels, names = encode_labels(values, class_names, f"{name}: y")
    if x_test is None or y_test is None:
        train, test = stratified(labels, test_share, seed)
        parts = [rows[train], labels[train], rows[test], labels[test]]
        clients = None if clients is None else clients[train]
    else:
        held_out, test_labels = as_samples(np.asarray(x_test), layout, f"{name}: x_test", form), np.asarray(y_test)
        if class_names is None:  # the names come from the training labels, so test labels are looked up as text
            test_labels = np.array([str(value) for value in plain_values(test_labels, f"{name}: y_test")])
        parts = [rows, labels, held_out, encode_labels(test_labels, names, f"{name}: y_test")[0]]
    return table_or_images(name, parts, names, clients, is_table=form == "auto" and rows.ndim == 2)


def table_or_images(
    name: str, parts: list[NDArray[Any]], names: tuple[str, ...], clients: NDArray[np.int64] | None, *, is_table: bool
) -> Source:
    """Build the source; the arrays become read-only views, and all columns of a table are numeric."""
    views = [part.view() for part in parts]
    for view in views:
        view.flags.writeable = False
    features = views[0].shape[1] if is_table else 0
    columns = tuple(f"x{j}" for j in range(features))
    numeric = np.ones(features, np.bool_) if features else None
    x_train, y_train, x_test, y_test = views
    return Source(name, x_train, y_train, x_test, y_test, names, clients, columns, numeric)


def image_layout(shape: tuple[int, ...], layout: str, where: str) -> str:
    """Return "nhw", "nchw" or "nhwc" for images of `shape`.

    Three dimensions are grey images. Of four, with `layout` "auto", the channels are the second if it is 1 or 3, else
    the last if it is 1 or 3; otherwise `layout` must say which.

    >>> [image_layout(s, "auto", "x") for s in ((9, 8, 8), (9, 3, 8, 8), (9, 8, 8, 3), (9, 3, 3, 3))]
    ['nhw', 'nchw', 'nhwc', 'nchw']
    """
    check_choice("layout", layout, LAYOUTS)
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
    raise DataError(f"{where}: shape {shape} does not show which are the channels; set layout to nchw or nhwc")


def channels_first(images: NDArray[Any], layout: str) -> NDArray[Any]:
    """Return a view of `images` with channels first."""
    if layout == "nhw":
        return images[:, np.newaxis]
    return images.transpose(0, 3, 1, 2) if layout == "nhwc" else images


def as_stored(images: NDArray[Any], layout: str) -> NDArray[Any]:
    """Return a view of `images` in `layout`: the inverse of `channels_first`."""
    if layout == "nhw":
        return images[:, 0]
    return images.transpose(0, 2, 3, 1) if layout == "nhwc" else images


def check_bytes(dtype: np.dtype[Any], where: str) -> None:
    """Raise if images are not unsigned bytes."""
    if dtype != np.uint8:
        raise DataError(f"{where}: expected images of uint8 (0 to 255), got {dtype}; convert them first")


def refuse_rounding(column: NDArray[Any], single: NDArray[np.float32], where: str) -> None:
    """Raise if a column as float32 no longer tells its values apart, as those of timestamps in seconds."""
    if column.dtype.itemsize > 4 and column.size and column.dtype.kind in "iuf":
        exact = column.astype(np.float64)
        with np.errstate(invalid="ignore"):
            spread, error = np.ptp(exact), np.abs(single - exact).max()
        if error > spread / 1000 and spread > 1e-9 * np.abs(exact).max():
            raise DataError(f"{where}: 32-bit numbers cannot tell its values apart; subtract the smallest of them")


def table_rows(values: NDArray[Any], where: str) -> NDArray[np.float32]:
    """Return numbers ``(n, features)`` as float32; the error for one that is not finite names its row and column."""
    if values.ndim != 2 or not values.shape[1] or values.dtype.kind not in "biuf":
        raise DataError(f"{where}: expected a table of numbers (n, features), got {values.dtype} {values.shape}")
    with np.errstate(over="ignore"):
        rows = values.astype(np.float32)
    finite = np.isfinite(rows)
    if not finite.all():
        i, j = (int(k) for k in np.argwhere(~finite)[0])
        raise DataError(f"{where}: row {i}, column {j}: expected a finite number, got {values[i, j]}")
    for j in range(values.shape[1]):
        refuse_rounding(values[:, j], rows[:, j], f"{where}: column {j}")
    return rows


def as_samples(values: NDArray[Any], layout: str, where: str, form: str = "auto") -> NDArray[Any]:
    """Return an array in memory as images, as a table, or as an array of float32 or int64."""
    if check_choice("form", form, FORMS) == "auto" and values.ndim <= 2:
        return table_rows(values, where)
    if form == "auto" and values.dtype == np.uint8:
        return channels_first(values, image_layout(values.shape, layout, where))
    if values.ndim < 2 or 0 in values.shape[1:] or values.dtype.kind not in "biuf":
        raise DataError(f"{where}: expected numbers (n, ...), got {values.dtype} {values.shape}")
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    with np.errstate(over="ignore"):
        rows = values.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=tuple(range(1, rows.ndim))))
    if wrong.size:
        raise DataError(f"{where}: row {wrong[0]}: expected finite numbers")
    colour = values.ndim == 4 and (layout != "auto" or values.shape[1] in COLOURS or values.shape[3] in COLOURS)
    return channels_first(rows, image_layout(rows.shape, layout, where)) if colour else rows
