"""Checks of every value that enters the core.

A wrong *argument* (``tau = 5``, lengths that differ) is a mistake in the calling code and raises `ArgumentError`. A bad
*value* (NaN in a posterior, a label out of range) comes from the data or from a received model and gives a `Refusal`:
nothing is re-labelled, and the reason and the row are recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError

ROW_SUM_TOLERANCE = 0.05  # people round their probabilities


@dataclass(frozen=True)
class Refusal:
    """Why nothing was re-labelled, and the first offending sample (None if there is none)."""

    reason: str
    detail: str
    index: int | None

    def __str__(self) -> str:
        place = "" if self.index is None else f"row {self.index}: "
        return f"{self.reason}: {place}{self.detail}"


def as_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """Return `value` as an array, without a copy if it already is one, or raise."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ArgumentError("its rows differ in length", argument=name) from None


def refuse_posterior(Q: NDArray[Any], num_classes: int) -> Refusal | None:
    """Return why `Q` is not a posterior of `num_classes` columns, or None if it is one."""
    first = 0 if Q.size else None
    if Q.ndim != 2 or Q.shape[1] != num_classes:
        if Q.ndim == 1 and Q.size:
            what = f"expected one column per class, shape (n, C), got {Q.shape}"
            return Refusal("wrong width", f"{what}; with two classes: numpy.column_stack([1 - p, p])", first)
        return Refusal("wrong width", f"expected shape (n, {num_classes}), got {Q.shape}", first)
    if Q.dtype.kind != "f":
        return Refusal("wrong type", f"expected floating-point probabilities, got {Q.dtype}", first)
    with np.errstate(invalid="ignore", over="ignore"):  # the refusal says what is wrong, in one line
        total = Q.sum(axis=1, dtype=np.float64)
    off = ~(np.abs(total - 1.0) <= ROW_SUM_TOLERANCE)  # written so that NaN counts as off
    if not off.any() and (Q.size == 0 or Q.min() >= 0):
        return None
    return _first_bad_row(Q, off, total)


def _first_bad_row(Q: NDArray[Any], off: NDArray[np.bool_], total: NDArray[np.float64]) -> Refusal:
    finite = np.isfinite(Q)
    i = int(np.argmax(off | (Q < 0).any(axis=1) | ~finite.all(axis=1)))
    if not finite[i].all():
        j = int(np.argmin(finite[i]))
        return Refusal("not finite", f"column {j} is {Q[i, j]}", i)
    if Q[i].min() < 0:
        j = int(np.argmax(Q[i] < 0))
        return Refusal("not normalised", f"column {j} is negative ({Q[i, j]:.6g})", i)
    per_cent = abs(total[i] - 100) <= 100 * ROW_SUM_TOLERANCE
    hint = "divide per cent by 100" if per_cent else "if these are logits, take the softmax first"
    return Refusal("not normalised", f"expected a sum of 1, got {total[i]:.6g}; {hint}", i)


def refuse_labels(y: NDArray[Any], num_classes: int) -> Refusal | None:
    """Return which label is not one of 0 to `num_classes` - 1, or None if all are."""
    bad = (y < 0) | (y >= num_classes)
    if not bad.any():
        return None
    i = int(np.argmax(bad))
    return Refusal("label out of range", f"expected a label from 0 to {num_classes - 1}, got {y[i]}", i)


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN or the NA of pandas."""
    return label is None or type(label).__name__ == "NAType" or label != label


def as_labels(labels: ArrayLike) -> NDArray[Any]:
    """Return `labels` as a one-dimensional integer array of its own dtype, or raise."""
    y = as_array("labels", labels)
    if y.ndim != 1:
        raise ArgumentError(f"expected one dimension, got shape {y.shape}", argument="labels")
    if y.size == 0 and y.dtype.kind == "f":
        return y.astype(np.int64)  # an empty list has no dtype of its own
    if y.dtype.kind not in "iu":
        is_text = y.dtype.kind in "UT" or (y.dtype.kind == "O" and any(isinstance(label, str) for label in y))
        how = "; for class names in the order of the posterior's columns: [names.index(label) for label in labels]"
        raise ArgumentError(f"expected integers, got {y.dtype}{how if is_text else ''}", argument="labels")
    return y


def check_seed(seed: Any) -> np.random.Generator:
    """Return the generator of a seed, or raise."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ArgumentError(f"expected an integer >= 0, or a NumPy generator, got {seed!r}", argument="seed") from None


def check_array(name: str, value: ArrayLike, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Return `value` as an array of that shape and dtype, or raise; booleans are not converted to numbers or back."""
    array = as_array(name, value)
    if array.shape != shape:
        raise ArgumentError(f"expected shape {shape}, got {array.shape}", argument=name)
    if dtype is np.bool_ and array.dtype != np.bool_:
        raise ArgumentError(f"expected booleans, got {array.dtype}", argument=name)
    if dtype is np.float64 and array.dtype.kind not in "fiu":
        raise ArgumentError(f"expected numbers, got {array.dtype}", argument=name)
    if dtype is np.float64 and not np.isfinite([array.min(initial=0), array.max(initial=0)]).all():
        raise ArgumentError("expected finite numbers, got NaN or infinity", argument=name)
    return array.astype(dtype, copy=False)
