"""Tables with a label column, from CSV and NumPy files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedrela.data.sources.base import Source, SourceSpec
from fedrela.data.sources.columns import Column, ColumnTable, Features, as_numbers, missing_cells, read_table
from fedrela.data.sources.labels import encode_clients, encode_labels, stratified
from fedrela.data.sources.reading import named_file
from fedrela.errors import ArgumentError, DataError
from fedrela.text import not_one_of

RULES = ("error", "drop", "indicate")
LONGEST_LABEL = 200


@dataclass(frozen=True)
class Roles:
    """Which column is what, and what to do with a missing cell."""

    label: str
    client: str | None
    categories: frozenset[str]
    features: tuple[str, ...]
    missing: str
    max_categories: int


def load(
    root: str | Path | None = None,
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
    path = named_file("csv", root, file, "the table")
    table = read_table(path, header, delimiter)
    in_train = np.ones(len(table), np.bool_)
    if test_file is not None:
        other = read_table(named_file("csv", path.parent, test_file, "the test table"), header, delimiter)
        in_train = np.arange(len(table) + len(other)) < len(table)
        table = table.followed_by(other)
    roles = _roles(table, label, client, categories, ignore, missing, max_categories)
    if missing == "drop":
        table, in_train = _without_missing(table, in_train, roles)
    y, names = encode_labels(_texts(table, roles.label), None, f"{path}: label")
    if test_file is None:
        in_train[stratified(y, test_share, seed)[1]] = False
    _check_classes(table, y, in_train, names)
    return _source(table, y, names, in_train, roles)


def _roles(
    table: ColumnTable,
    label: str | int,
    client: str | int | None,
    categories: Sequence[str | int],
    ignore: Sequence[str | int],
    missing: str,
    max_categories: int,
) -> Roles:
    if missing not in RULES:
        raise ArgumentError(not_one_of(missing, RULES), argument="missing")
    label_name = table.find(label, "label")
    client_name = None if client is None else table.find(client, "client")
    ignored = {table.find(name, "ignore") for name in ignore}
    features = tuple(name for name in table.columns if name not in ignored | {label_name, client_name})
    if not features:
        raise ArgumentError(f"{table.path}: no column is left as a feature{table.delimiter_hint()}")
    kinds = frozenset(table.find(name, "categories") for name in categories)
    return Roles(label_name, client_name, kinds, features, missing, max_categories)


def _without_missing(
    table: ColumnTable, in_train: NDArray[np.bool_], roles: Roles
) -> tuple[ColumnTable, NDArray[np.bool_]]:
    absent = np.any([missing_cells(table.columns[name]) for name in roles.features], axis=0)
    if absent.all():
        raise DataError(f"{table.path}: every row has a missing cell; nothing is left")
    return table.take(np.flatnonzero(~absent)), in_train[~absent]


def _texts(table: ColumnTable, name: str) -> NDArray[np.generic]:
    column = table.columns[name]
    absent = missing_cells(column)
    if absent.any():
        raise DataError(
            f"{table.positions[int(np.argmax(absent))]}: column {name[:40]!r}: expected a value in every row"
        )
    if isinstance(column, list):
        for cell, place in zip(column, table.positions, strict=True):
            if len(cell) > LONGEST_LABEL:
                raise DataError(f"{place}: column {name[:40]!r}: longer than {LONGEST_LABEL} characters")
    return np.asarray(column)


def _check_classes(table: ColumnTable, y: NDArray[np.int64], in_train: NDArray[np.bool_], names: Sequence[str]) -> None:
    unseen = ~np.isin(y, y[in_train])
    if unseen.any():
        i = int(np.argmax(unseen))
        raise DataError(f"{table.positions[i]}: class {names[y[i]]!r} has no training sample")
    if in_train.all():
        raise DataError(f"{table.path}: no test sample is left: a class needs two samples to have one held out")


def _source(
    table: ColumnTable, y: NDArray[np.int64], names: tuple[str, ...], in_train: NDArray[np.bool_], roles: Roles
) -> Source:
    features = Features()
    for name in roles.features:
        _add_feature(features, table, name, in_train, roles)
    x = features.matrix()
    clients = None
    if roles.client is not None:
        clients = encode_clients(_texts(table, roles.client), f"{table.path}: client")[in_train]
    return Source(
        f"csv:{table.path.name}",
        x[in_train],
        y[in_train],
        x[~in_train],
        y[~in_train],
        names,
        clients,
        tuple(features.names),
        np.array(features.numeric),
    )


def _add_feature(features: Features, table: ColumnTable, name: str, in_train: NDArray[np.bool_], roles: Roles) -> None:
    column = table.columns[name]
    absent = missing_cells(column)
    if absent.any() and roles.missing == "error":
        place = f"{table.positions[int(np.argmax(absent))]}: column {name[:40]!r}"
        raise DataError(f"{place}: the cell is missing; fill it, or set missing to drop or indicate")
    numbers = as_numbers(column, absent)
    if name in roles.categories or isinstance(numbers, int):
        _check_category(table, name, column, numbers, roles)
        values = ["missing" if gone else str(cell) for cell, gone in zip(column, absent, strict=True)]
        features.add_category(name, values, in_train)
        return
    _check_numbers(table, name, numbers)
    features.add(name, True, numbers)
    if absent.any():
        features.add(f"{name} missing", False, absent)


def _check_category(
    table: ColumnTable, name: str, column: Column, numbers: NDArray[np.float64] | int, roles: Roles
) -> None:
    found = len(set(column if isinstance(column, list) else column.tolist()))
    if found <= roles.max_categories:
        return
    hint = f"{found} different values, more than max_categories = {roles.max_categories}"
    if isinstance(numbers, int):
        cell = str(column[numbers])[:40]
        raise DataError(f"{table.positions[numbers]}: column {name[:40]!r}: {cell!r} is no number, and it has {hint}")
    raise DataError(f"{table.path}: column {name[:40]!r}: {hint}")


def _check_numbers(table: ColumnTable, name: str, numbers: NDArray[np.float64]) -> None:
    beyond = ~(np.abs(numbers) <= np.finfo(np.float32).max)
    if beyond.any():
        i = int(np.argmax(beyond))
        raise DataError(f"{table.positions[i]}: column {name[:40]!r}: {numbers[i]} is not finite as a 32-bit number")


SPEC = SourceSpec(
    load, "table", "your own table with a label column, as .csv, .tsv, .npy or .npz", "ROOT, or ROOT/file"
)
