"""Posterior files: a model's class probabilities with the labels, as ``.csv``, ``.parquet`` or ``.npz``.

The reader checks the form of a file. Whether its numbers are probabilities is for `fedrela.relabel` to check, so NaN
and rows that do not sum to 1 are read as they are.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core import Relabelling
from fedrela.data.posterior_tables import ColumnOptions, PosteriorTable, read_csv, read_parquet
from fedrela.data.sources.file_readers import Npz
from fedrela.data.sources.labels import MOST_CLASSES
from fedrela.errors import ArgumentError, DataError
from fedrela.files import array_bytes

NUMBER = re.compile(r"(0*)[0-9]+(\.0*)?")
ENDINGS = (".csv", ".parquet", ".npz")


@dataclass(frozen=True, eq=False)
class PosteriorFile:
    """The content of a posterior file."""

    path: Path
    posterior: NDArray[Any]  # (n, C)
    labels: NDArray[Any]  # class ids (n,)
    class_names: tuple[str, ...]
    allowed: NDArray[Any] | None = None  # as in `fedrela.relabel`, if an .npz file has them
    eligible: NDArray[Any] | None = None
    ids: tuple[str, ...] = ()  # the owner's name of every row
    written: tuple[Any, ...] = ()  # the label of every class as the file writes it
    lines: NDArray[np.int64] | None = None  # line, from 1, on which each row of a CSV file begins

    def place(self, row: int | None) -> str:
        """Return the position of a row: ``FILE:LINE`` for CSV, else the file."""
        return str(self.path) if row is None or self.lines is None else f"{self.path}:{self.lines[row]}"

    def results(self, done: Relabelling) -> dict[str, Any]:
        """Return a re-labelling row by row as columns: id, old, new, moved, posterior and rho.

        Labels are written as in this file. `posterior` is that of the new label; `rho` is the probability of the move,
        for an unchanged row that of its most probable move.
        """
        n = done.labels.size
        moved, rho = np.zeros(n, np.bool_), np.zeros(n)
        np.maximum.at(rho, done.candidates.sample, done.candidates.rho)
        moved[done.ledger.index], rho[done.ledger.index] = True, done.ledger.rho
        old, new = ([self.written[c] for c in labels.tolist()] for labels in (self.labels, done.labels))
        table = self.path.suffix.lower() != ".npz"  # whose labels keep their dtype
        return {
            "id": list(self.ids) or list(range(n)),
            "old": old if table else self.labels,
            "new": new if table else done.labels,
            "moved": moved,
            "posterior": np.asarray(self.posterior, np.float64)[np.arange(n), done.labels.astype(np.int64)],
            "rho": rho,
        }


def encode_columns(columns: Mapping[str, Any], ending: str) -> bytes:
    """Return columns of equal length as the bytes of a ``.csv``, ``.parquet`` or ``.npz`` file."""
    if ending == ".npz":
        return array_bytes({name: np.asarray(values) for name, values in columns.items()})
    if ending == ".parquet":
        import pyarrow
        from pyarrow import parquet

        out = io.BytesIO()
        parquet.write_table(pyarrow.table(dict(columns)), out)
        return out.getvalue()
    rows = zip(*(map(_csv_field, values) for values in columns.values()), strict=True)
    return "".join(",".join(row) + "\n" for row in [tuple(columns), *rows]).encode()


def _csv_field(value: Any) -> str:
    """Return a cell, quoted if necessary; unlike the csv module, also for a carriage return before a plain newline."""
    cell = value if isinstance(value, str) else str(value).lower() if isinstance(value, np.bool_) else repr(value)
    if isinstance(value, np.floating):
        cell = repr(float(value))
    return cell if cell and not set(cell) & set(',"\r\n') else '"' + cell.replace('"', '""') + '"'


def read_posteriors(path: str | Path, **options: Any) -> PosteriorFile:
    """Read a posterior file by its suffix.

    It is ``.npz`` with the arrays `posterior` (n, C) and `labels` (n,), and optionally `class_names` (C,), `ids` (n,),
    `allowed` (C, C) and `eligible` (n,); or a table, ``.csv`` or ``.parquet``, with one probability column per class
    and a label column. For a table, `options` may choose columns by name or by number from 0:

    - `label_column`, by default the one called label, labels, y, class or target, else the last;
    - `id`, by default the index of a pandas frame, or the column called id, ids, index or row_id;
    - `classes`, the classes in order, and `prefix`, the prefix of their columns; by default all other columns;
    - `ignore`, columns to leave out.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in ENDINGS:
        raise ArgumentError(f"{path}: a posterior file ends in .csv, .parquet or .npz")
    if kind == ".npz":
        for name in (name for name, value in options.items() if value):
            raise ArgumentError(f"{path}: {name} is for .csv and .parquet files; an .npz has named arrays")
        return _read_npz(path)
    table = (read_csv if kind == ".csv" else read_parquet)(path, ColumnOptions(**options))
    names, written = table.roles.class_names, _written(table)
    return PosteriorFile(path, table.posterior, table.labels, names, None, None, table.ids, written, table.lines)


