"""`check_source`: whether your own data source keeps the contract."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.data.federation import ARRAYS
from fedrela.data.sources.base import Source, check_source_arrays
from fedrela.data.sources.labels import check_class_names
from fedrela.errors import DataError
from fedrela.text import percent

BLOCK_ROWS = 1024


def check_source(load: Callable[[], Source], *, doubled: float = 0.01) -> list[str]:
    """Call a loader without arguments twice, check what it returns, and return the names of all checks.

    The first check that fails raises a `DataError` that starts with its name.

    Parameters
    ----------
    load
        The loader.
    doubled
        It warns if more than this fraction of the test samples equal training samples, byte for byte.

    Examples
    --------
    >>> from fedrela.data.sources import load
    >>> check_source(lambda: load("digits"))[:3]
    ['returns a Source', 'shapes and types', 'not empty']
    """
    first, second = load(), load()
    for name, check in CHECKS.items():
        try:
            check(first, second)
        except DataError as error:
            raise DataError(f"{name}: {error}") from None
    share = doubled_share(first)
    if share > doubled:
        message = f"{first.name}: {percent(share)} of the test samples are also training samples, byte for byte"
        warnings.warn(message, UserWarning, stacklevel=2)
    return [*CHECKS, "training samples in the test set"]


def doubled_share(source: Source) -> float:
    """Return the fraction of test samples that are also training samples, byte for byte."""
    train = set(_row_digests(source.x_train))
    return float(np.mean([digest in train for digest in _row_digests(source.x_test)]))


def _row_digests(x: NDArray[Any]) -> list[bytes]:
    rows: list[bytes] = []
    for start in range(0, len(x), BLOCK_ROWS):
        block = np.ascontiguousarray(x[start : start + BLOCK_ROWS])
        rows += [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in block]
    return rows


def _is_source(first: Source, second: Source) -> None:
    for source in (first, second):
        if not isinstance(source, Source):
            raise DataError(f"expected fedrela.data.sources.Source, got {type(source).__name__}")


def _not_empty(first: Source, second: Source) -> None:
    for name in ("x_train", "x_test"):
        if 0 in getattr(first, name).shape:
            raise DataError(f"{name}: expected at least one sample with values, got shape {getattr(first, name).shape}")


def _class_names(first: Source, second: Source) -> None:
    if first.num_classes < 2:
        raise DataError(f"class_names: expected at least two classes, got {first.num_classes}")
    check_class_names(first.class_names, "class_names")


def _every_class(first: Source, second: Source, part: str) -> None:
    counts = np.bincount(getattr(first, f"y_{part}"), minlength=first.num_classes)
    if not counts.all():
        absent = int(np.argmin(counts))
        raise DataError(f"y_{part}: class {absent} ({first.class_names[absent]}) has no sample")


def _indexing(first: Source, second: Source) -> None:
    """Check that indexing by an array, as shards do, gives those samples in that order, including repeats."""
    for name in ("x_train", "x_test"):
        x = getattr(first, name)
        last = len(x) - 1
        chosen = [last, 0, last // 2, last]
        if not np.array_equal(x[np.array(chosen)], [x[i] for i in chosen]):
            raise DataError(f"{name}: x[indices] does not give the samples at those indices")


def _same_twice(first: Source, second: Source) -> None:
    for name in ("class_names", "feature_names"):
        if getattr(first, name) != getattr(second, name):
            raise DataError(f"{name}: differs between two calls of the loader")
    for name in ARRAYS:
        if not _same_bytes(getattr(first, name), getattr(second, name)):
            raise DataError(f"{name}: differs between two calls of the loader; give its random numbers a fixed seed")


def _same_bytes(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    blocks = range(0, len(one), BLOCK_ROWS)
    return all(one[i : i + BLOCK_ROWS].tobytes() == other[i : i + BLOCK_ROWS].tobytes() for i in blocks)


def _protected(first: Source, second: Source) -> None:
    """Check that writing to a source does not change the next one."""
    for name in ARRAYS:
        one, other = getattr(first, name), getattr(second, name)
        if one is not None and one.flags.writeable and np.may_share_memory(one, other):
            raise DataError(f"{name}: two calls share one writable array; copy it or set flags.writeable = False")


CHECKS: dict[str, Callable[[Source, Source], None]] = {
    "returns a Source": _is_source,
    "shapes and types": lambda first, second: check_source_arrays(first),
    "not empty": _not_empty,
    "class names": _class_names,
    "every class in the training set": partial(_every_class, part="train"),
    "every class in the test set": partial(_every_class, part="test"),
    "indexing": _indexing,
    "the same twice": _same_twice,
    "protected from writing": _protected,
}
