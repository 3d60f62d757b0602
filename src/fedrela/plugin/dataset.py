"""Data sets with labels: the label of a row, and `RelabeledDataset`, which returns the current labels instead."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)

from fedrela.errors import ArgumentError, DataError
from fedrela.text import one_line, printable, shown

KEYS = ("label", "labels", "y", "target", "targets")  # usual names of the label in a mapping
LabelKey = int | str
# Methods of data sets that return another data set, which would have the original labels.
DERIVING_METHODS = frozenset({
    "batch", "filter", "flatten", "iter", "map", "remove_columns", "rename_column", "select", "shard", "shuffle",
    "skip", "sort", "take", "to_dict", "to_iterable_dataset", "to_list", "to_pandas", "train_test_split", "with_format",
    "with_transform",
})  # fmt: skip


class LabelSource(Protocol):
    """Current and original labels, such as a `fedrela.Ledger`."""

    @property
    def labels(self) -> NDArray[Any]:
        """The current labels."""

    @property
    def original(self) -> NDArray[Any]:
        """The labels as they were given."""


class RelabeledDataset(Dataset[Any]):
    """Any map-style data set, with the current labels in place of its own.

    Rows keep their form and labels their type. Every row's own label is compared with the one that the new label
    replaces, so other data, or the same data in another order, are refused. Everything else is passed through.

    Parameters
    ----------
    data
        A data set with a length and numbered rows (tuples or mappings), or tensors ``(X, y)``.
    source
        A ledger, or anything with ``labels`` and ``original``; None for the data set's own labels.
    label
        Key or position of the label in a row. By default the second position, or the key ``label``, ``labels``,
        ``y``, ``target`` or ``targets``.

    Examples
    --------
    >>> import fedrela
    >>> done = fedrela.relabel([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]], [0, 0, 0, 1], tau=0.5, seed=1)
    >>> rows = [("a", 0), ("b", 0), ("c", 0), ("d", 1)]
    >>> list(RelabeledDataset(rows, done.ledger)), done.moved.tolist()
    ([('a', 0), ('b', 1), ('c', 0), ('d', 1)], [1])
    """

    def __init__(self, data: Any, source: LabelSource | None = None, *, label: LabelKey | None = None) -> None:
        self._data, _ = as_rows(data)
        self._label = label
        self.use(source)

    def use(self, source: LabelSource | None) -> None:
        """Use other labels; None for the data set's own."""
        self._changed = source is not None
        if source is None:
            return
        self._labels, self._original = (np.asarray(each, np.int64) for each in (source.labels, source.original))
        if len(self._labels) != len(self):
            raise DataError(f"data: expected {len(self._labels)} rows, as many as there are labels, got {len(self)}")

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: Any) -> Any:
        row = self._data[index]
        if not self._changed:
            return row
        if isinstance(index, str):
            first = self._data[0] if len(self) else None
            is_label = isinstance(first, Mapping) and index == label_key(first, self._label)
            return self._column(row, self._is_own(row)) if is_label else row
        if isinstance(index, int | np.integer):
            return self._row(row, int(index))
        numbers = np.arange(len(self))[np.asarray(index) if isinstance(index, Tensor) else index]
        return self._part(row, numbers) if numbers.ndim else self._row(row, int(numbers))

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """Return several rows: PyTorch's loaders call this."""
        rows = rows_at(self._data, numbers)
        return [self._row(*each) for each in zip(rows, numbers, strict=True)] if self._changed else rows

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in DERIVING_METHODS and hasattr(self._data, name):
            raise AttributeError(f"{name}: would lose the current labels; call it before RelabeledDataset")
        value = getattr(self._data, name)
        if not self._changed or name not in (*KEYS, "tensors"):
            return value
        if name == "tensors":
            return self._part(value, np.arange(len(self)))
        columns = {key: getattr(self._data, key, None) for key in KEYS}
        is_own = {
            key: self._is_own(each)
            for key, each in columns.items()
            if isinstance(each, Sized) and len(each) == len(self)
        }
        if name not in is_own or (not is_own[name].all() and any(each.all() for each in is_own.values())):
            return value  # no column, or another one is the label
        return self._column(value, is_own[name])

    def _is_own(self, column: Any) -> NDArray[np.bool_]:
        """Whether the values of a column are the original labels, for each row."""
        try:
            return np.asarray(as_classes(column) == self._original)
        except (TypeError, ValueError):
            return np.zeros(len(self), np.bool_)

    def _column(self, column: Any, is_own: NDArray[np.bool_]) -> Any:
        """Return the label column with the current labels."""
        if not is_own.all():
            raise _other_data(int(is_own.argmin()))
        column = column if isinstance(column, Tensor | np.ndarray | list) else list(column)
        return cast_like(column, self._labels)

    def _row(self, row: Any, number: int) -> Any:
        """Return one row with its current label."""
        key = label_key(row, self._label)
        own = as_class(row[key], number)
        if own != self._original.item(number):
            raise _other_data(number % len(self))
        new = self._labels.item(number)
        return row if new == own else with_label(row, key, cast_like(row[key], new))

    def _part(self, part: Any, numbers: NDArray[np.int64]) -> Any:
        """Return several rows, as a list or as columns, with their current labels."""
        if isinstance(part, list):
            return [self._row(*each) for each in zip(part, numbers.tolist(), strict=True)]
        key = label_key(part, self._label)
        wrong = as_classes(part[key]) != self._original[numbers]
        if wrong.any():
            raise _other_data(int(numbers[wrong.argmax()]))
        return with_label(part, key, cast_like(part[key], self._labels[numbers]))


