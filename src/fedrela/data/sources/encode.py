"""Columns of a table as numbers: numbers stay, a category becomes one column a value.

Nothing here depends on more than which values occur: standardising is left to those who hold the rows, who can compute
what it needs themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.data.sources.base import Source
from fedrela.data.sources.columns import Column
from fedrela.errors import ArgumentError, DataError

MISSING = frozenset(("", "?", "NA", "N/A", "NaN", "nan", "null"))


class Features:
    """Encoded columns, gathered one after the other."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.numeric: list[bool] = []
        self.columns: list[NDArray[np.float32]] = []

    def add(self, name: str, numeric: bool, column: NDArray[Any]) -> None:
        """Add one column."""
        self.names.append(name)
        self.numeric.append(numeric)
        self.columns.append(column.astype(np.float32))

    def add_category(self, name: str, values: Sequence[Any], train: NDArray[np.bool_]) -> None:
        """Add one column for every value of the training rows; a value that only test rows have is all zeros."""
        position: dict[Any, list[int]] = {
            value: [] for value in sorted({values[i] for i in np.flatnonzero(train).tolist()})
        }
        for i, value in enumerate(values):
            if value in position:
                position[value].append(i)
        for value, rows in position.items():
            column = np.zeros(len(values), np.float32)
            column[rows] = 1
            self.add(f"{name}={value}", False, column)

    def matrix(self) -> NDArray[np.float32]:
        """Return all columns side by side."""
        return np.stack(self.columns, axis=1)


def missing_cells(column: Column) -> NDArray[np.bool_]:
    """Return which cells say nothing: NaN, an empty text, or one of a few usual signs."""
    if isinstance(column, list):
        return np.array([cell in MISSING for cell in column])
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), np.bool_)


def as_numbers(column: Column, missing: NDArray[np.bool_]) -> NDArray[np.float64] | int:
    """Return the column as numbers, 0 where they are missing, or the first row that is not a number."""
    if not isinstance(column, list):
        return np.where(missing, 0.0, column)
    numbers = np.zeros(len(column))
    for i in np.flatnonzero(~missing):
        try:
            numbers[i] = float("no number" if "_" in column[i] else column[i])  # float() reads 1_0 as 10
        except ValueError:
            return int(i)
    return numbers


def one_hot(source: Source, categories: Sequence[int]) -> Source:
    """Return a table source with the columns at these positions encoded as categories."""
    width = source.x_train.shape[1]
    if not all(isinstance(j, int) and 0 <= j < width for j in categories) or len(set(categories)) != len(categories):
        raise ArgumentError(f"categories: expected different positions from 0 to {width - 1}, got {categories!r}")
    rows = np.concatenate([source.x_train, source.x_test])
    train = np.arange(len(rows)) < len(source.x_train)
    features = Features()
    for j, name in enumerate(source.feature_names):
        if j in categories:
            features.add_category(name, [f"{code:g}" for code in rows[:, j].tolist()], train)
        else:
            features.add(name, True, rows[:, j])
    if len(features.names) > 100 * width:
        raise DataError(
            f"{source.name}: categories: {len(features.names)} columns would come of {width}; are they codes?"
        )
    encoded = features.matrix()
    return dataclasses.replace(
        source,
        x_train=encoded[train],
        x_test=encoded[~train],
        feature_names=tuple(features.names),
        numeric=np.array(features.numeric),
    )
