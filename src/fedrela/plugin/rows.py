"""The rows that labels belong to: digests of inputs, ids, and whether two reads of a row agree."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedrela.core import Ledger
from fedrela.errors import ArgumentError, DataError
from fedrela.models.runtime import restored_globals
from fedrela.plugin.dataset import LabelKey, as_rows, label_key, own_label, rows_at
from fedrela.text import shown

SAMPLED_ROWS = 16  # rows that are read twice: a random flip would go unnoticed once in 65,536 times
DEEPEST = 8


class InputsDigest:
    """SHA-256 of rows without their labels, in their order.

    >>> first, second = InputsDigest(), InputsDigest()
    >>> first.add((torch.tensor([1.0, 2.0]), 0), None)
    >>> second.add((torch.tensor([1.0, 2.0]), 1), None)
    >>> first.hexdigest() == second.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, row: Any, label: LabelKey | None) -> None:
        """Add the next row."""
        key = label_key(row, label)
        if isinstance(row, Mapping):
            inputs: Any = {name: value for name, value in row.items() if name != key}
        else:
            inputs = [value for place, value in enumerate(row) if place != int(key) % len(row)]
        _feed(self._sha, inputs)

    def hexdigest(self) -> str:
        """Return the digest of the rows so far."""
        return self._sha.hexdigest()


def _feed(sha: Any, value: Any, depth: int = 0) -> None:
    """Update a digest with a value: tensors, arrays, images, strings, numbers, and collections or objects of these."""
    if isinstance(value, Tensor):
        value = as_numpy(value)
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        sha.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        _feed(sha, [part for pair in value.items() for part in pair], depth)
    elif isinstance(value, list | tuple | np.ndarray):
        sha.update(f"[{len(value)}]".encode())
        for each in value if depth < DEEPEST else ():
            _feed(sha, each, depth + 1)
    elif value is None or isinstance(value, str | bytes | int | float | complex):
        sha.update(f"{type(value).__name__} {value!r}".encode())
    elif hasattr(value, "tobytes") and hasattr(value, "size"):  # an image of Pillow
        sha.update(f"{getattr(value, 'mode', '')}{value.size}".encode() + value.tobytes())
    else:  # a user-defined object: its attributes, if it has any
        sha.update(type(value).__qualname__.encode())
        _feed(sha, getattr(value, "__dict__", None), depth + 1) if depth < DEEPEST else None


def as_numpy(value: Tensor) -> NDArray[Any]:
    """Return a tensor as an array, whatever its device and layout; NumPy has no bfloat16."""
    plain = value.detach().cpu()
    plain = plain.to_dense() if plain.is_sparse else plain
    return np.asarray((plain.float() if plain.dtype == torch.bfloat16 else plain).numpy())


def are_finite(value: Any, depth: int = 0) -> bool:
    """Whether no number in a row is NaN or infinite.

    >>> are_finite((torch.ones(2), "a", 1)), are_finite({"x": [0.5, torch.tensor(torch.nan)]})
    (True, False)
    """
    if isinstance(value, Tensor):
        value = as_numpy(value)
    if isinstance(value, np.ndarray | np.generic | float) and np.asarray(value).dtype != object:
        return np.asarray(value).dtype.kind not in "fc" or bool(np.isfinite(value).all())
    parts = list(value.values()) if isinstance(value, Mapping) else value
    if depth == DEEPEST or not isinstance(parts, list | tuple | np.ndarray):
        return True
    return all(are_finite(each, depth + 1) for each in (parts.flat if isinstance(parts, np.ndarray) else parts))


def sample_rows(data: Any, label: LabelKey | None) -> str:
    """Return the digest of a few rows spread over the data, and check that they are the same when read twice."""
    rows, collate = as_rows(data)
    if not len(rows):
        raise ArgumentError("expected at least one row, got none", argument="data")
    numbers = _sampled(len(rows))
    with same_random_numbers():
        first, again = rows_at(rows, numbers), rows_at(rows, numbers)
        for row, other, number in zip(first, again, numbers, strict=True):
            own_label(row, number, label)
            if _digest(row) != _digest(other):
                raise _augmented(f"row {number} differs")
        batch, other = _batch(collate, first), _batch(collate, again)
        if _digest(batch) != _digest(other):
            raise _augmented("a batch differs")
    return _digest(first)


def _sampled(rows: int) -> list[int]:
    """Return the numbers of a few rows, spread over all of them."""
    return [int(number) for number in np.unique(np.linspace(0, rows - 1, SAMPLED_ROWS, dtype=int))]


def _digest(value: Any) -> str:
    sha = hashlib.sha256()
    _feed(sha, value)
    return sha.hexdigest()


def _batch(collate: Any, rows: list[Any]) -> Any:
    try:
        return collate(rows)
    except (TypeError, ValueError, RuntimeError, KeyError, IndexError) as error:
        what = f"its rows do not make a batch: {shown(str(error))}; give a DataLoader with a collate_fn that does"
        raise ArgumentError(what, argument="data") from None


def _augmented(what: str) -> ArgumentError:
    return ArgumentError(
        f"{what} between two reads: random augmentation? The model must score the rows as they are; give them without "
        "it, in the same order, as scoring_data=",
        argument="data",
    )


@contextlib.contextmanager
def same_random_numbers() -> Iterator[None]:
    """Restore the generators of PyTorch, NumPy and Python after the block."""
    with torch.random.fork_rng(devices=[]), restored_globals():
        yield


def check_same_rows(data: Any, scoring_data: Any, label: LabelKey | None, every: bool = False) -> None:
    """Raise unless the rows to score are those of the training data: as many, with the same labels.

    Labels are compared in a few rows, or in `every` one.
    """
    train, clean = as_rows(data)[0], as_rows(scoring_data)[0]
    if len(train) != len(clean):
        what = f"expected {len(train)} rows, as many as the training data, got {len(clean)}"
        raise ArgumentError(what, argument="scoring_data")
    numbers = range(len(train)) if every else _sampled(len(train))
    with same_random_numbers():
        own, other = ([own_label(rows[number], number, label) for number in numbers] for rows in (train, clean))
    for number, first, second in zip(numbers, own, other, strict=True):
        if first != second:
            what = f"row {number} has label {second} here and {first} in the training data; keep their order"
            raise ArgumentError(what, argument="scoring_data")


def row_ids(ids: Sequence[Any] | None, rows: int) -> tuple[str, ...]:
    """Return one distinct name per row; nothing if the owner has none.

    >>> row_ids([17, 23], 2)
    ('17', '23')
    """
    if ids is None:
        return ()
    names = tuple(map(str, ids.tolist() if isinstance(ids, np.ndarray | Tensor) else ids))
    if len(names) != rows or len(set(names)) != rows:
        raise ArgumentError(
            f"expected {rows} distinct ids, one per row, got {len(set(names))} in {len(names)}", argument="ids"
        )
    return names


def reorder(ledger: Ledger, ids: tuple[str, ...], where: object) -> Ledger:
    """Return a ledger for the current order of the rows, if both it and the rows have ids."""
    if not ids or not ledger.ids or ids == ledger.ids:
        return ledger
    try:
        return ledger.for_rows(ids)
    except DataError as error:
        advice = "if rows came or left, undo these labels with a reason (LabelStore.undo, or fedrela ledger undo)"
        raise DataError(f"{where}: {error}; {advice}, or use another experiment name, which makes new ones") from None
