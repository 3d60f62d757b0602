"""What every data source gives: arrays of one plain form, whatever the files look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import DataError


@dataclass(frozen=True, eq=False)
class Source:
    """A data set before imbalance and partition.

    Attributes
    ----------
    name
        Where it comes from, for messages and manifests.
    x_train, x_test
        Images as uint8 ``(n, channels, height, width)``, possibly memory-mapped and read-only, or tables as float32
        ``(n, features)``.
    y_train, y_test
        Labels, int64 from 0 to C - 1.
    class_names
        One name a class; their number is C.
    client_train
        A natural client id for every training sample (a hospital, a writer), or None.
    feature_names
        Names of a table's columns; empty for images.
    numeric
        Which of a table's columns are numbers to standardise, ``(features,)`` booleans (encoded categories are not);
        None for images.
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

    def __post_init__(self) -> None:
        check_source_arrays(self)

    @property
    def num_classes(self) -> int:
        """Return C."""
        return len(self.class_names)

    @property
    def is_image(self) -> bool:
        """Whether samples are pictures (uint8, channels first) and not table rows."""
        return self.x_train.ndim == 4


def check_source_arrays(source: Source) -> None:
    """Raise a `DataError` where the arrays of a source do not have the form that `Source` promises."""
    for part in ("train", "test"):
        x, y = getattr(source, f"x_{part}"), getattr(source, f"y_{part}")
        if not ((x.ndim == 4 and x.dtype == np.uint8) or (x.ndim == 2 and x.dtype == np.float32)):
            form = "uint8 (n, channels, height, width) or float32 (n, features) is needed"
            raise DataError(f"{source.name}: x_{part}: {form}, got {x.dtype} {x.shape}")
        if y.ndim != 1 or y.dtype != np.int64 or len(y) != len(x):
            raise DataError(f"{source.name}: y_{part}: int64 ({len(x)},) is needed, got {y.dtype} {y.shape}")
        if y.size and (y.min() < 0 or y.max() >= source.num_classes):
            raise DataError(f"{source.name}: y_{part}: labels from 0 to {source.num_classes - 1} are needed")
    if source.x_train.shape[1:] != source.x_test.shape[1:]:
        shapes = f"{source.x_train.shape[1:]} and {source.x_test.shape[1:]}"
        raise DataError(f"{source.name}: training and test samples differ in shape: {shapes}")
    ids = source.client_train
    if ids is not None and (ids.shape != source.y_train.shape or ids.dtype != np.int64):
        raise DataError(
            f"{source.name}: client_train: int64 {source.y_train.shape} is needed, got {ids.dtype} {ids.shape}"
        )
    width = source.x_train.shape[1:]
    if source.numeric is not None and (source.numeric.shape != width or source.numeric.dtype != np.bool_):
        raise DataError(f"{source.name}: numeric: a boolean a feature is needed, got {source.numeric.shape}")
    if source.feature_names and (len(source.feature_names),) != width:
        raise DataError(f"{source.name}: feature_names: one a feature is needed, got {len(source.feature_names)}")
