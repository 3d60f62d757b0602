"""The CSV form of a posterior file: one probability column per class, and a label column.

Every error says ``FILE:LINE:COLUMN``, where the column is that of the table, counted from 1.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import ArgumentError, DataError
from fedrela.text import nearest, plural, shown

LABEL_NAMES = ("label", "labels", "y", "class", "target")
FIELD = re.compile(r' *(?:"[^"]*+(?:""[^"]*+)*+"|[^",\r\n][^,\r\n]*)?(?=[,\r\n]|\Z)')  # one well-formed field

Row = tuple[int, list[str]]  # the line on which it begins, its cells


@dataclass(frozen=True, eq=False)
class PosteriorTable:
    """A parsed file: probabilities ``(n, C)``, class ids ``(n,)``, the line of each row, and how labels are written."""

    posterior: NDArray[np.float64]
    labels: NDArray[np.int64]
    lines: NDArray[np.int64]
    class_names: tuple[str, ...]
    label_header: str | None
    names_as_labels: bool


@dataclass(frozen=True)
class Layout:
    """Which column is what, from the first row of a file."""

    path: Path
    width: int
    label: int  # place of the label column, from 0
    header: tuple[str, ...] | None

    @property
    def class_names(self) -> tuple[str, ...]:
        """One name per probability column."""
        if self.header is None:
            return tuple(str(c) for c in range(self.width - 1))
        return self.header[: self.label] + self.header[self.label + 1 :]

    def column(self, code: int) -> int:
        """Column, from 1, with the probability of class `code`."""
        return code + 1 if code < self.label else code + 2


def read_table(path: Path, data: bytes, label_column: str | None) -> PosteriorTable:
    """Parse the bytes of a CSV file; see `fedrela.data.posteriors.read_posteriors`."""
    rows = _rows(path, _text(path, data))
    line, first = next(rows, (1, []))
    if not first:
        raise _wrong(path, 1, 1, "the file is empty; expected one probability column per class and a label column")
    layout = _layout(path, line, first, label_column)
    if layout.header is None:
        rows = itertools.chain([(line, first)], rows)
    values, words, lines = array("d"), [], array("q")
    for line, cells in rows:
        if len(cells) != layout.width:
            column = min(len(cells), layout.width) + 1
            raise _wrong(path, line, column, f"expected {layout.width} columns, got {len(cells)}")
        lines.append(line)
        words.append(cells.pop(layout.label).strip())
        try:
            values.extend(_numbers(cells))
        except ValueError:
            raise _not_a_number(layout, line, cells) from None
    labels, named = _class_ids(layout, words, lines)
    posterior = np.array(values, np.float64).reshape(len(words), layout.width - 1)
    header = None if layout.header is None else layout.header[layout.label]
    return PosteriorTable(posterior, labels, np.array(lines, np.int64), layout.class_names, header, named)


def _text(path: Path, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place(error.object.decode("latin-1"), error.start)
        raise _wrong(path, *place, f"byte 0x{error.object[error.start]:02x} is not UTF-8; save as UTF-8") from None
    if "\0" in text:
        what = "a NUL character; expected text in UTF-8 (is this UTF-16 or a binary file?)"
        raise _wrong(path, *_place(text, text.index("\0")), what)
    return text


def _rows(path: Path, text: str) -> Iterator[Row]:
    """Yield the rows that are not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    line = 1
    try:
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        start = sum(map(len, itertools.islice(io.StringIO(text, newline=""), line - 1)))
        what = f"{error}; quotes enclose a whole field, and a quote inside is doubled"
        raise _wrong(path, line, _column(text, start, len(text)), what) from None


def _place(text: str, at: int) -> tuple[int, int]:
    """Line and column of a character."""
    before = list(io.StringIO(text[:at], newline=""))
    if not before or before[-1].endswith(("\n", "\r")):
        before.append("")
    return len(before), _column(text, at - len(before[-1]), at)


def _column(text: str, start: int, at: int) -> int:
    """Column of the first field, from the row at `start`, that is not well formed, is too long, or holds place `at`."""
    column = 1
    while field := FIELD.match(text, start):
        end = field.end()
        if end > at or end - start > csv.field_size_limit() or text[end : end + 1] != ",":
            break
        start, column = end + 1, column + 1
    return column


def _layout(path: Path, line: int, first: list[str], label_column: str | None) -> Layout:
    width = len(first)
    if width < 3:
        hint = "; is the separator a comma?" if any(mark in cell for cell in first for mark in ";\t|") else ""
        what = f"expected at least two probability columns and a label column, got {plural(width, 'column')}{hint}"
        raise _wrong(path, line, width + 1, what)
    cells = tuple(cell.strip() for cell in first)
    header = None if all(_is_number(cell) for cell in cells) else cells
    if label_column is not None:
        label = _chosen_column(path, cells, header, label_column)
    else:
        label = width - 1 if header is None else _usual_column(path, line, header)
    layout = Layout(path, width, label, header)
    if header is not None:
        _check_names(layout, line)
    return layout