def _other_data(number: int) -> DataError:
    return DataError(
        f"data: row {number} does not have the label it had when it was re-labelled; is it another data set, or the "
        "same one in another order?"
    )


def relabeled_loader(
    loader: DataLoader[Any], source: LabelSource | None, *, label: LabelKey | None = None
) -> DataLoader[Any]:
    """Return a loader like `loader`, in the same order and batches, over its data set with the current labels.

    Parameters
    ----------
    loader
        A loader of a map-style data set. Its sampler must reach every row; for a part of them, give a `Subset`.
    source, label
        As for `RelabeledDataset`.

    Examples
    --------
    >>> import fedrela
    >>> done = fedrela.relabel([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]], [0, 0, 0, 1], tau=0.5, seed=1)
    >>> loader = DataLoader([("a", 0), ("b", 0), ("c", 0), ("d", 1)], batch_size=2)
    >>> [labels.tolist() for rows, labels in relabeled_loader(loader, done.ledger)]
    [[0, 1], [0, 1]]
    """
    if not isinstance(loader, DataLoader):
        raise ArgumentError(f"expected a torch DataLoader, got {type(loader).__name__}", argument="loader")
    _check_sampler(loader)
    order: dict[str, Any] = {"batch_sampler": loader.batch_sampler}
    if loader.batch_sampler is None:
        order = {"batch_size": None, "sampler": loader.sampler}
    same = ("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context",
            "generator", "prefetch_factor", "persistent_workers")  # fmt: skip
    options = {name: getattr(loader, name) for name in same}
    return DataLoader(RelabeledDataset(loader.dataset, source, label=label), **order, **options)


def as_rows(data: Any) -> tuple[Any, Callable[[list[Any]], Any]]:
    """Return a user's data as a map-style data set, and the function that collates its rows to batches."""
    if isinstance(data, DataLoader):
        rows, _ = as_rows(data.dataset)
        _check_sampler(data)
        return rows, default_collate if data.batch_sampler is None else data.collate_fn
    if _is_arrays(data):
        return _tensors(*data), default_collate
    numbered = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    if isinstance(data, IterableDataset | Mapping) or _is_array(data) or not numbered:
        advice = "labels of a stream cannot be stored"
        if isinstance(data, Mapping):
            advice = f"give one of its parts: {printable(', '.join(map(str, data)), 120)}"
        elif _is_array(data):
            advice = "give it with its labels, as a pair (X, y)"
        what = f"expected a data set with a length and numbered rows, got {type(data).__name__}; {advice}"
        raise ArgumentError(what, argument="data")
    return data, default_collate


def _check_sampler(loader: DataLoader[Any]) -> None:
    """Raise if a loader's sampler never draws some of the rows: they may be somebody else's.

    A sampler of the user's own may draw other rows in every epoch, so a short one only gives a warning.
    """
    sampler: Any = getattr(loader.batch_sampler, "sampler", loader.sampler)
    if not isinstance(sampler, Sized) or not isinstance(loader.dataset, Sized):
        return
    drawn, n, known = len(sampler), len(loader.dataset), True
    if isinstance(sampler, RandomSampler):  # others in every epoch
        drawn = len(sampler.data_source)
    elif isinstance(sampler, WeightedRandomSampler):
        drawn = int(sampler.weights.count_nonzero())
    else:
        known = isinstance(sampler, SubsetRandomSampler | SequentialSampler)
    if drawn < n:
        what = f"its {type(sampler).__name__} draws {drawn:,} of {n:,} rows"
        if known:
            raise ArgumentError(f"{what}; give a loader of Subset(data, indices)", argument="data")
        advice = "all rows count as this client's; if some are not, give a loader of Subset(data, indices)"
        warnings.warn(f"data: {what} per epoch; {advice}", stacklevel=4)


