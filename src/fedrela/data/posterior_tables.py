"""Posterior tables: CSV and Parquet files as found in practice, with an index, ids, prefixed and unrelated columns.

A column is the label, the row's id, the probability of a class, or ignored. An ambiguous column is an error that names
the options to resolve it. Every error in a CSV file says ``FILE:LINE:COLUMN``, counted from 1.
"""

from __future__ import annotations

import itertools
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.input_checks import ROW_SUM_TOLERANCE
from fedrela.data.sources.file_readers import csv_rows, is_number, read_numbers, reading
from fedrela.data.sources.labels import MOST_CLASSES
from fedrela.data.sources.table import INDEX_NAMES
from fedrela.errors import ArgumentError, DataError
from fedrela.text import listed, nearest_hint, plural, shown

LABEL_NAMES = ("label", "labels", "y", "class", "target")
ID_NAMES = ("id", "ids", "index", "row_id")
HELP = (
    "--ignore leaves a column out, --id makes it the row's id, --classes or --prefix says which columns are classes, "
    "--label-column which is the label"
)
NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)
LARGEST_VALUE = 1e100  # rows with a larger value are ignored in sums


@dataclass(frozen=True)
class ColumnOptions:
    """The user's choice of columns, by name or by number from 0; None or empty means inferred."""

    label_column: str | None = None
    id: str | None = None
    classes: tuple[str, ...] = ()
    prefix: str = ""
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnRoles:
    """The role of each column of a file; columns are counted from 0."""

    path: Path
    header: tuple[str, ...] | None
    label: int
    id: int | None
    columns: tuple[int, ...]  # of the classes
    class_names: tuple[str, ...]
    line: int | None = 1  # of the header; None in a file without lines
    named: bool = False  # whether classes or a prefix were given

    def error(self, line: int | None, column: int, what: str) -> DataError:
        """Return the error of a cell."""
        if self.line is None or line is None:
            return DataError(f"{self.path}: column {shown((self.header or ())[column])}: {what}")
        return DataError(f"{self.path}:{line}:{column + 1}: {what}")


@dataclass(frozen=True, eq=False)
class PosteriorTable:
    """The cells of a posterior table."""

    roles: ColumnRoles
    posterior: NDArray[np.float64]
    label_cells: Sequence[Any]  # text, or what Parquet has
    ids: tuple[str, ...]
    lines: NDArray[np.int64] | None  # line, from 1, on which each row of a CSV file begins
    labels: NDArray[np.int64] = field(init=False)
    names_as_labels: bool = field(init=False)

    def __post_init__(self) -> None:
        lines: Sequence[int | None] = [None] * len(self.label_cells) if self.lines is None else self.lines.tolist()
        _check_ids(self.roles, self.ids, lines)
        labels, named = _class_ids(self.roles, list(map(str, self.label_cells)), lines)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "names_as_labels", named)
        if not self.roles.named:
            _refuse_stray_columns(self)


def read_csv(path: Path, options: ColumnOptions) -> PosteriorTable:
    """Read a CSV file, with or without a header."""
    rows = csv_rows(path)
    line, first = next(rows, (1, []))
    cells = tuple(cell.strip() for cell in first)
    if len(cells) < 3:
        hint = "; is the separator a comma?" if set("".join(cells)) & set(";\t|") else ""
        what = f"expected at least two probability columns and a label column, got {plural(len(cells), 'column')}{hint}"
        raise DataError(f"{path}:{line}:{len(cells) + 1}: {what}")
    header = None if all(map(is_number, cells)) else cells
    roles = _column_roles(path, line, header, len(cells), options)
    if roles.header is None:
        rows = itertools.chain([(line, first)], rows)
    values, labels, ids, lines = array("d"), [], [], array("q")
    for line, row in rows:
        if len(row) != len(first):
            got = len(row)
            raise roles.error(line, min(got, len(first)), f"expected {len(first)} columns, got {got}")
        lines.append(line)
        labels.append(row[roles.label].strip())
        if roles.id is not None:
            ids.append(row[roles.id].strip())
        probabilities = [row[column] for column in roles.columns]
        try:
            values.extend(read_numbers(probabilities))
        except ValueError:
            raise _not_a_number(roles, line, probabilities) from None
    posterior = np.array(values).reshape(len(labels), len(roles.columns))
    return PosteriorTable(roles, posterior, labels, tuple(ids), np.array(lines, np.int64))


