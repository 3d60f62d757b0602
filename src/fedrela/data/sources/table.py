"""Tables with a label column, from CSV, .npy and .npz files: named columns, encoded as numbers.

Columns are not standardised here: that is up to the clients that hold the rows.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_choice
from fedrela.data.cache import PathOrNone
from fedrela.data.checks import first
from fedrela.data.sources.arrays import refuse_rounding
from fedrela.data.sources.base import Source, SourceSpec
from fedrela.data.sources.column_table import ColumnTable, as_numbers, delimiter_hint, missing_cells, read_table
from fedrela.data.sources.file_readers import is_number, named_file
from fedrela.data.sources.labels import TEST_SHARE, encode_clients, encode_labels, stratified, two_spellings
from fedrela.errors import ArgumentError, DataError
from fedrela.options import checked
from fedrela.text import plural

RULES = ("error", "drop", "indicate")
MOST_LABEL_TYPOS = 0.1  # labels are numbers with typos if at most this share of the cells is not a number, or
MOST_TYPO_CELLS = 3  # at most this many, and at least twice as many are numbers; features, if most cells are numbers
LONGEST_LABEL = 200
SIGNS = re.compile(r"[,\s%$€£]")  # in what people write for numbers: 1,000 or 0,5 or 10 %
INDEX_NAMES = ("", "Unnamed: 0")  # what pandas calls an unnamed index, once written and read back


def load(
    root: PathOrNone = None,
    *,
    file: str | None = None,
    test_file: str | None = None,
    label: str | int = "label",
    client: str | int | None = None,
    id: str | int | None = None,
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
    id
        Optionally the column that names every row, such as a patient, all different: ledgers and `keep` use the names.
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
    id = None if id is None else table.find(id, "id")
    excluded = {label, client, id, *(table.find(name, "ignore") for name in ignore)}
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
    ids_train, ids_test = _ids(table, id, in_train)
    return Source(
        f"csv:{path.name}", *parts, names, clients, tuple(features.names), np.array(features.numeric),
        ids_train=ids_train, ids_test=ids_test,
    )  # fmt: skip


def _ids(table: ColumnTable, name: str | None, in_train: NDArray[np.bool_]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of training rows and of test rows, which must all differ; none without a column of them."""
    if name is None:
        return (), ()
    column, first_row = table.columns[name], dict[str, int]()
    if (i := first(missing_cells(column))) is not None:
        raise DataError(f"{table.cell(i, name)}: expected an id in every row")
    numbers = None if isinstance(column, list) else column.tolist()
    if numbers and (i := first(np.array([number != int(number) for number in numbers]))) is not None:
        raise DataError(f"{table.cell(i, name)}: expected text or a whole number as id, got {numbers[i]}")
    ids = [str(value)[:LONGEST_LABEL] for value in (column if numbers is None else map(int, numbers))]
    for i, value in enumerate(ids):
        if (j := first_row.setdefault(value, i)) != i:
            raise DataError(f"{table.cell(i, name)}: {value[:40]!r} is also the id at {table.positions[j]}")
    return tuple(itertools.compress(ids, in_train)), tuple(itertools.compress(ids, ~in_train))


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
            raise DataError(f"{table.path}: column {name!r} looks like the index of a pandas DataFrame; {advice}")


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


SPEC = SourceSpec(
    load, "table", "your own table with a label column, as .csv, .tsv, .npy or .npz", "ROOT, or ROOT/file"
)