def _tensors(x: Any, y: Any) -> TensorDataset:
    if len(x) != len(y):
        raise DataError(f"data: expected one label per row, got {len(x):,} rows and {len(y):,} labels")
    arrays = [np.array(part) if hasattr(part, "iloc") else part for part in (x, y)]
    if len(y) and getattr(arrays[1].dtype, "kind", "") in tuple("OSTU"):
        as_class(arrays[1][0], 0)
    try:
        return TensorDataset(*map(torch.as_tensor, arrays))
    except TypeError as error:
        raise DataError(f"data: cannot be converted to tensors: {one_line(error, 60)}") from None


def training_part(given: Any) -> Any:
    """Return the training data in the result of a user's ``load_data``: all of it, or the first item of a tuple."""
    return given[0] if isinstance(given, tuple) and not _is_arrays(given) else given


def _is_arrays(data: Any) -> bool:
    return isinstance(data, tuple | list) and len(data) == 2 and all(map(_is_array, data))


def _is_array(data: Any) -> bool:
    return isinstance(data, Tensor | np.ndarray) or hasattr(data, "iloc")  # or a frame or series of pandas


def rows_at(data: Any, numbers: Sequence[int]) -> list[Any]:
    """Return rows by number, all at once if the data set supports it."""
    many = getattr(data, "__getitems__", None)
    return list(many(numbers)) if callable(many) else [data[number] for number in numbers]


def label_key(row: Any, label: LabelKey | None) -> LabelKey:
    """Return the key or position of the label in a row."""
    if isinstance(row, Mapping):
        for key in KEYS if label is None else (label,):
            if key in row:
                return key
        keys = printable(", ".join(map(str, row)), 120)
        raise ArgumentError(f"no label among the keys {keys}; name it with label=", argument="data")
    position = 1 if label is None else label
    if isinstance(row, tuple | list) and isinstance(position, int) and -len(row) <= position < len(row):
        return position
    raise ArgumentError(f"expected rows (x, label) or mappings with a label, got {type(row).__name__}", argument="data")


def as_class(value: Any, number: int) -> int:
    """Return a label as a class number."""
    single = value
    try:
        single = value.item() if isinstance(value, Tensor | np.ndarray | np.generic) else value
        if int(single) == single:
            return int(single)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    raise DataError(f"data: row {number}: expected one class number as label, got {shown(single)}; {_advice(single)}")


def _advice(value: Any) -> str:
    """Return advice for a label that is not a class number."""
    if isinstance(value, str):
        return "number the classes from 0, and keep their names as class_names="
    try:
        numbers = np.asarray(value, np.float64).reshape(-1)
    except (TypeError, ValueError):
        return "label= names the key or position of the label in a row"
    if np.isnan(numbers).any():
        return "a missing label: leave the row out"
    if numbers.size > 1 and set(numbers.tolist()) <= {0.0, 1.0}:
        one_hot = "a one-hot label: give its argmax"
        return one_hot if numbers.sum() == 1 else "samples of several classes (multi-label) cannot be re-labelled"
    return "numbers to predict (regression) cannot be re-labelled; label= names another key or position of the label"


def own_label(row: Any, number: int, label: LabelKey | None) -> int:
    """Return the label that a row of a data set carries."""
    return as_class(row[label_key(row, label)], number)


def as_classes(value: Any) -> NDArray[np.int64]:
    """Return a column of labels as class numbers."""
    return np.asarray(value.cpu() if isinstance(value, Tensor) else value).reshape(-1).astype(np.int64)


def cast_like(old: Any, new: Any) -> Any:
    """Return new labels in the container and type of the old ones.

    >>> cast_like(3, 5), cast_like(torch.tensor([1.0]), 0), cast_like([1, 2], np.array([0, 2]))
    (5, tensor([0.]), [0, 2])
    """
    if isinstance(old, Tensor):
        return torch.as_tensor(np.array(new), dtype=old.dtype, device=old.device).reshape(old.shape)
    if isinstance(old, np.ndarray):
        return np.asarray(new, old.dtype).reshape(old.shape)
    if isinstance(old, list):
        return [cast_like(each, one) for each, one in zip(old, new, strict=True)]
    return type(old)(new)


def with_label(row: Any, key: Any, value: Any) -> Any:
    """Return a copy of a row with another label."""
    if isinstance(row, Mapping):
        return {**row, key: value}
    values = list(row)
    values[key] = value
    if isinstance(row, list):
        return values
    return row._make(values) if hasattr(row, "_make") else tuple(values)
