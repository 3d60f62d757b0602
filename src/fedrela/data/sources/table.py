"""Tables with a label column, from CSV, .npy and .npz files: named columns, encoded as numbers.

Columns are not standardised here: that is up to the clients that hold the rows.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsInt

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_choice
from fedrela.data.cache import PathOrNone
from fedrela.data.checks import first
from fedrela.data.sources.arrays import refuse_rounding
from fedrela.data.sources.base import Source, SourceSpec
from fedrela.data.sources.file_readers import Npz, RowPosition, csv_rows, is_number, named_file, read_npy
from fedrela.data.sources.labels import TEST_SHARE, encode_clients, encode_labels, stratified, two_spellings
from fedrela.errors import ArgumentError, DataError
from fedrela.options import checked
from fedrela.text import nearest_hint, plural

RULES = ("error", "drop", "indicate")
MOST_LABEL_TYPOS = 0.1  # labels are numbers with typos if at most this share of the cells is not a number, or
MOST_TYPO_CELLS = 3  # at most this many, and at least twice as many are numbers; features, if most cells are numbers
LONGEST_LABEL = 200
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}
OTHER_DELIMITERS = ";\t|,"
MISSING = frozenset(("", "?", "NA", "N/A", "NaN", "nan", "null"))
MISSING_NUMBER = frozenset(("na", "n/a", "nan", "null", "none", "-"))  # in any case; elsewhere they may be categories
SIGNS = re.compile(r"[,\s%$€£]")  # in what people write for numbers: 1,000 or 0,5 or 10 %
INDEX_NAMES = ("", "Unnamed: 0")  # what pandas calls an unnamed index, once written and read back
Column = list[str] | NDArray[Any]


def load(
    root: PathOrNone = None,
    *,
    file: str | None = None,
    test_file: str | None = None,
    label: str | int = "label",
    client: str | int | None = None,
    categories: Sequence[str | int] = (),
    ignore: Sequence[str | int] = (),
    missing: str = "error",
    max_categories: int = 100,
    header: bool = True,
    delimiter: str | None = None,
    test_share: float = TEST_SHARE.default,
    seed: int = 0,
) -> Source:
    """Return a table as a source.

    A column of numbers stays one column of float32; any other column, and those in `categories`, becomes one column per
    value in its training rows. A column of numbers with a few other cells is an error, unless it is in `categories`; so
    are such labels and clients. Columns are not standardised here. They are given by name or position.

    Parameters
    ----------
    root, file, header, delimiter
        The file, or its folder and its name in it; see `read_table` for the formats.
    test_file
        A second table beside it as test set; without it `test_share` of every class is held out, by `seed`. With a
        share of 0 or 1 all rows, also those of a second table, are training rows, or all are test rows.
    label, client, ignore
        The column of the class, optionally the column of the natural client, and columns to ignore.
    missing
        What to do with a missing cell (empty, NaN, NA, N/A, null or ?; among numbers also none and -, in upper or
        lower case): "error" raises an error with its position; "drop" drops the row, with a warning; "indicate"
        writes the column's mean over the training rows and adds the column "NAME missing" (a category gets its own
        value). A missing label or client is always an error.
    max_categories
        More values than this in one category are an error, since they suggest a typo among numbers.
    """
    check_choice("missing", missing, RULES)
    checked(TEST_SHARE, test_share)
    path = named_file("csv", root, file, "the table")
    table = read_table(path, header, delimiter)
    in_train = np.ones(len(table), np.bool_)
    if test_file is not None:
        other = read_table(named_file("csv", path.parent, test_file, "the test table"), header, delimiter)
        in_train = np.arange(len(table) + len(other)) < len(table)
        table = table.concatenate(other)
    label = table.find(label, "label")
    client = None if client is None else table.find(client, "client")
    excluded = {label, client, *(table.find(name, "ignore") for name in ignore)}
    columns = [name for name in table.columns if name not in excluded]
    if not columns:
        raise ArgumentError(f"{path}: no column is left as a feature{delimiter_hint(path, list(table.columns))}")
    _refuse_index(table, columns)
    codes = {table.find(name, "categories") for name in categories}
    if missing == "drop":
        whole = _whole_rows(table, columns, codes)
        table, in_train = table.take(whole), in_train[whole]
    y, names = encode_labels(_texts(table, label, label in codes), None, f"{path}: label")
    is_split = 0 < test_share < 1
    if test_file is None or not is_split:
        in_train = np.isin(np.arange(len(y)), stratified(y, test_share, seed)[0])
    if is_split:
        _check_classes(table, y, in_train, names)
    features = Features(in_train if is_split else np.ones_like(in_train))
    for name in columns:
        _add_feature(features, table, name, name in codes, missing, max_categories)
    clients = (
        None if client is None else encode_clients(_texts(table, client, client in codes), f"{path}: client")[in_train]
    )
    x, test = features.matrix(), ~in_train
    parts = (x[in_train], y[in_train], x[test], y[test])
    return Source(f"csv:{path.name}", *parts, names, clients, tuple(features.names), np.array(features.numeric))


def _whole_rows(table: ColumnTable, columns: Sequence[str], codes: Collection[str]) -> NDArray[np.int64]:
    """Return the rows without a missing cell, and warn how many others there are."""
    absent = np.any([missing_cells(table.columns[name], name not in codes) for name in columns], axis=0)
    if absent.all():
        raise DataError(f"{table.path}: every row has a missing cell; nothing is left")
    if absent.any():
        found = f"{np.count_nonzero(absent):,} of {plural(len(table), 'row')}"
        warnings.warn(f"{table.path}: {found} left out, since cells are missing", stacklevel=3)
    return np.flatnonzero(~absent)


def _refuse_index(table: ColumnTable, columns: Sequence[str]) -> None:
    for position, name in enumerate(table.columns):
        if name in INDEX_NAMES and name in columns:
            advice = f"leave it out with ignore = [{position}]"
            raise DataError(f"{table.path}: column {name!r} seems to be the index of a frame; {advice}")


def _texts(table: ColumnTable, name: str, are_names: bool) -> NDArray[np.generic]:
    column = table.columns[name]
    if (i := first(missing_cells(column))) is not None:
        raise DataError(f"{table.cell(i, name)}: expected a value in every row")
    if isinstance(column, list):
        for i, cell in enumerate(column):
            if len(cell) > LONGEST_LABEL:
                raise DataError(f"{table.cell(i, name)}: longer than {LONGEST_LABEL} characters")
        if (pair := two_spellings(column)) is not None:
            i, j = pair
            what = f"expected one spelling of a number, got {column[i]!r} and, at {table.positions[j]}, {column[j]!r}"
            raise DataError(f"{table.cell(i, name)}: {what}")
        if not are_names:
            most = max(MOST_LABEL_TYPOS * len(column), min(MOST_TYPO_CELLS, len(column) // 3))
            _refuse_nearly_numeric(table, name, np.zeros(len(column), np.bool_), most)
    return np.asarray(column)


def _check_classes(table: ColumnTable, y: NDArray[np.int64], in_train: NDArray[np.bool_], names: Sequence[str]) -> None:
    if (i := first(~np.isin(y, y[in_train]))) is not None:
        raise DataError(f"{table.positions[i]}: class {names[y[i]]!r} has no training sample")
    if in_train.all():
        raise DataError(f"{table.path}: no test sample is left: a class needs two samples to have one held out")


def _add_feature(
    features: Features, table: ColumnTable, name: str, is_code: bool, missing: str, max_categories: int
) -> None:
    column = table.columns[name]
    absent = missing_cells(column, not is_code)
    if absent.any() and missing == "error":
        cell = table.cell(np.argmax(absent), name)
        raise DataError(f"{cell}: the cell is missing; fill it, or set missing to drop or indicate")
    numbers = as_numbers(column, absent)
    if isinstance(numbers, int) and not is_code:
        _refuse_nearly_numeric(table, name, absent, (int(np.count_nonzero(~absent)) - 1) // 2)
        _refuse_commas_and_signs(table, name, absent)
    if is_code or isinstance(numbers, int):
        present = itertools.compress(column if isinstance(column, list) else column.tolist(), ~absent)
        count = len(set(present)) + bool(absent.any())
        if count > max_categories:
            hint = f"{count} different values, more than max_categories = {max_categories}"
            if not isinstance(numbers, int):
                raise DataError(f"{table.path}: column {name[:40]!r}: {hint}")
            text = str(column[numbers])[:40]
            raise DataError(f"{table.cell(numbers, name)}: {text!r} is not a number, and the column has {hint}")
        values = ["missing" if is_absent else str(cell) for cell, is_absent in zip(column, absent, strict=True)]
        features.add_category(name, values)
        return
    if (i := first(~(np.abs(numbers) <= np.finfo(np.float32).max))) is not None:
        raise DataError(f"{table.cell(i, name)}: {numbers[i]} is not finite as a 32-bit number")
    known = numbers[features.train & ~absent]
    features.add(name, True, np.where(absent, known.mean() if known.size else 0, numbers))
    if absent.any():
        features.add(f"{name} missing", False, absent)


def _refuse_nearly_numeric(table: ColumnTable, name: str, absent: NDArray[np.bool_], most: float) -> None:
    """Raise if all but `most` cells of a column are numbers: the others are typos, not categories."""
    column = table.columns[name]
    typos = [i for i in np.flatnonzero(~absent).tolist() if not is_number(str(column[i]))]
    if not 0 < len(typos) <= most:
        return
    cells = ", ".join(f"{str(column[i])[:40]!r} at {table.positions[i].in_file}" for i in typos[:3])
    more = f" and {len(typos) - 3} more" if len(typos) > 3 else ""
    advice = f"correct them, or name the column in categories = [{name[:40]!r}]"
    what = f"{len(typos)} of {len(column)} cells are not numbers: {cells}{more}"
    raise DataError(f"{table.cell(typos[0], name)}: {what}; {advice}")


def _refuse_commas_and_signs(table: ColumnTable, name: str, absent: NDArray[np.bool_]) -> None:
    """Raise if a column would be numbers without commas, spaces, and signs of per cent and currency."""
    column = table.columns[name]
    plain = [SIGNS.sub("", cell) for cell in column] if isinstance(column, list) else column
    if not isinstance(as_numbers(plain, absent), int):
        i = next(i for i in np.flatnonzero(~absent).tolist() if not is_number(column[i]))
        advice = f"write plain numbers with decimal points, or name the column in categories = [{name[:40]!r}]"
        raise DataError(f"{table.cell(i, name)}: {column[i][:40]!r} is not a plain number; {advice}")


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
    if len(set(names)) != len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
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
    """Encoded columns, added one after the other; `train` says which rows are training rows."""

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
        refuse_rounding(column, self.columns[-1], f"column {name[:40]!r}")

    def add_category(self, name: str, values: list[str]) -> None:
        """Add one column per value of the training rows; a value that only test rows have is all zeros."""
        code: dict[str, int] = {}
        codes = np.array([code.setdefault(value, len(code)) for value in values])
        for value in sorted({values[i] for i in np.flatnonzero(self.train).tolist()}):
            self.add(f"{name}={value}", False, codes == code[value])

    def matrix(self) -> NDArray[np.float32]:
        """Return all columns side by side."""
        return np.stack(self.columns, axis=1)


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


SPEC = SourceSpec(
    load, "table", "your own table with a label column, as .csv, .tsv, .npy or .npz", "ROOT, or ROOT/file"
)