def _not_a_number(roles: ColumnRoles, line: int, cells: list[str]) -> DataError:
    c = next(c for c, cell in enumerate(cells) if not is_number(cell))
    what = f"expected the probability of class {shown(roles.class_names[c])}, got {shown(cells[c])}"
    what += f" (the label column is {roles.label + 1}); {HELP}"
    return roles.error(line, roles.columns[c], what)


def read_parquet(path: Path, options: ColumnOptions) -> PosteriorTable:
    """Read a Parquet file; the index of a pandas frame becomes the row ids."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ArgumentError(f"{path}: Parquet needs pyarrow: pip install 'fedrela[parquet]', or save as CSV") from None
    with reading(path, "Parquet file"):
        table = parquet.read_table(path)
        named = (table.schema.pandas_metadata or {}).get("index_columns", [])
    header = tuple(map(str, table.column_names))
    if len(header) < 3:
        raise DataError(f"{path}: expected at least two probability columns and a label column, got {len(header)}")
    index = next((name for name in named if isinstance(name, str)), None)
    roles = _column_roles(path, None, header, len(header), options, index)
    columns = []
    for column, name in zip(roles.columns, roles.class_names, strict=True):
        cells = table.column(column).to_numpy()
        if cells.dtype.kind not in "fiu":
            what = f"expected the probability of class {shown(name)}, got {table.schema.types[column]}; {HELP}"
            raise roles.error(None, column, what)
        columns.append(cells.astype(np.float64))
    labels = table.column(roles.label).to_pylist()
    if roles.id is not None:
        ids = tuple(str(cell) for cell in table.column(roles.id).to_pylist())
    else:  # pandas stores an index that is a range as three numbers
        spans = [range(each["start"], each["stop"], each["step"]) for each in named if isinstance(each, dict)]
        ids = tuple(str(number) for span in spans if span != range(len(labels)) for number in span)
    return PosteriorTable(roles, np.stack(columns, axis=1), labels, ids, None)


def _column_roles(
    path: Path,
    line: int | None,
    header: tuple[str, ...] | None,
    width: int,
    options: ColumnOptions,
    index: str | None = None,
) -> ColumnRoles:
    def chosen(column: str, argument: str) -> int:
        return _chosen_column(path, width, header or (), column, argument)

    ignored = {chosen(column, "ignore") for column in options.ignore}
    row_id = chosen(options.id, "id") if options.id is not None else _usual_id(header, ignored, index)
    label = chosen(options.label_column, "label_column") if options.label_column is not None else None
    taken = ignored | {row_id}
    if header and header[0] in INDEX_NAMES and label != 0:  # the index of a frame whose ids are another column
        taken |= {0}
    if label is None:
        label = _usual_label(path, line, header, width, taken, options)
    if label in taken:
        raise ArgumentError(f"{path}: column {label + 1} is the label; choose another", argument="id or ignore")
    rest = [column for column in range(width) if column != label and column not in taken]
    columns, names = _class_columns(path, header, rest, options)
    if not 2 <= len(columns) <= MOST_CLASSES:
        raise DataError(f"{path}: expected 2 to {MOST_CLASSES} probability columns, got {len(columns)}")
    given = bool(options.classes or options.prefix)
    others = sorted({*rest} - {*columns})
    guessed = options.label_column is None and header is not None and header[label].casefold() not in LABEL_NAMES
    if given and guessed and others and header:
        which = ", ".join(shown(header[column]) for column in [*others, label])
        raise ArgumentError(f"{path}: expected the name of one of {which}", argument="label_column")
    roles = ColumnRoles(path, header, label, row_id, tuple(columns), tuple(names), line, given)
    if header is not None:
        _check_names(roles)
    return roles


def _usual_id(header: tuple[str, ...] | None, ignored: set[int], index: str | None) -> int | None:
    """Return the index of a pandas frame, else the first column with the name of an id, or None."""
    if header is None:
        return None
    if header[0] in INDEX_NAMES and 0 not in ignored:
        return 0
    names = ID_NAMES if index is None else (index.casefold(),)
    return next((c for c, name in enumerate(header) if name.casefold() in names and c not in ignored), None)


def _usual_label(
    path: Path, line: int | None, header: tuple[str, ...] | None, width: int, taken: set[Any], options: ColumnOptions
) -> int:
    for usual in LABEL_NAMES if header else ():
        columns = [c for c, name in enumerate(header or ()) if name.casefold() == usual and c not in taken]
        if len(columns) > 1:
            where = path if line is None else f"{path}:{line}:{columns[1] + 1}"
            raise DataError(f"{where}: a second column {usual!r}; choose one with label_column")
        if columns:
            return columns[0]
    rest = [c for c in range(width) if c not in taken]
    if header and (options.classes or options.prefix):
        named = {options.prefix + name for name in options.classes}
        rest = [c for c in rest if not (header[c] in named if named else header[c].startswith(options.prefix))]
    if not rest:
        raise ArgumentError(f"{path} has no column left that could be the label", argument="label_column")
    return rest[-1]


def _class_columns(
    path: Path, header: tuple[str, ...] | None, rest: list[int], options: ColumnOptions
) -> tuple[list[int], list[str]]:
    """Return the columns of the classes and their names: those that were given, or else all that are left."""
    if options.classes and header is None:
        if len(options.classes) != len(rest):
            what = f"{path} has {len(rest)} probability columns, got {plural(len(options.classes), 'class name')}"
            raise ArgumentError(what, argument="classes")
        return rest, list(options.classes)
    if options.classes and header is not None:
        column_of = {header[column]: column for column in reversed(rest)}
        for name in (options.prefix + name for name in options.classes):
            if name not in column_of:
                hint = nearest_hint(name, column_of)
                raise ArgumentError(f"{path} has no column {shown(name)}{hint}", argument="classes")
        return [column_of[options.prefix + name] for name in options.classes], list(options.classes)
    if header is None:
        return rest, list(map(str, range(len(rest))))
    columns = [column for column in rest if header[column].startswith(options.prefix)]
    if options.prefix and len(columns) < 2:
        what = f"{path}: expected two columns or more that begin with {shown(options.prefix)}, got {len(columns)}"
        raise ArgumentError(what, argument="prefix")
    return columns, [header[column].removeprefix(options.prefix) for column in columns]


def _chosen_column(path: Path, width: int, header: tuple[str, ...], column: str, argument: str) -> int:
    number = ordinal(column, width)
    if header.count(column) == 1:
        return header.index(column)
    if number is not None and column not in header:
        return number
    if not header:
        reason = f"{path} has no header: expected a number from 0 to {width - 1}, got {shown(column)}"
    elif column in header:
        reason = f"{path} has {header.count(column)} columns {shown(column)}; give a number from 0"
    else:
        reason = f"{path} has no column {shown(column)}{nearest_hint(column, header)}"
    raise ArgumentError(reason, argument=argument)


def _check_names(roles: ColumnRoles) -> None:
    """Refuse a header that cannot name classes, or that looks like a row of data."""
    seen: dict[str, int] = {}
    for column, name in zip(roles.columns, roles.class_names, strict=True):
        what = ""
        if not name:
            what = f"a column without a name; {HELP}"
        elif name in seen:
            what = f"class {name!r} is already column {seen[name] + 1}"
        elif is_number(name) and 0 < float(name) < 1:
            what = f"{name!r} as a class name looks like a probability; expected a header, or numbers only"
        if what:
            raise roles.error(roles.line, column, what)
        seen[name] = column


def _check_ids(roles: ColumnRoles, ids: tuple[str, ...], lines: Sequence[int | None]) -> None:
    seen: set[str] = set()
    for row, name in enumerate(ids):
        if not name or name in seen:
            what = f"duplicate id {shown(name)}" if name else "an empty id"
            raise roles.error(lines[row], roles.id or 0, f"{what}; --ignore leaves the column out")
        seen.add(name)


def _class_ids(roles: ColumnRoles, cells: list[str], lines: Sequence[int | None]) -> tuple[NDArray[np.int64], bool]:
    """Return the class ids of the labels, and whether the labels are names; numbers may be written as 3.0."""
    names = roles.class_names
    distinct = set(cells)
    by_name = {name: c for c, name in enumerate(names)}
    numbers = {cell: float(cell) for cell in distinct if is_number(cell)}
    whole = {cell: int(x) for cell, x in numbers.items() if x.is_integer()}
    positions = {c: c for c in range(len(names))}
    values = {int(name): c for name, c in by_name.items() if name.isascii() and name.isdecimal()}
    values = values if len(values) == len(names) else positions  # classes may be named by other numbers
    by_number = {cell: values[x] for cell, x in whole.items() if x in values}
    for named, code in ((True, by_name), (values != positions, by_number)):
        if distinct <= code.keys():
            if code is by_number and values is positions and not roles.named:
                _refuse_other_numbers(roles, set(whole.values()))
            return np.array([code[cell] for cell in cells], np.int64), named
    unknown = distinct - by_name.keys() - by_number.keys()
    row = next(row for row, cell in enumerate(cells) if cell in (unknown or distinct - by_number.keys()))
    what = f"label {shown(cells[row])} is a class name but others are class numbers; use one kind"
    if unknown:
        what = f"expected a class name or a number from 0 to {len(names) - 1}, got {shown(cells[row])}"
        what += _prefix_hint(cells[row], names) or nearest_hint(cells[row], names)
    raise roles.error(lines[row], roles.label, what)


def _refuse_other_numbers(roles: ColumnRoles, labels: set[int]) -> None:
    """Raise if labels are numbers, and columns have the same numbers in their names, but not in their order."""
    parts = [NUMBERED.fullmatch(name) for name in roles.class_names]
    prefixes, found = {part and part[1] for part in parts}, [int(part[2]) for part in parts if part]
    if len(prefixes) > 1 or not found:
        return
    if found != list(range(len(found))) and labels <= set(found):
        first, prefix = shown(roles.class_names[0]), prefixes.pop()
        what = f"the first class is {first}, and labels are numbers: --prefix {prefix} reads these as the numbers of"
        what += " the columns, --classes with the columns in order counts them from 0"
        raise roles.error(roles.line, roles.columns[0], what)


def _prefix_hint(label: str, names: Sequence[str]) -> str:
    """Return advice to use the prefix with which a column name becomes this class, or an empty string."""
    column = next((name for name in names if label and name != label and name.endswith(label)), None)
    if column is None:
        return ""
    return f"; --prefix {column.removesuffix(label)} makes class {shown(label)} of column {shown(column)}"


def _refuse_stray_columns(table: PosteriorTable) -> None:
    """Raise if rows sum to 1 without a column whose class no label has: it is not the probability of a class.

    Each step drops the column whose removal brings the sums nearest to 1, if nearly all of its values were excess. Data
    that are no posterior at all, such as logits, are left for `fedrela.relabel` to refuse. A column of zeros would not
    change the sums, but it would change the meaning of label numbers.
    """
    Q, roles, names = table.posterior, table.roles, table.roles.class_names
    classes = set(map(str, table.label_cells)) if table.names_as_labels else set()
    Q = Q[np.abs(Q).max(axis=1) < LARGEST_VALUE]
    left, stray = list(range(Q.shape[1])), []
    sums = Q.sum(axis=1)
    if len(Q) and not table.names_as_labels and table.labels.max() < len(names) - 1 and _sum_to_1(sums):
        for c in np.flatnonzero(~Q.any(axis=0)):
            if not names[c].endswith(str(c)):
                what = f"{shown(names[c])} is 0 in every row, and labels are class numbers: is it a class? {HELP}"
                raise roles.error(roles.line, roles.columns[c], what)
    while len(Q) and len(left) > 2:
        gain = {
            c: float(np.mean(np.abs(sums - 1) - np.abs(sums - Q[:, c] - 1)) - 0.9 * np.mean(np.abs(Q[:, c])))
            for c in left
            if names[c] not in classes and Q[:, c].any()
        }
        worst = max(gain, key=gain.__getitem__, default=None)
        if worst is None or gain[worst] <= 0:
            break
        left.remove(worst)
        stray.append(worst)
        sums = Q[:, left].sum(axis=1)
    if stray and _sum_to_1(sums) and np.abs(Q[:, stray]).max() > _rounding_error(Q):
        columns, is_one = listed([shown(names[c]) for c in sorted(stray)]), len(stray) == 1
        what = f"{columns} {'is not a class probability' if is_one else 'are not class probabilities'}"
        what += f": the rows already sum to 1 without {'it' if is_one else 'them'}; {HELP}"
        raise roles.error(roles.line, roles.columns[min(stray)], what)


def _rounding_error(Q: NDArray[np.float64]) -> float:
    """Return how far sums of rows may be from 1 because values were rounded; 0 for six decimals or more.

    >>> _rounding_error(np.array([[0.33, 0.33, 0.33], [1.0, 0.0, 0.0]]))
    0.015
    """
    digits = next((d for d in range(6) if np.array_equal(Q.round(d), Q)), 300)
    return float(min(ROW_SUM_TOLERANCE, Q.shape[1] * 0.5 * 10.0**-digits))


def _sum_to_1(sums: NDArray[np.float64]) -> bool:
    return float(np.mean(np.abs(sums - 1))) < ROW_SUM_TOLERANCE


def ordinal(text: str, limit: int) -> int | None:
    """Return text as a number from 0 to `limit` - 1, or None if it is not one.

    >>> ordinal("2", 3), ordinal("3", 3), ordinal("-1", 3)
    (2, None, None)
    """
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) < limit else None
