"""Tables as named columns, from CSV, .npy and .npz files, and columns encoded as numbers.

Nothing is standardised here: that is left to those who hold the rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsInt

import numpy as np
from numpy.typing import NDArray

from fedrela.data.sources.base import Source
from fedrela.data.sources.npy import Npz, read_npy
from fedrela.data.sources.reading import csv_rows
from fedrela.errors import ArgumentError, DataError
from fedrela.text import nearest_hint

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}
OTHER_DELIMITERS = ";\t|,"
MISSING = frozenset(("", "?", "NA", "N/A", "NaN", "nan", "null"))
Column = list[str] | NDArray[Any]


@dataclass(frozen=True)
class ColumnTable:
    """Columns of equal length, text as read or numbers; `positions` says where each row stood."""

    path: Path
    columns: dict[str, Column]
    positions: list[str]

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, rows: NDArray[np.int64]) -> ColumnTable:
        """Return the table of these rows."""
        columns: dict[str, Column] = {
            name: [column[i] for i in rows] if isinstance(column, list) else column[rows]
            for name, column in self.columns.items()
        }
        return ColumnTable(self.path, columns, [self.positions[i] for i in rows])

    def followed_by(self, other: ColumnTable) -> ColumnTable:
        """Return the rows of both tables, which must have the same columns."""
        if set(self.columns) != set(other.columns):
            odd = min(set(self.columns) ^ set(other.columns))
            raise DataError(f"{other.path}: its columns differ from those of {self.path}: {odd[:40]!r} is in one only")
        columns = {name: _join(self.columns[name], other.columns[name]) for name in self.columns}
        return ColumnTable(self.path, columns, self.positions + other.positions)

    def cell(self, row: SupportsInt, name: str) -> str:
        """Return where a cell stood, for messages."""
        return f"{self.positions[int(row)]}: column {name[:40]!r}"

    def delimiter_hint(self) -> str:
        """Return what to try where all columns of a text seem to be one, or nothing."""
        return _delimiter_hint(list(self.columns)) if self.path.suffix.lower() in DELIMITERS else ""

    def find(self, wanted: str | int, option: str) -> str:
        """Return the name of the column that `option` names by name or by position."""
        names = list(self.columns)
        if isinstance(wanted, int):
            if not -len(names) <= wanted < len(names):
                raise ArgumentError(f"{self.path} has {len(names)} columns, got position {wanted}", argument=option)
            return names[wanted]
        if wanted in self.columns:
            return wanted
        has = f"; it has {', '.join(name[:40] for name in names[:8])!r}"
        hint = self.delimiter_hint() or nearest_hint(wanted, names) or has
        raise ArgumentError(f"{self.path} has no column {wanted!r}{hint}", argument=option)


def read_table(path: Path, header: bool, delimiter: str | None) -> ColumnTable:
    """Read a table by its suffix.

    CSV files have names in the first line, or with `header` False the names "0", "1" and so on, as the columns of an
    .npy file have. In an .npz file a one-dimensional array is a column, and a two-dimensional array "x" is the columns
    "x.0", "x.1" and so on.
    """
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _from_arrays(path, {"": read_npy(path)})
    if suffix == ".npz":
        archive = Npz(path)
        return _from_arrays(path, {name: archive.read(name) for name in archive.names})
    if suffix not in DELIMITERS:
        raise ArgumentError(f"{path}: expected a .csv, .tsv, .txt, .npy or .npz file", argument="file")
    return _from_text(path, header, DELIMITERS[suffix] if delimiter is None else delimiter)


def _from_text(path: Path, header: bool, delimiter: str) -> ColumnTable:
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ArgumentError(f"expected one character, got {delimiter!r}", argument="delimiter")
    rows = list(csv_rows(path, delimiter))
    first = rows[0][1] if rows else []
    names = [name.strip() if header else str(j) for j, name in enumerate(first)]
    _check_names(path, names)
    for line, row in rows:
        if len(row) != len(names):
            what = f"expected {len(names)} columns as in the first line, got {len(row)}"
            raise DataError(f"{path}:{line}: {what}{_delimiter_hint(names)}")
    rows = rows[1:] if header else rows
    if not rows:
        raise DataError(f"{path}: holds no row")
    columns: dict[str, Column] = {name: [row[j].strip() for _, row in rows] for j, name in enumerate(names)}
    return ColumnTable(path, columns, [f"{path}:{line}" for line, _ in rows])


def _from_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> ColumnTable:
    columns: dict[str, Column] = {}
    for name, array in arrays.items():
        if not array.size:  # it may declare any number of columns
            raise DataError(f"{path}: {name or 'array'}: expected at least one value, got shape {array.shape}")
        if array.ndim == 1 and name:
            columns[name] = _column(array)
        elif array.ndim == 2:
            prefix = f"{name}." if name else ""
            columns |= {f"{prefix}{j}": _column(array[:, j]) for j in range(array.shape[1])}
        else:
            raise DataError(f"{path}: {name or 'array'}: expected a table or a column, got shape {array.shape}")
    _check_names(path, list(columns))
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise DataError(f"{path}: expected columns of one length, at least 1, got {sorted(lengths)[:5]}")
    return ColumnTable(path, columns, [f"{path}: row {i}" for i in range(lengths.pop())])


def _delimiter_hint(names: list[str]) -> str:
    if len(names) != 1:
        return ""
    mark = next((mark for mark in OTHER_DELIMITERS if mark in names[0]), None)
    return f"; its only column is {names[0][:40]!r}: set the option delimiter to {mark!r}" if mark else ""


def _check_names(path: Path, names: Sequence[str]) -> None:
    if not names:
        raise DataError(f"{path}: holds no column")
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(f"{path}: two columns have the name {twice[:40]!r}")


def _column(values: NDArray[Any]) -> Column:
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    return [text.strip() for text in values.tolist()] if values.dtype.kind == "U" else values


def _join(first: Column, second: Column) -> Column:
    if isinstance(first, list) or isinstance(second, list):
        return [str(value) for part in (first, second) for value in part]
    return np.concatenate([first, second])


class Features:
    """Encoded columns, gathered one after the other; `train` says which rows are training rows."""

    def __init__(self, train: NDArray[np.bool_]) -> None:
        self.train = train
        self.names: list[str] = []
        self.numeric: list[bool] = []
        self.columns: list[NDArray[np.float32]] = []

    def add(self, name: str, numeric: bool, column: NDArray[Any]) -> None:
        """Add one column."""
        self.names.append(name)
        self.numeric.append(numeric)
        self.columns.append(column.astype(np.float32))

    def add_category(self, name: str, values: list[str]) -> None:
        """Add one column for every value of the training rows; a value that only test rows have is all zeros."""
        number: dict[str, int] = {}
        codes = np.array([number.setdefault(value, len(number)) for value in values])
        known = {values[i] for i in np.flatnonzero(self.train).tolist()}
        for value in sorted(known):
            self.add(f"{name}={value}", False, codes == number[value])

    def matrix(self) -> NDArray[np.float32]:
        """Return all columns side by side."""
        return np.stack(self.columns, axis=1)


def missing_cells(column: Column) -> NDArray[np.bool_]:
    """Return which cells are missing: NaN, an empty text, or one of a few usual signs."""
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
        what = f"expected different positions from 0 to {width - 1}, got {categories!r}"
        raise ArgumentError(what, argument="categories")
    rows = np.concatenate([source.x_train, source.x_test])
    train = np.arange(len(rows)) < len(source.x_train)
    features = Features(train)
    for j, name in enumerate(source.feature_names):
        if j in categories:
            features.add_category(name, [f"{code:g}" for code in rows[:, j].tolist()])
        else:
            features.add(name, True, rows[:, j])
    count = len(features.names)
    if count > 100 * width:
        raise DataError(f"{source.name}: categories: {count} columns would come of {width}; are they codes?")
    x, names, numeric = features.matrix(), tuple(features.names), np.array(features.numeric)
    return dataclasses.replace(source, x_train=x[train], x_test=x[~train], feature_names=names, numeric=numeric)
