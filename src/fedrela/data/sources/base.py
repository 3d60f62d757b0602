"""What every data source returns (`Source`), and its entry in the registry (`SourceSpec`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrela.data.cache import PathOrNone
from fedrela.data.checks import repeated
from fedrela.errors import DataError
from fedrela.options import Option, options_from
from fedrela.text import shown

COMMON = ("root", "cache", "progress")  # parameters of loaders that are not options of a source
TEXTS = ("class_names", "feature_names", "ids_train", "ids_test")


@dataclass(frozen=True, eq=False)
class Source:
    """A data set before imbalance and partition.

    Attributes
    ----------
    name
        Where it comes from, for messages and manifests.
    x_train, x_test
        Images as uint8 ``(n, channels, height, width)``, possibly memory-mapped and read-only; tables as float32
        ``(n, features)``; or arrays of any shape: float32 (images of floats, time series), or int64 (token ids).
    y_train, y_test
        Labels, int64 from 0 to C - 1.
    class_names
        One name per class, C in all.
    client_train
        A natural client id for every training sample (a hospital, a writer), or None.
    feature_names
        Names of a table's columns; empty for images.
    numeric
        Which of a table's columns are numbers to standardise, ``(features,)`` booleans (encoded categories are not);
        None for images.
    pixel_max
        The largest value that a pixel can have, not the largest in the data.
    ids_train, ids_test
        A name for every sample (a patient, a file), all different; empty if they have none. Ledgers name samples so.

    Examples
    --------
    >>> x, y = np.zeros((4, 2), np.float32), np.array([0, 0, 0, 1])
    >>> source = Source("clinic", x, y, x, y, class_names=("healthy", "ill"))
    >>> source.num_classes, source.is_image
    (2, False)
    """

    name: str
    x_train: NDArray[Any]
    y_train: NDArray[np.int64]
    x_test: NDArray[Any]
    y_test: NDArray[np.int64]
    class_names: tuple[str, ...]
    client_train: NDArray[np.int64] | None = None
    feature_names: tuple[str, ...] = ()
    numeric: NDArray[np.bool_] | None = None
    pixel_max: int = 255
    ids_train: tuple[str, ...] = ()
    ids_test: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_source_arrays(self)
        for key in TEXTS:  # a list could change after the check
            object.__setattr__(self, key, tuple(getattr(self, key)))

    @property
    def num_classes(self) -> int:
        """Return C."""
        return len(self.class_names)

    @property
    def encoded(self) -> list[str]:
        """Return the names of a table's columns that are not numbers: categories, one per value, and missing cells."""
        if self.numeric is None or not self.feature_names:
            return []
        return [name for name, number in zip(self.feature_names, self.numeric, strict=True) if not number]

    @property
    def is_image(self) -> bool:
        """Whether samples are images (uint8, channels first) and not table rows or other arrays."""
        return self.x_train.ndim == 4 and self.x_train.dtype == np.uint8


@dataclass(frozen=True)
class RemoteFile:
    """A file to download: its URL, and its size in bytes and SHA-256 as published."""

    url: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """Return the name of the file on disk: the last component of its URL."""
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Download:
    """What ``fedrela data fetch`` downloads for a source: files, or one archive, which is unpacked beside itself.

    `folder` is the one inside the archive; `path` is where the files go, below the root folder of all data.
    """

    files: tuple[RemoteFile, ...]
    folder: str | None = None
    path: str = "."


def archive(url: str, size: int, sha256: str, folder: str) -> Download:
    """Return the download of one archive that contains everything in `folder`."""
    return Download((RemoteFile(url, size, sha256),), folder)


class DataSize(NamedTuple):
    """How large a data set is: training samples, test samples, classes, and the shape of one sample."""

    train: int
    test: int
    classes: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class SourceSpec:
    """A data source as the registry lists it.

    Parameters of `load` beyond `root`, `cache` and `progress` are the source's options, with their types.

    Examples
    --------
    >>> from fedrela.data.sources import SOURCES
    >>> SOURCES["digits"].has_files, SOURCES["digits"].size.classes, SOURCES["cifar10"].has_files
    (False, 10, True)
    """

    load: Callable[..., Source]
    label: str  # the name of the data set
    description: str  # its content, in one line
    files: str  # where they are looked for; ROOT is the folder in the configuration
    download: Download | None = None  # None if the files come from elsewhere
    size: DataSize | None = None  # if it is always the same
    find: Callable[[PathOrNone], Path] | None = None  # returns its folder or raises a `DataError`; None: user's own

    @property
    def has_files(self) -> bool:
        """Whether it is read from files below a root folder."""
        return "root" in inspect.signature(self.load).parameters

    @property
    def options(self) -> dict[str, Option]:
        """Return the source's own options by name."""
        return options_from(self.load, COMMON)


