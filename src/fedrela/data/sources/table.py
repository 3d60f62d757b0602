"""Tables with a label column, from CSV and NumPy files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_choice
from fedrela.data.cache import PathOrNone
from fedrela.data.checks import first
from fedrela.data.sources.base import Source, SourceSpec
from fedrela.data.sources.columns import ColumnTable, Features, as_numbers, missing_cells, read_table
from fedrela.data.sources.labels import encode_clients, encode_labels, stratified
from fedrela.data.sources.reading import named_file
from fedrela.errors import ArgumentError, DataError

RULES = ("error", "drop", "indicate")
LONGEST_LABEL = 200


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
    test_share: float = 0.2,
    seed: int = 0,
) -> Source:
    """Return a table as a source.

    A column of numbers stays one column of float32; any other column becomes one column for every value that its
    training rows have. Nothing is standardised here.

    Parameters
    ----------
    root, file
        The table, or its folder and its name there. See `fedrela.data.sources.columns.read_table` for the forms.
    test_file
        A second table beside it as test set; without it `test_share` of every class is held out, by `seed`.
    label, client
        The columns with the class and, where there is one, with the natural client; by name or position.
    categories
        Columns that are categories though they look like numbers.
    ignore
        Columns to leave out.
    missing
        What an empty cell, NaN, NA, N/A, null or ? does: "error" names its place; "drop" leaves the row out;
        "indicate" writes 0 and adds a column that says so (a category gets a value of its own). A missing label or
        client is always an error.
    max_categories
        More values than this in one category are an error, since they hint at a typing mistake among numbers.
    header, delimiter
        Form of a CSV file; the delimiter is a comma, and a tab in .tsv files.
    """
    check_choice("missing", missing, RULES)
    path = named_file("csv", root, file, "the table")
    table = read_table(path, header, delimiter)
    in_train = np.ones(len(table), np.bool_)
    if test_file is not None:
        other = read_table(named_file("csv", path.parent, test_file, "the test table"), header, delimiter)
        in_train = np.arange(len(table) + len(other)) < len(table)
        table = table.followed_by(other)
    label = table.find(label, "label")
    client = None if client is None else table.find(client, "client")
    left_out = {label, client, *(table.find(name, "ignore") for name in ignore)}
    columns = [name for name in table.columns if name not in left_out]
    if not columns:
        raise ArgumentError(f"{path}: no column is left as a feature{table.delimiter_hint()}")
    codes = {table.find(name, "categories") for name in categories}
    if missing == "drop":
        absent = np.any([missing_cells(table.columns[name]) for name in columns], axis=0)
        if absent.all():
            raise DataError(f"{path}: every row has a missing cell; nothing is left")
        table, in_train = table.take(np.flatnonzero(~absent)), in_train[~absent]
    y, names = encode_labels(_texts(table, label), None, f"{path}: label")
    if test_file is None:
        in_train[stratified(y, test_share, seed)[1]] = False
    _check_classes(table, y, in_train, names)
    features = Features(in_train)
    for name in columns:
        _add_feature(features, table, name, name in codes, missing, max_categories)
    clients = None if client is None else encode_clients(_texts(table, client), f"{path}: client")[in_train]
    x, test = features.matrix(), ~in_train
    numeric = np.array(features.numeric)
    parts = (x[in_train], y[in_train], x[test], y[test])
    return Source(f"csv:{path.name}", *parts, names, clients, tuple(features.names), numeric)


def _texts(table: ColumnTable, name: str) -> NDArray[np.generic]:
    column = table.columns[name]
    if (i := first(missing_cells(column))) is not None:
        raise DataError(f"{table.cell(i, name)}: expected a value in every row")
    if isinstance(column, list):
        for i, cell in enumerate(column):
            if len(cell) > LONGEST_LABEL:
                raise DataError(f"{table.cell(i, name)}: longer than {LONGEST_LABEL} characters")
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
    absent = missing_cells(column)
    if absent.any() and missing == "error":
        cell = table.cell(np.argmax(absent), name)
        raise DataError(f"{cell}: the cell is missing; fill it, or set missing to drop or indicate")
    numbers = as_numbers(column, absent)
    if is_code or isinstance(numbers, int):
        found = len(set(column if isinstance(column, list) else column.tolist()))
        if found > max_categories:
            hint = f"{found} different values, more than max_categories = {max_categories}"
            if not isinstance(numbers, int):
                raise DataError(f"{table.path}: column {name[:40]!r}: {hint}")
            text = str(column[numbers])[:40]
            raise DataError(f"{table.cell(numbers, name)}: {text!r} is no number, and it has {hint}")
        features.add_category(
            name, ["missing" if gone else str(cell) for cell, gone in zip(column, absent, strict=True)]
        )
        return
    if (i := first(~(np.abs(numbers) <= np.finfo(np.float32).max))) is not None:
        raise DataError(f"{table.cell(i, name)}: {numbers[i]} is not finite as a 32-bit number")
    features.add(name, True, numbers)
    if absent.any():
        features.add(f"{name} missing", False, absent)


SPEC = SourceSpec(
    load, "table", "your own table with a label column, as .csv, .tsv, .npy or .npz", "ROOT, or ROOT/file"
)
