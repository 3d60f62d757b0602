"""Posterior files: a model's class probabilities with the labels, as ``.npz`` or ``.csv``.

The reader checks the form of a file only. Whether its numbers are probabilities is for `fedrela.relabel` to check, so
NaN or a row that does not sum to 1 is read.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fedrela.data import posterior_csv
from fedrela.data.sources.npy import Npz
from fedrela.errors import ArgumentError, DataError

MOST_CLASSES = 2**16  # an empty array may declare any number of columns
KEYS = ("posterior", "labels", "class_names", "allowed", "eligible")


@dataclass(frozen=True, eq=False)
class PosteriorFile:
    """What a posterior file holds.

    Attributes
    ----------
    path
        The file.
    posterior, labels
        Probabilities ``(n, C)`` and class ids ``(n,)``.
    class_names
        One name per class.
    allowed, eligible
        Rules that an ``.npz`` may carry, in the sense of `fedrela.relabel`, or None.
    label_header
        Name of the label column, None without a header.
    names_as_labels
        Whether the label column holds class names and not ids.
    lines
        Line of the file, from 1, on which each row begins; None for ``.npz``.
    """

    path: Path
    posterior: NDArray[Any]
    labels: NDArray[Any]
    class_names: tuple[str, ...]
    allowed: NDArray[Any] | None = None
    eligible: NDArray[Any] | None = None
    label_header: str | None = None
    names_as_labels: bool = False
    lines: NDArray[np.int64] | None = None

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

    Parameters
    ----------
    path
        ``.npz`` with the arrays `posterior` (n, C) and `labels` (n,), and optionally `class_names` (C,), `allowed`
        (C, C) and `eligible` (n,); or ``.csv`` with one probability column per class and a label column.
    label_column
        Name or number (from 0) of a CSV file's label column. By default the one called label, labels, y, class or
        target, else the last.

    Raises
    ------
    DataError
        For a malformed file: one line with the file and the key, or with file, line and column (from 1).
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (".csv", ".npz"):
        raise ArgumentError(f"{path}: a posterior file ends in .csv or .npz")
    if kind == ".npz" and label_column is not None:
        raise ArgumentError(f"{path}: label_column is for .csv files; an .npz has the array 'labels'")
    if kind == ".npz":
        return _from_arrays(path, _read_arrays(path))
    with _open(path) as file:
        table = posterior_csv.read_table(path, file.read(), label_column)
    return PosteriorFile(
        path, table.posterior, table.labels, table.class_names, label_header=table.label_header,
        names_as_labels=table.names_as_labels, lines=table.lines,
    )  # fmt: skip


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise DataError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    archive = Npz(path)
    for key in ("posterior", "labels"):
        if key not in archive.names:
            has = ", ".join(repr(name[:40]) for name in sorted(archive.names)[:6]) or "nothing"
            raise DataError(f"{path}: {key}: this array is missing; the file has {has}")
    return {key: archive.read(key) for key in KEYS if key in archive.names}


def _from_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> PosteriorFile:
    Q, y = arrays["posterior"], arrays["labels"]
    if Q.ndim != 2 or not 2 <= Q.shape[1] <= MOST_CLASSES:
        raise DataError(f"{path}: posterior: expected shape (n, C), C from 2 to {MOST_CLASSES}, got {Q.shape}")
    n, C = Q.shape
    for key, shape, kinds, words in (
        ("labels", (n,), "iu", "integers"),
        ("class_names", (C,), "U", "text"),
        ("allowed", (C, C), "b", "booleans"),
        ("eligible", (n,), "b", "booleans"),
    ):
        value = arrays.get(key)
        if value is not None and (value.shape != shape or value.dtype.kind not in kinds):
            came = f"{value.dtype} of shape {value.shape}"
            raise DataError(f"{path}: {key}: expected {words} of shape {shape}, got {came}")
    names = tuple(arrays["class_names"].tolist() if "class_names" in arrays else (str(c) for c in range(C)))
    if len(set(names)) < C:
        raise DataError(f"{path}: class_names: expected {C} different names, got {len(set(names))}")
    y = y if np.iinfo(y.dtype).max >= C - 1 else y.astype(np.int64)  # room for every class a label may move to
    return PosteriorFile(path, Q, y, names, arrays.get("allowed"), arrays.get("eligible"))