def _written(table: PosteriorTable) -> tuple[Any, ...]:
    """Return the label of every class as the table writes it first; without one, in the form of the others."""
    names, cells = table.roles.class_names, table.label_cells
    numbers = list(names) if table.names_as_labels else list(map(str, range(len(names))))
    first = dict(zip(reversed(table.labels.tolist()), reversed(cells), strict=True))
    return tuple(first[c] if c in first else _in_form(name, cells) for c, name in enumerate(numbers))


def _in_form(name: str, cells: Sequence[Any]) -> Any:
    """Return the name or number of a class in the form of the labels.

    >>> [_in_form("2", [like]) for like in ("0", "01", "1.0", 1, 1.0)], _in_form("True", [False])
    (['2', '02', '2.0', 2, 2.0], True)
    """
    like = cells[0] if cells else ""
    if isinstance(like, bool):
        return name == "True"
    if not name.isdecimal():
        return name
    if not isinstance(like, str):
        return type(like)(int(name))
    form = NUMBER.fullmatch(like)
    zeros, decimals = (form[1], form[2] or "") if form else ("", "")
    return name.zfill(len(like) - len(decimals) if zeros else 0) + decimals


def _read_npz(path: Path) -> PosteriorFile:
    archive = Npz(path)
    for key in ("posterior", "labels"):
        if key not in archive.names:
            has = ", ".join(repr(name[:40]) for name in sorted(archive.names)[:6]) or "nothing"
            raise DataError(f"{path}: {key}: this array is missing; the file has {has}")
    shape = archive.header("posterior").shape
    if len(shape) != 2 or not 2 <= shape[1] <= MOST_CLASSES:
        raise DataError(f"{path}: posterior: expected shape (n, C), C from 2 to {MOST_CLASSES}, got {shape}")
    n, C = shape
    arrays = {}
    for key, shape, kinds, expected in (
        ("labels", (n,), "iu", "integers"),
        ("class_names", (C,), "U", "text"),
        ("allowed", (C, C), "b", "booleans"),
        ("eligible", (n,), "b", "booleans"),
        ("ids", (n,), "Uiu", "text or integers"),
    ):
        if key in archive.names:
            header = archive.header(key)  # checked before anything is unpacked
            if header.shape != shape or header.dtype.kind not in kinds:
                got = f"{header.dtype} of shape {header.shape}"
                raise DataError(f"{path}: {key}: expected {expected} of shape {shape}, got {got}")
            arrays[key] = archive.read(key)
    names = tuple(arrays["class_names"].tolist() if "class_names" in arrays else map(str, range(C)))
    ids = tuple(map(str, arrays["ids"].tolist() if "ids" in arrays else ()))
    for key, values, number in (("class_names", names, C), ("ids", ids, len(ids))):
        if len(set(values)) < number:
            raise DataError(f"{path}: {key}: expected {number} distinct names, got {len(set(values))}")
    y = arrays["labels"]
    y = y if np.iinfo(y.dtype).max >= C - 1 else y.astype(np.int64)  # room for every class a label may move to
    limits, written = (arrays.get("allowed"), arrays.get("eligible")), tuple(range(C))
    return PosteriorFile(path, archive.read("posterior"), y, names, *limits, ids, written)
