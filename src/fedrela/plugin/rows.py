"""How the rows of a data set carry their labels: tuples, mappings, tensors, columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from fedrela.errors import ArgumentError, DataError

KEYS = ("label", "labels", "y", "target", "targets")  # what mappings call their label, unless somebody tells
Place = int | str


def as_rows(data: Any) -> tuple[Any, Callable[[list[Any]], Any]]:
    """Return a map-style data set, and what makes batches of its rows.

    Parameters
    ----------
    data
        Such a data set, a `DataLoader` of one, or tensors or arrays ``(X, y)``.
    """
    if isinstance(data, DataLoader):
        plain = data.batch_sampler is None
        return as_rows(data.dataset)[0], default_collate if plain else data.collate_fn
    if _is_arrays(data):
        return TensorDataset(*map(torch.as_tensor, data)), default_collate
    if isinstance(data, IterableDataset) or not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        raise ArgumentError(
            f"data: expected a data set with a length and numbered rows, got {type(data).__name__}; "
            "labels of a stream cannot be kept"
        )
    return data, default_collate


def training_part(given: Any) -> Any:
    """Return the training data of what a user's ``load_data`` gives: itself, or the first of a tuple."""
    return given[0] if isinstance(given, tuple) and not _is_arrays(given) else given


def _is_arrays(data: Any) -> bool:
    arrays = isinstance(data, tuple | list) and len(data) == 2
    return arrays and all(isinstance(part, Tensor | np.ndarray) for part in data)


def fetch(data: Any, numbers: Sequence[int]) -> list[Any]:
    """Return rows by number, all at once where the data set can."""
    many = getattr(data, "__getitems__", None)
    return list(many(numbers)) if callable(many) else [data[number] for number in numbers]


def place_of(row: Any, label: Place | None) -> Place:
    """Return where in a row its label is: a key, or a position."""
    if isinstance(row, Mapping):
        found = [key for key in (KEYS if label is None else (label,)) if key in row]
        if found:
            return found[0]
        raise ArgumentError(f"data: no label among the keys {', '.join(map(str, row))[:120]}; name it with label=")
    place = 1 if label is None else label
    if isinstance(row, tuple | list) and isinstance(place, int) and -len(row) <= place < len(row):
        return place
    raise ArgumentError(f"data: expected rows (x, label) or mappings with a label, got {type(row).__name__}")


def class_of(value: Any, number: int) -> int:
    """Return a label as a class number."""
    try:
        single = value.item() if isinstance(value, Tensor | np.ndarray | np.generic) else value
        if int(single) == single:
            return int(single)
    except (TypeError, ValueError, RuntimeError):
        pass
    raise DataError(f"data: row {number}: the label must be one class number, got {str(value)[:60]!r}")


def classes_of(value: Any) -> NDArray[np.int64]:
    """Return a column of labels as class numbers."""
    return np.asarray(value.cpu() if isinstance(value, Tensor) else value).reshape(-1).astype(np.int64)


def like(old: Any, new: Any) -> Any:
    """Return new labels in the container and type of the old ones.

    >>> like(3, 5), like(torch.tensor([1.0]), 0), like([1, 2], np.array([0, 2]))
    (5, tensor([0.]), [0, 2])
    """
    if isinstance(old, Tensor):
        return torch.as_tensor(np.array(new), dtype=old.dtype, device=old.device).reshape(old.shape)
    if isinstance(old, np.ndarray):
        return np.asarray(new, old.dtype).reshape(old.shape)
    return [type(each)(one) for each, one in zip(old, new, strict=True)] if isinstance(old, list) else type(old)(new)


def replaced(row: Any, place: Any, value: Any) -> Any:
    """Return a row with another value at one place; the given row stays as it is."""
    if isinstance(row, Mapping):
        return {**row, place: value}
    values = list(row)
    values[place] = value
    if isinstance(row, list):
        return values
    return row._make(values) if hasattr(row, "_make") else tuple(values)


def labels_of(data: Any, label: Place | None = None) -> NDArray[np.int64]:
    """Return the labels of all rows, read row by row: what is given for training is what counts."""
    rows, _ = as_rows(data)
    found = np.empty(len(rows), np.int64)
    for number in range(len(rows)):
        row = rows[number]
        found[number] = class_of(row[place_of(row, label)], number)
    return found