def check_source_arrays(source: Source) -> None:
    """Raise a `DataError` if the arrays of a source do not have the documented form."""
    _check_types(source)
    for part in ("train", "test"):
        _check_part(source, part)
    if source.x_train.dtype != source.x_test.dtype:
        dtypes = f"{source.x_train.dtype} and {source.x_test.dtype}"
        raise DataError(f"{source.name}: training and test samples differ in dtype: {dtypes}")
    if source.x_train.shape[1:] != source.x_test.shape[1:]:
        shapes = f"{source.x_train.shape[1:]} and {source.x_test.shape[1:]}"
        raise DataError(f"{source.name}: training and test samples differ in shape: {shapes}")
    ids, width = source.client_train, source.x_train.shape[1:]
    if ids is not None and (ids.shape != source.y_train.shape or ids.dtype != np.int64):
        expected = f"expected int64 {source.y_train.shape}"
        raise DataError(f"{source.name}: client_train: {expected}, got {ids.dtype} {ids.shape}")
    if source.numeric is not None and (source.numeric.shape != width or source.numeric.dtype != np.bool_):
        raise DataError(f"{source.name}: numeric: expected one boolean per feature, got {source.numeric.shape}")
    _check_ids(source)
    if source.feature_names and (len(source.feature_names),) != width:
        raise DataError(f"{source.name}: feature_names: expected one per feature, got {len(source.feature_names)}")


def _check_ids(source: Source) -> None:
    ids = (*source.ids_train, *source.ids_test)
    lengths = tuple(map(len, (source.ids_train, source.ids_test, source.y_train, source.y_test)))
    if ids and lengths[:2] != lengths[2:]:
        raise DataError(f"{source.name}: ids_train, ids_test: expected {lengths[2:]} ids, got {lengths[:2]}")
    if (twice := repeated(ids)) is not None:
        raise DataError(f"{source.name}: ids_train, ids_test: two samples have the id {shown(twice)}")


def _check_types(source: Source) -> None:
    if not isinstance(source.name, str):
        raise DataError(f"source: name: expected text, got {type(source.name).__name__}")
    for key in ("x_train", "y_train", "x_test", "y_test", "client_train", "numeric"):
        value = getattr(source, key)
        if not isinstance(value, np.ndarray) and not (value is None and key in ("client_train", "numeric")):
            raise DataError(f"{source.name}: {key}: expected a NumPy array, got {type(value).__name__}")
    for key in TEXTS:
        texts = getattr(source, key)
        is_list = isinstance(texts, tuple | list)
        wrong = [f"{type(text).__name__} in it" for text in texts if not isinstance(text, str)] if is_list else []
        if not is_list or wrong:
            got = wrong[0] if wrong else type(texts).__name__
            raise DataError(f"{source.name}: {key}: expected a tuple of strings, got {got}")


def refuse_multi_label(shape: tuple[int, ...], where: str) -> None:
    """Raise if there are several targets per sample."""
    if len(shape) > 1 and shape[1] != 1:
        why = "FedReLa moves a sample from one class to another, so each needs exactly one label"
        raise DataError(f"{where}: multi-label targets of shape {shape} are not supported; {why}")


def _check_part(source: Source, part: str) -> None:
    x, y = getattr(source, f"x_{part}"), getattr(source, f"y_{part}")
    if not ((x.ndim == 4 and x.dtype == np.uint8) or (x.ndim >= 2 and x.dtype in (np.float32, np.int64))):
        form = "uint8 (n, channels, height, width), or float32 or int64 (n, ...)"
        raise DataError(f"{source.name}: x_{part}: expected {form}, got {x.dtype} {x.shape}")
    if x.dtype == np.float32 and not np.isfinite(x.min(initial=0.0) + x.max(initial=0.0)):
        row = int(np.argmin(np.isfinite(x).reshape(len(x), -1).all(axis=1)))
        raise DataError(f"{source.name}: x_{part}: row {row}: expected finite numbers, got nan or inf")
    refuse_multi_label(y.shape, f"{source.name}: y_{part}")
    if y.ndim != 1 or y.dtype != np.int64 or len(y) != len(x):
        raise DataError(f"{source.name}: y_{part}: expected int64 ({len(x)},), got {y.dtype} {y.shape}")
    if y.size and (y.min() < 0 or y.max() >= source.num_classes):
        wrong = y.min() if y.min() < 0 else y.max()
        expected = f"expected labels from 0 to {source.num_classes - 1}" if source.num_classes else "no class is named"
        raise DataError(f"{source.name}: y_{part}: {expected}, got {wrong}")
