"""Posterior files: a model's class probabilities with the labels, as ``.csv`` or ``.npz``.

The reader checks the form of a file only. Whether its numbers are probabilities is for `fedrela.relabel` to check, so
NaN or a row that does not sum to 1 is read. Every error in a CSV file says ``FILE:LINE:COLUMN``, counted from 1.
"""

from __future__ import annotations

import io
import itertools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.data.sources.reading import Npz, csv_rows
from fedrela.errors import ArgumentError, DataError
from fedrela.text import nearest_hint, plural, shown

MOST_CLASSES = 2**16  # an empty array may declare any number of columns
LABEL_NAMES = ("label", "labels", "y", "class", "target")


@dataclass(frozen=True, eq=False)
class PosteriorFile:
    """What a posterior file holds."""

    path: Path
    posterior: NDArray[Any]  # (n, C)
    labels: NDArray[Any]  # class ids (n,)
    class_names: tuple[str, ...]
    allowed: NDArray[Any] | None = None  # rules that an .npz may carry, in the sense of `fedrela.relabel`
    eligible: NDArray[Any] | None = None
    label_header: str | None = None  # name of the label column, None without a header
    names_as_labels: bool = False  # whether the label column holds class names and not ids
    lines: NDArray[np.int64] | None = None  # line, from 1, on which each row of a CSV file begins

    def place(self, row: int | None) -> str:
        """Where a row lies: ``FILE:LINE`` for CSV, else the file."""
        return str(self.path) if row is None or self.lines is None else f"{self.path}:{self.lines[row]}"

    def encode(self, labels: NDArray[Any]) -> bytes:
        """Return `labels` as the bytes of a label file in the form in which this file gave its own."""
        if self.lines is None:
            archive = io.BytesIO()
            np.savez(archive, allow_pickle=False, labels=labels)
            return archive.getvalue()
        names = self.class_names if self.names_as_labels else [str(c) for c in range(len(self.class_names))]
        fields = [_csv_field(name) for name in names]
        header = [] if self.label_header is None else [_csv_field(self.label_header)]
        return "".join(f"{field}\n" for field in [*header, *(fields[c] for c in labels.tolist())]).encode()


def _csv_field(word: str) -> str:
    """Quote a word where it needs to be; unlike the csv module, also a carriage return before a plain newline."""
    return word if word and not set(word) & set(',"\r\n') else '"' + word.replace('"', '""') + '"'


