"""Tables as columns of text or numbers, read from CSV, .npy and .npz files: which cells are missing, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsInt

import numpy as np
from numpy.typing import NDArray

from fedrela.data.checks import repeated
from fedrela.data.sources.file_readers import Npz, RowPosition, csv_rows, is_number, read_npy
from fedrela.errors import ArgumentError, DataError
from fedrela.text import nearest_hint

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}
OTHER_DELIMITERS = ";\t|,"
MISSING = frozenset(("", "?", "NA", "N/A", "NaN", "nan", "null"))
MISSING_NUMBER = frozenset(("na", "n/a", "nan", "null", "none", "-"))  # in any case; elsewhere they may be categories
Column = list[str] | NDArray[Any]


@dataclass(frozen=True)
class ColumnTable:
    """Columns of equal length, of text or numbers; `positions` says where each row was in the file."""

    path: Path
    columns: dict[str, Column]
    positions: list[RowPosition]

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, rows: NDArray[np.int64]) -> ColumnTable:
        """Return the table of these rows."""
        columns: dict[str, Column] = {
            name: [column[i] for i in rows] if isinstance(column, list) else column[rows]
            for name, column in self.columns.items()
        }
        return ColumnTable(self.path, columns, [self.positions[i] for i in rows])

    def concatenate(self, other: ColumnTable) -> ColumnTable:
        """Return the rows of both tables, which must have the same columns."""
        if set(self.columns) != set(other.columns):
            name = min(set(self.columns) ^ set(other.columns))
            raise DataError(f"{other.path}: its columns differ from those of {self.path}: {name[:40]!r} is in one only")
        columns = {name: _join(self.columns[name], other.columns[name]) for name in self.columns}
        return ColumnTable(self.path, columns, self.positions + other.positions)

    def cell(self, row: SupportsInt, name: str) -> str:
        """Return the position of a cell, for messages."""
        return f"{self.positions[int(row)]}: column {name[:40]!r}"

    def find(self, column: str | int, option: str) -> str:
        """Return the name of a column that `option` gives by name or by position."""
        names = list(self.columns)
        if isinstance(column, int):
            if not -len(names) <= column < len(names):
                raise ArgumentError(f"{self.path} has {len(names)} columns, got position {column}", argument=option)
            return names[column]
        if column in self.columns:
            return column
        has = f"; it has {', '.join(name[:40] for name in names[:8])!r}"
        hint = delimiter_hint(self.path, names) or nearest_hint(column, names) or has
        raise ArgumentError(f"{self.path} has no column {column!r}{hint}", argument=option)


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
            raise DataError(f"{path}:{line}: {what}{delimiter_hint(path, names)}")
    rows = rows[1:] if header else rows
    if not rows:
        raise DataError(f"{path}: has no rows")
    columns: dict[str, Column] = {name: [row[j].strip() for _, row in rows] for j, name in enumerate(names)}
    return ColumnTable(path, columns, [RowPosition(path, line) for line, _ in rows])


def _from_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> ColumnTable:
    columns: dict[str, Column] = {}
    for name, array in arrays.items():
        if not array.size:  # an empty array may declare any number of columns
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
    return ColumnTable(path, columns, [RowPosition(path, i, "row ") for i in range(lengths.pop())])


def delimiter_hint(path: Path, names: list[str]) -> str:
    """Return advice if all columns of a text file seem to be one, or an empty string."""
    if len(names) != 1 or path.suffix.lower() not in DELIMITERS:
        return ""
    other = next((each for each in OTHER_DELIMITERS if each in names[0]), None)
    return f"; its only column is {names[0][:40]!r}: set the option delimiter to {other!r}" if other else ""


def _check_names(path: Path, names: Sequence[str]) -> None:
    if not names:
        raise DataError(f"{path}: has no columns")
    if (twice := repeated(names)) is not None:
        raise DataError(f"{path}: two columns have the name {twice[:40]!r}")


def _column(values: NDArray[Any]) -> Column:
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    return [text.strip() for text in values.tolist()] if values.dtype.kind == "U" else values


def _join(first: Column, second: Column) -> Column:
    if isinstance(first, list) or isinstance(second, list):
        return [str(value) for part in (first, second) for value in part]
    return np.concatenate([first, second])


def missing_cells(column: Column, may_be_numbers: bool = False) -> NDArray[np.bool_]:
    """Return which cells are missing: NaN, empty text, one of `MISSING`, or among numbers of `MISSING_NUMBER`."""
    if isinstance(column, list):
        absent = np.array([cell in MISSING for cell in column])
        words = np.array([cell.casefold() in MISSING_NUMBER for cell in column]) & ~absent
        if may_be_numbers and words.any():
            others = [is_number(column[i]) for i in np.flatnonzero(~absent & ~words).tolist()]
            absent |= words & (2 * sum(others) > len(others))
        return absent
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), np.bool_)


def as_numbers(column: Column, missing: NDArray[np.bool_]) -> NDArray[np.float64] | int:
    """Return the column as numbers, missing ones as 0, or the first row that is not a number."""
    if not isinstance(column, list):
        return np.where(missing, 0.0, column)
    numbers = np.zeros(len(column))
    for i in np.flatnonzero(~missing):
        if not is_number(column[i]):
            return int(i)
        numbers[i] = float(column[i])
    return numbers