def _chosen_column(path: Path, cells: Sequence[str], header: Sequence[str] | None, wanted: str) -> int:
    if header is not None and header.count(wanted) == 1:
        return header.index(wanted)
    place = ordinal(wanted, len(cells))
    if place is not None and (header is None or wanted not in header):
        return place
    if header is None:
        reason = f"{path} has no header: expected a number from 0 to {len(cells) - 1}, got {shown(wanted)}"
    elif wanted in header:
        reason = f"{path} has {header.count(wanted)} columns {shown(wanted)}; give a number from 0"
    else:
        reason = f"{path} has no column {shown(wanted)}{hint_at(wanted, header)}"
    raise ArgumentError(reason, argument="label_column")


def _usual_column(path: Path, line: int, header: Sequence[str]) -> int:
    lowered = [name.casefold() for name in header]
    for usual in LABEL_NAMES:
        places = [place for place, name in enumerate(lowered) if name == usual]
        if len(places) > 1:
            raise _wrong(path, line, places[1] + 1, f"a second column {usual!r}; say which one with label_column")
        if places:
            return places[0]
    return len(header) - 1


def _check_names(layout: Layout, line: int) -> None:
    """Refuse a header that cannot name classes, or that is rather a row of data with a word in it."""
    seen: dict[str, int] = {}
    for code, name in enumerate(layout.class_names):
        column = layout.column(code)
        if not name:
            what = "a column without a name; every column but the label is a class; remove row numbers"
            raise _wrong(layout.path, line, column, what)
        if name in seen:
            what = f"class {name!r} again, as in column {seen[name]}; class names must differ"
            raise _wrong(layout.path, line, column, what)
        if _is_number(name) and 0 < float(name) < 1:
            what = f"{name!r} as a class name looks like a probability; expected a header, or numbers only"
            raise _wrong(layout.path, line, column, what)
        seen[name] = column


def _numbers(cells: list[str]) -> list[float]:
    if "_" in "".join(cells):
        raise ValueError  # Python would read 1_0 as 10
    return [float(cell) for cell in cells]


def _is_number(cell: str) -> bool:
    try:
        return bool(_numbers([cell]))
    except ValueError:
        return False


def _not_a_number(layout: Layout, line: int, cells: list[str]) -> DataError:
    code = next(place for place, cell in enumerate(cells) if not _is_number(cell))
    name = layout.class_names[code]
    what = (
        f"expected the probability of class {shown(name)}, got {shown(cells[code])} "
        f"(the label column is {layout.label + 1})"
    )
    return _wrong(layout.path, line, layout.column(code), what)


def _class_ids(layout: Layout, words: list[str], lines: Sequence[int]) -> tuple[NDArray[np.int64], bool]:
    """Class ids of the labels, and whether the labels are names."""
    names = layout.class_names
    by_name = {name: code for code, name in enumerate(names)}
    kinds = set(words)
    if kinds <= by_name.keys():
        return np.array([by_name[word] for word in words], np.int64), True
    by_id = {word: int(float(word)) for word in kinds if _is_class_id(word, len(names))}
    if kinds <= by_id.keys():
        return np.array([by_id[word] for word in words], np.int64), False
    strange = kinds - by_name.keys() - by_id.keys()
    row = next(row for row, word in enumerate(words) if word in (strange or kinds - by_id.keys()))
    word = words[row]
    if strange:
        what = f"expected a class name or a number from 0 to {len(names) - 1}, got {shown(word)}{hint_at(word, names)}"
    else:
        what = f"label {shown(word)} is a class name but others are class numbers; use one kind"
    raise _wrong(layout.path, lines[row], layout.label + 1, what)


def _is_class_id(word: str, num_classes: int) -> bool:
    """Whether a word is an integer below `num_classes`, also as 3.0, the way numpy.savetxt writes it."""
    return _is_number(word) and float(word).is_integer() and 0 <= float(word) < num_classes


def ordinal(word: str, limit: int) -> int | None:
    """Return a word as a number from 0 to below `limit`, or None where it is none.

    >>> ordinal("2", 3), ordinal("3", 3), ordinal("-1", 3)
    (2, None, None)
    """
    return int(word) if word.isdecimal() and len(word) < 10 and int(word) < limit else None


def hint_at(word: str, names: Sequence[str]) -> str:
    """Return the end of a message that names the nearest of the known words, or nothing where none is like it.

    >>> hint_at("Catt", ["dog", "cat"]), hint_at("xyz", ["dog"])
    ("; nearest: 'cat'", '')
    """
    near = nearest(word, names)
    return f"; nearest: {shown(near)}" if near else ""


def _wrong(path: Path, line: int, column: int, what: str) -> DataError:
    return DataError(f"{path}:{line}:{column}: {what}")