def read_posteriors(path: str | Path, *, label_column: str | None = None) -> PosteriorFile:
    """Read a posterior file, by its ending.

    It is ``.npz`` with the arrays `posterior` (n, C) and `labels` (n,), and optionally `class_names` (C,), `allowed`
    (C, C) and `eligible` (n,); or ``.csv`` with one probability column per class and a label column. That is
    `label_column`, by name or by number from 0, by default the one called label, labels, y, class or target, else the
    last.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (".csv", ".npz"):
        raise ArgumentError(f"{path}: a posterior file ends in .csv or .npz")
    if kind == ".npz" and label_column is not None:
        raise ArgumentError(f"{path}: label_column is for .csv files; an .npz has the array 'labels'")
    return _read_npz(path) if kind == ".npz" else _read_csv(path, label_column)


def _read_npz(path: Path) -> PosteriorFile:
    archive = Npz(path)
    for key in ("posterior", "labels"):
        if key not in archive.names:
            has = ", ".join(repr(name[:40]) for name in sorted(archive.names)[:6]) or "nothing"
            raise DataError(f"{path}: {key}: this array is missing; the file has {has}")
    Q = archive.read("posterior")
    if Q.ndim != 2 or not 2 <= Q.shape[1] <= MOST_CLASSES:
        raise DataError(f"{path}: posterior: expected shape (n, C), C from 2 to {MOST_CLASSES}, got {Q.shape}")
    n, C = Q.shape
    arrays = {}
    for key, shape, kinds, words in (
        ("labels", (n,), "iu", "integers"),
        ("class_names", (C,), "U", "text"),
        ("allowed", (C, C), "b", "booleans"),
        ("eligible", (n,), "b", "booleans"),
    ):
        if key in archive.names:
            value = arrays[key] = archive.read(key)
            if value.shape != shape or value.dtype.kind not in kinds:
                came = f"{value.dtype} of shape {value.shape}"
                raise DataError(f"{path}: {key}: expected {words} of shape {shape}, got {came}")
    names = tuple(arrays["class_names"].tolist() if "class_names" in arrays else map(str, range(C)))
    if len(set(names)) < C:
        raise DataError(f"{path}: class_names: expected {C} different names, got {len(set(names))}")
    y = arrays["labels"]
    y = y if np.iinfo(y.dtype).max >= C - 1 else y.astype(np.int64)  # room for every class a label may move to
    return PosteriorFile(path, Q, y, names, arrays.get("allowed"), arrays.get("eligible"))


@dataclass(frozen=True)
class Layout:
    """Which column of a CSV file is what; columns are counted from 0."""

    path: Path
    header: tuple[str, ...] | None
    label: int
    class_names: tuple[str, ...]

    def error(self, line: int, column: int, what: str) -> DataError:
        """Return the error of a cell."""
        return DataError(f"{self.path}:{line}:{column + 1}: {what}")


def _read_csv(path: Path, label_column: str | None) -> PosteriorFile:
    rows = csv_rows(path)
    line, first = next(rows, (1, []))
    layout = _layout(path, line, tuple(cell.strip() for cell in first), label_column)
    if layout.header is None:
        rows = itertools.chain([(line, first)], rows)
    width = len(first)
    values, words, lines = array("d"), [], array("q")
    for line, cells in rows:
        if len(cells) != width:
            raise layout.error(line, min(len(cells), width), f"expected {width} columns, got {len(cells)}")
        lines.append(line)
        words.append(cells.pop(layout.label).strip())
        try:
            values.extend(_numbers(cells))
        except ValueError:
            c = next(c for c, cell in enumerate(cells) if not _is_number(cell))
            what = f"expected the probability of class {shown(layout.class_names[c])}, got {shown(cells[c])}"
            what += f" (the label column is {layout.label + 1})"
            raise layout.error(line, c + (c >= layout.label), what) from None
    labels, named = _class_ids(layout, words, lines)
    posterior = np.array(values).reshape(len(words), width - 1)
    header = None if layout.header is None else layout.header[layout.label]
    return PosteriorFile(
        path, posterior, labels, layout.class_names, None, None, header, named, np.array(lines, np.int64)
    )


def _layout(path: Path, line: int, cells: tuple[str, ...], label_column: str | None) -> Layout:
    if len(cells) < 3:
        hint = "; is the separator a comma?" if set("".join(cells)) & set(";\t|") else ""
        what = f"expected at least two probability columns and a label column, got {plural(len(cells), 'column')}{hint}"
        raise DataError(f"{path}:{line}:{len(cells) + 1}: {what}")
    header = None if all(map(_is_number, cells)) else cells
    if label_column is not None:
        label = _chosen_column(path, len(cells), header or (), label_column)
    else:
        label = len(cells) - 1 if header is None else _usual_column(path, line, header)
    names = tuple(map(str, range(len(cells) - 1))) if header is None else header[:label] + header[label + 1 :]
    layout = Layout(path, header, label, names)
    if header is not None:
        _check_names(layout, line)
    return layout


def _chosen_column(path: Path, width: int, header: tuple[str, ...], wanted: str) -> int:
    number = ordinal(wanted, width)
    if header.count(wanted) == 1:
        return header.index(wanted)
    if number is not None and wanted not in header:
        return number
    if not header:
        reason = f"{path} has no header: expected a number from 0 to {width - 1}, got {shown(wanted)}"
    elif wanted in header:
        reason = f"{path} has {header.count(wanted)} columns {shown(wanted)}; give a number from 0"
    else:
        reason = f"{path} has no column {shown(wanted)}{nearest_hint(wanted, header)}"
    raise ArgumentError(reason, argument="label_column")


def _usual_column(path: Path, line: int, header: tuple[str, ...]) -> int:
    for usual in LABEL_NAMES:
        places = [place for place, name in enumerate(header) if name.casefold() == usual]
        if len(places) > 1:
            what = f"a second column {usual!r}; say which one with label_column"
            raise DataError(f"{path}:{line}:{places[1] + 1}: {what}")
        if places:
            return places[0]
    return len(header) - 1


def _check_names(layout: Layout, line: int) -> None:
    """Refuse a header that cannot name classes, or that is rather a row of data with a word in it."""
    seen: dict[str, int] = {}
    for column, name in enumerate(layout.header or ()):
        if column == layout.label:
            continue
        what = ""
        if not name:
            what = "a column without a name; every column but the label is a class; remove row numbers"
        elif name in seen:
            what = f"class {name!r} again, as in column {seen[name] + 1}; class names must differ"
        elif _is_number(name) and 0 < float(name) < 1:
            what = f"{name!r} as a class name looks like a probability; expected a header, or numbers only"
        if what:
            raise layout.error(line, column, what)
        seen[name] = column


def _class_ids(layout: Layout, words: list[str], lines: Sequence[int]) -> tuple[NDArray[np.int64], bool]:
    """Return the class ids of the labels, and whether the labels are names; ids may be written as 3.0."""
    names = layout.class_names
    kinds = set(words)
    by_name = {name: c for c, name in enumerate(names)}
    numbers = {word: float(word) for word in kinds if _is_number(word)}
    by_id = {word: int(x) for word, x in numbers.items() if x.is_integer() and 0 <= x < len(names)}
    for named, code in ((True, by_name), (False, by_id)):
        if kinds <= code.keys():
            return np.array([code[word] for word in words], np.int64), named
    strange = kinds - by_name.keys() - by_id.keys()
    row = next(row for row, word in enumerate(words) if word in (strange or kinds - by_id.keys()))
    what = f"label {shown(words[row])} is a class name but others are class numbers; use one kind"
    if strange:
        hint = nearest_hint(words[row], names)
        what = f"expected a class name or a number from 0 to {len(names) - 1}, got {shown(words[row])}{hint}"
    raise layout.error(lines[row], layout.label, what)


def _numbers(cells: list[str]) -> list[float]:
    if "_" in "".join(cells):
        raise ValueError  # Python would read 1_0 as 10
    return [float(cell) for cell in cells]


def _is_number(cell: str) -> bool:
    try:
        return bool(_numbers([cell]))
    except ValueError:
        return False


def ordinal(word: str, limit: int) -> int | None:
    """Return a word as a number from 0 to below `limit`, or None where it is none.

    >>> ordinal("2", 3), ordinal("3", 3), ordinal("-1", 3)
    (2, None, None)
    """
    return int(word) if word.isdecimal() and len(word) < 10 and int(word) < limit else None
