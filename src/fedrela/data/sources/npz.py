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
from fedrela.data.sources.labels import MOST_CLASSES, check_class_names, check_codes, encode_clients
from fedrela.data.sources.table import Features
from fedrela.errors import ArgumentError, DataError

REQUIRED = ("x_train", "y_train", "x_test", "y_test")
LARGE = 1 << 23  # bytes; images from this size on are mapped from the cache, smaller ones are kept in memory
MOST_EXACT = 1 << 24  # integers from here on may be rounded in float32


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
        names = tuple(map(str, range(check_codes(raw["y_train"], None, _at(archive, "y_train")).max() + 1)))
    y_train, y_test = (check_codes(values, len(names), _at(archive, name)) for name, values in raw.items())
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
    return _one_hot(source, categories) if categories else source


def _one_hot(source: Source, categories: Sequence[int]) -> Source:
    """Return a table source with the columns at these positions encoded as categories."""
    width = source.x_train.shape[1]
    if not all(isinstance(j, int) and 0 <= j < width for j in categories) or len(set(categories)) != len(categories):
        what = f"expected different positions from 0 to {width - 1}, got {categories!r}"
        raise ArgumentError(what, argument="categories")
    rows = np.concatenate([source.x_train, source.x_test])
    train = np.arange(len(rows)) < len(source.x_train)
    features = Features(train)
    for j, name in enumerate(source.feature_names):
        if j in categories:
            if np.abs(rows[:, j]).max(initial=0) >= MOST_EXACT:
                raise DataError(f"{source.name}: column {j}: expected codes below {MOST_EXACT}; number them from 0")
            features.add_category(name, [str(int(code) if code.is_integer() else code) for code in rows[:, j]])
        else:
            features.add(name, True, rows[:, j])
    count = len(features.names)
    if count > 100 * width:
        raise DataError(f"{source.name}: categories: would give {count} columns instead of {width}; are they codes?")
    x, names, numeric = features.matrix(), tuple(features.names), np.array(features.numeric)
    return replace(source, x_train=x[train], x_test=x[~train], feature_names=names, numeric=numeric)


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
