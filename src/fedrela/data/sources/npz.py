"""One .npz file with x_train, y_train, x_test, y_test and class_names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_choice
from fedrela.data.cache import NewArray, PathOrNone, Progress, cached_arrays
from fedrela.data.sources.arrays import (
    FORMS,
    as_samples,
    as_stored,
    channels_first,
    check_bytes,
    image_layout,
    table_or_images,
)
from fedrela.data.sources.base import Source, SourceSpec, refuse_multi_label
from fedrela.data.sources.file_readers import Npz, named_file
from fedrela.data.sources.labels import MOST_CLASSES, check_class_names, check_labels, encode_clients
from fedrela.data.sources.table import one_hot
from fedrela.errors import ArgumentError, DataError

REQUIRED = ("x_train", "y_train", "x_test", "y_test")
LARGE = 1 << 23  # bytes; images from this size on are mapped from the cache, smaller ones are kept in memory


def load(
    root: PathOrNone = None,
    *,
    file: str | None = None,
    layout: str = "auto",
    form: str = "auto",
    categories: Sequence[int] = (),
    cache: PathOrNone = None,
    progress: Progress | None = None,
) -> Source:
    """Return the data set in an .npz file.

    The file has ``x_train y_train x_test y_test`` and optionally ``class_names`` (by default the classes' numbers),
    ``feature_names`` of a table and ``client_train``; other arrays are ignored. Training or test set may be empty.
    Images are uint8, ``(n, height, width)`` or with channels at the position that `layout` says (see
    `fedrela.data.sources.arrays.image_layout`); tables are numbers ``(n, features)``; other arrays, such as time
    series, have any shape, including two dimensions with the form "array", such as token ids; labels are integers from
    0 to C - 1, ``(n,)`` or ``(n, 1)``. `root` is the file, or the folder of `file`. Columns of a table in `categories`
    become one column per code of the training set.
    """
    path = named_file("npz", root, file, "x_train, y_train, x_test and y_test")
    archive = Npz(path)
    for name in REQUIRED:
        if name not in archive.names:
            raise DataError(f"{path}: array {name} is missing; expected {', '.join(REQUIRED)}")
    names = _texts(archive, "class_names")
    raw = {name: _labels(archive, name) for name in ("y_train", "y_test")}
    if not names:
        if not raw["y_train"].size:
            raise DataError(f"{_at(archive, 'y_train')}: expected at least one label, or class_names")
        names = tuple(map(str, range(check_labels(raw["y_train"], None, _at(archive, "y_train")).max() + 1)))
    y_train, y_test = (check_labels(values, len(names), _at(archive, name)) for name, values in raw.items())
    clients = None
    if "client_train" in archive.names:
        clients = encode_clients(archive.read("client_train"), _at(archive, "client_train"))
    header = archive.header("x_train")
    is_table = check_choice("form", form, FORMS) == "auto" and len(header.shape) == 2
    if not is_table and form == "auto" and header.dtype == np.uint8:
        x_train, x_test = _images(archive, layout, cache, progress)
    else:
        x_train, x_test = (
            as_samples(archive.read(name), layout, _at(archive, name), form) for name in ("x_train", "x_test")
        )
    if categories and not is_table:
        raise ArgumentError("applies to tables only; these samples are not a table", argument="categories")
    parts = [x_train, y_train, x_test, y_test]
    source = table_or_images(f"npz:{path.name}", parts, names, clients, is_table=is_table)
    if is_table and "feature_names" in archive.names:
        source = replace(source, feature_names=_texts(archive, "feature_names"))
    return one_hot(source, categories) if categories else source


def _at(archive: Npz, name: str) -> str:
    return f"{archive.path}: {name}"


def _texts(archive: Npz, name: str) -> tuple[str, ...]:
    if name not in archive.names:
        return ()
    where = _at(archive, name)
    header = archive.header(name)
    if len(header.shape) != 1 or not 1 <= header.shape[0] <= MOST_CLASSES or header.dtype.kind not in "US":
        form = f"expected text (C,), C from 1 to {MOST_CLASSES}"
        raise DataError(f"{where}: {form}, got {header.dtype} {header.shape}")
    values = archive.read(name)
    try:
        texts = np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: expected UTF-8, got {error.object[:40]!r}") from None
    return check_class_names([str(text) for text in texts], where)


def _labels(archive: Npz, name: str) -> NDArray[Any]:
    shape, samples = archive.header(name).shape, archive.header(f"x{name[1:]}").shape
    refuse_multi_label(shape, _at(archive, name))
    if len(shape) not in (1, 2):
        raise DataError(f"{_at(archive, name)}: expected labels (n,), got shape {shape}")
    if shape[:1] != samples[:1]:
        what = f"expected one label for each of x{name[1:]}, which has shape {samples}, got {shape[0]}"
        raise DataError(f"{_at(archive, name)}: {what}")
    return archive.read(name).reshape(shape[0])


def _images(
    archive: Npz, layout: str, cache: PathOrNone, progress: Progress | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    headers = {name: archive.header(name) for name in ("x_train", "x_test")}
    layouts = {name: image_layout(header.shape, layout, _at(archive, name)) for name, header in headers.items()}
    for name, header in headers.items():
        check_bytes(header.dtype, _at(archive, name))

    def decode(new: NewArray) -> None:
        for name, header in headers.items():
            sizes = channels_first(np.broadcast_to(np.uint8(0), header.shape), layouts[name]).shape
            archive.read_into(name, as_stored(new(name, sizes, np.uint8), layouts[name]), progress)

    if sum(header.nbytes for header in headers.values()) < LARGE:
        images: dict[str, NDArray[Any]] = {}
        decode(lambda name, shape, dtype: images.setdefault(name, np.empty(shape, dtype)))
    else:
        options = {"reader": "npz", "layouts": layouts}
        images = cached_arrays("npz", [archive.path], options, list(headers), decode, folder=cache, progress=progress)
    return images["x_train"], images["x_test"]


SPEC = SourceSpec(
    load,
    "NumPy arrays",
    "your own x_train, y_train, x_test and y_test, optionally class_names and client_train",
    "ROOT, or ROOT/file",
)
