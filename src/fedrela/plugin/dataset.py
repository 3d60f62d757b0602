"""A data set whose labels are those in force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from fedrela.errors import ArgumentError, DataError
from fedrela.plugin.rows import KEYS, Place, as_rows, class_of, classes_of, fetch, like, place_of, replaced

# Methods of data sets that return a data set: with the original labels, if they were passed through.
MAKERS = frozenset({
    "batch", "filter", "flatten", "iter", "map", "remove_columns", "rename_column", "select", "shard", "shuffle",
    "skip", "sort", "take", "to_dict", "to_iterable_dataset", "to_list", "to_pandas", "train_test_split", "with_format",
    "with_transform",
})  # fmt: skip


class InForce(Protocol):
    """Labels and what they were: a `fedrela.Ledger`, for one."""

    @property
    def labels(self) -> NDArray[Any]:
        """The labels in force."""

    @property
    def original(self) -> NDArray[Any]:
        """The labels as they came."""


class RelabeledDataset(Dataset[Any]):
    """Any map-style data set, with the labels in force in place of its own.

    Rows keep their form and the label its type. Every row's own label is compared with the one the new label was made
    for, so that other data, or the same data in another order, are refused and never trained on with wrong labels.
    Everything else is passed through.

    Parameters
    ----------
    data
        A data set with a length and numbered rows (tuples or mappings), or tensors ``(X, y)``.
    source
        A ledger, or anything with ``labels`` and ``original``; None for the labels as they are.
    label
        Where a row has its label: a key, or a position. By default the second place, or the key ``label``, ``labels``,
        ``y``, ``target`` or ``targets``.

    Examples
    --------
    >>> import fedrela
    >>> done = fedrela.relabel([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]], [0, 0, 0, 1], tau=0.5, seed=1)
    >>> rows = [("a", 0), ("b", 0), ("c", 0), ("d", 1)]
    >>> list(RelabeledDataset(rows, done.ledger)), done.moved.tolist()
    ([('a', 0), ('b', 1), ('c', 0), ('d', 1)], [1])
    """

    def __init__(self, data: Any, source: InForce | None = None, *, label: Place | None = None) -> None:
        self._data, _ = as_rows(data)
        self._label = label
        self.use(source)

    def use(self, source: InForce | None) -> None:
        """Put other labels in force; None for the data set's own."""
        self._source = source
        self._labels = None if source is None else np.asarray(source.labels, np.int64)
        self._original = None if source is None else np.asarray(source.original, np.int64)
        if self._labels is not None and len(self._labels) != len(self._data):
            raise DataError(
                f"data: {len(self._data)} rows where the labels are for {len(self._labels)}; they belong to other data"
            )

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: Any) -> Any:
        row = self._data[index]
        if self._labels is None:
            return row
        if isinstance(index, str):
            return self._column(index, row)
        if isinstance(index, int | np.integer):
            return self._row(row, int(index))
        numbers = np.arange(len(self))[np.asarray(index) if isinstance(index, Tensor) else index]
        return self._part(row, numbers) if numbers.ndim else self._row(row, int(numbers))

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """Return several rows: PyTorch's loaders ask for them in this way."""
        rows = fetch(self._data, numbers)
        if self._labels is None:
            return rows
        return [self._row(row, number) for row, number in zip(rows, numbers, strict=True)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in MAKERS and hasattr(self._data, name):
            raise AttributeError(f"{name}: would lose the labels in force; call it before RelabeledDataset")
        value = getattr(self._data, name)
        if self._labels is None or (name not in KEYS and name != "tensors"):
            return value
        return self._column(name, value) if name in KEYS else self._part(value, np.arange(len(self)))

    def _column(self, name: str, column: Any) -> Any:
        """Return a column of the data set: that of the labels is the one in force."""
        if name not in (KEYS if self._label is None else (self._label, *KEYS)) or len(column) != len(self):
            return column
        column = column if isinstance(column, Tensor | np.ndarray | list) else list(column)
        return like(column, self._labels)

    def _row(self, row: Any, number: int) -> Any:
        """Return one row with its label in force."""
        assert self._labels is not None
        assert self._original is not None
        place = place_of(row, self._label)
        own = class_of(row[place], number)
        if own != self._original.item(number):
            raise _other_data(number % len(self))
        new = self._labels.item(number)
        return row if new == own else replaced(row, place, like(row[place], new))

    def _part(self, part: Any, numbers: NDArray[np.int64]) -> Any:
        """Return several rows, as a list of them or as columns, with their labels in force."""
        assert self._labels is not None
        assert self._original is not None
        if isinstance(part, list):
            return [self._row(*each) for each in zip(part, numbers.tolist(), strict=True)]
        place = place_of(part, self._label)
        wrong = classes_of(part[place]) != self._original[numbers]
        if wrong.any():
            raise _other_data(int(numbers[wrong.argmax()]))
        return replaced(part, place, like(part[place], self._labels[numbers]))


def _other_data(number: int) -> DataError:
    return DataError(
        f"data: row {number} does not have the label it had when labels were made; is it another data set, or the same "
        "one in another order?"
    )


def relabeled_loader(loader: DataLoader[Any], source: InForce | None, *, label: Place | None = None) -> DataLoader[Any]:
    """Return a loader like `loader`, in the same order and batches, over its data set with the labels in force."""
    if not isinstance(loader, DataLoader):
        raise ArgumentError(f"loader: expected a torch DataLoader, got {type(loader).__name__}")
    if loader.batch_sampler is None:
        order: dict[str, Any] = {"batch_size": None, "sampler": loader.sampler}
    else:
        order = {"batch_sampler": loader.batch_sampler}
    same = ("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context",
            "generator", "prefetch_factor", "persistent_workers")  # fmt: skip
    options = {name: getattr(loader, name) for name in same}
    return DataLoader(RelabeledDataset(loader.dataset, source, label=label), **order, **options)
