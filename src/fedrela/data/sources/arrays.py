"""A source from arrays in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.data.sources.base import Source
from fedrela.data.sources.labels import encode_clients, encode_labels, plain_values
from fedrela.data.sources.shapes import as_samples
from fedrela.data.sources.split import stratified
from fedrela.errors import ArgumentError


def from_arrays(
    x: ArrayLike,
    y: ArrayLike,
    x_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    *,
    class_names: Sequence[str] | None = None,
    client_ids: ArrayLike | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    layout: str = "auto",
    name: str = "arrays",
) -> Source:
    """Make a source of samples `x` and labels `y`.

    Parameters
    ----------
    x, x_test
        Images as uint8, ``(n, height, width)`` or with channels first or last (see `layout`), or a table
        ``(n, features)`` of numbers.
    y, y_test
        Labels, integers or text. Without `class_names` the different values in order are the classes; with it,
        integers are positions in it.
    class_names
        Names of the classes 0 .. C - 1.
    client_ids
        Natural client of every row of `x`, integers or text.
    test_share, seed
        Without `x_test`, this share of every class is held out, the same for the same seed.
    layout
        Where the channels are: "auto", "nchw" or "nhwc"; see `fedrela.data.sources.shapes.image_layout`.
    name
        Name of the source in messages.

    Examples
    --------
    >>> source = from_arrays([[0.0], [1.0], [2.0], [3.0]], ["b", "b", "a", "a"], test_share=0.5)
    >>> source.class_names, len(source.y_train), len(source.y_test)
    (('a', 'b'), 2, 2)
    """
    if (x_test is None) != (y_test is None):
        raise ArgumentError("x_test and y_test: both or neither are needed")
    samples, values = np.asarray(x), np.asarray(y)
    clients = None if client_ids is None else encode_clients(client_ids, f"{name}: client_ids")
    for what, array in (("y", values), ("client_ids", clients)):
        if array is not None and array.shape != samples.shape[:1]:
            raise ArgumentError(f"{what}: expected one a sample, shape {samples.shape[:1]}, got {array.shape}")
    rows = as_samples(samples, layout, f"{name}: x")
    labels, names = encode_labels(values, class_names, f"{name}: y")
    if x_test is None or y_test is None:
        train, test = stratified(labels, test_share, seed)
        parts = [rows[train], labels[train], rows[test], labels[test]]
        clients = None if clients is None else clients[train]
    else:
        held_out = as_samples(np.asarray(x_test), layout, f"{name}: x_test")
        parts = [rows, labels, held_out, _test_labels(np.asarray(y_test), names, class_names, f"{name}: y_test")]
    return table_or_images(name, parts, names, clients)


def table_or_images(
    name: str, parts: list[NDArray[Any]], names: tuple[str, ...], clients: NDArray[np.int64] | None
) -> Source:
    """Build the source; the arrays become read-only views, and the columns of a table are numbers."""
    views = [part.view() for part in parts]
    for view in views:
        view.flags.writeable = False
    features = views[0].shape[1] if views[0].ndim == 2 else 0
    columns = tuple(f"x{j}" for j in range(features))
    numeric = np.ones(features, np.bool_) if features else None
    x_train, y_train, x_test, y_test = views
    return Source(name, x_train, y_train, x_test, y_test, names, clients, columns, numeric)


def _test_labels(
    values: NDArray[Any], names: tuple[str, ...], class_names: Sequence[str] | None, where: str
) -> NDArray[np.int64]:
    if class_names is None:  # the names were made from the training labels, so test labels are looked up as text
        values = np.array([str(value) for value in plain_values(values, where)])
    return encode_labels(values, names, where)[0]
