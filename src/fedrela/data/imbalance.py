"""Global imbalance: how many samples of each class are kept, and which."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_choice, check_integer
from fedrela.data.checks import Kinds, check_kind, check_labels, unused_by_kind
from fedrela.errors import ArgumentError, DataError
from fedrela.options import MOST_SAMPLES, Options, option
from fedrela.streams import stream
from fedrela.text import plural, shown

Ints = NDArray[np.int64]
KINDS: Kinds = {
    "natural": ((), ()),
    "step": (("ratio",), ("minority", "side", "largest", "order")),
    "long_tail": (("factor",), ("largest", "order")),
}
SIDES = ("last", "first")
ORDERS = ("natural", "random")


def long_tail_counts(num_classes: int, largest: int, factor: float) -> NDArray[np.int64]:
    """Class counts that fall exponentially from `largest` to ``largest / factor``.

    ``n_c = floor(largest * (1 / factor)^(c / (C - 1)))``, evaluated as the official code does: a power of floats,
    then truncation.

    Parameters
    ----------
    num_classes, largest
        C, and the count of the first class.
    factor
        The imbalance factor IF, at least 1.

    Examples
    --------
    >>> long_tail_counts(10, 5000, 100).tolist()
    [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    """
    _check(num_classes, largest, "factor", factor)
    share = 1.0 / factor
    return np.array([int(largest * share ** (c / max(num_classes - 1.0, 1.0))) for c in range(num_classes)])


def step_counts(
    num_classes: int, largest: int, ratio: float, minority: float | Sequence[int] = 0.5, *, side: str = "last"
) -> NDArray[np.int64]:
    """Class counts with two steps: `largest` for majority classes, ``floor(largest / ratio)`` for minority classes.

    Parameters
    ----------
    num_classes, largest
        C, and the count of a majority class.
    ratio
        The imbalance ratio IR, at least 1.
    minority
        Class ids, or a share of the classes, which are then the last ones: 0.3 of 10 classes are 7, 8 and 9.
    side
        ``"first"`` takes a share from the first classes instead.

    Examples
    --------
    >>> step_counts(10, 5000, 20, minority=0.3).tolist()
    [5000, 5000, 5000, 5000, 5000, 5000, 5000, 250, 250, 250]
    >>> step_counts(4, 100, 10, minority=[0]).tolist()
    [10, 100, 100, 100]
    """
    _check(num_classes, largest, "ratio", ratio)
    counts = np.full(num_classes, largest, np.int64)
    counts[minority_classes(num_classes, minority, side=side)] = int(largest / ratio)
    return counts


def minority_classes(num_classes: int, minority: float | Sequence[int], *, side: str = "last") -> NDArray[np.int64]:
    """Return the ids of the minority classes, from ids or from a share of the last or first classes.

    Parameters
    ----------
    num_classes
        C.
    minority, side
        As for `step_counts`.

    Examples
    --------
    >>> minority_classes(10, 0.3).tolist(), minority_classes(10, [2, 0]).tolist()
    ([7, 8, 9], [0, 2])
    >>> minority_classes(10, 0.3, side="first").tolist()
    [0, 1, 2]
    """
    check_choice("side", side, SIDES)
    if not isinstance(minority, Iterable):
        if isinstance(minority, bool) or not 0 <= minority <= 1:
            raise ArgumentError(f"expected class ids or a share from 0 to 1, got {minority!r}", argument="minority")
        number = int(np.floor(num_classes * float(minority) + 0.5))
        if minority > 0 and number == 0:
            what = f"{minority} of {num_classes} classes are none"
            raise ArgumentError(f"{what}; give a list of class ids, such as [{num_classes - 1}]", argument="minority")
        return np.arange(number) if side == "first" else np.arange(num_classes - number, num_classes)
    ids = sorted(int(c) for c in minority)
    if len(set(ids)) != len(ids) or any(not 0 <= c < num_classes for c in ids):
        raise ArgumentError(f"expected different class ids from 0 to {num_classes - 1}, got {ids}", argument="minority")
    if side == "first":
        what = f"applies only to a share of the classes, but minority is {ids}"
        raise ArgumentError(f"{what}; leave it out", argument="side")
    return np.array(ids, np.int64)


def class_order(num_classes: int, order: str | Sequence[int] = "natural", *, seed: int = 0) -> NDArray[np.int64]:
    """Return the classes from head to tail: the first class gets the first count of a profile.

    Parameters
    ----------
    num_classes
        C.
    order
        ``"natural"`` (by id), ``"random"`` (drawn from `seed`), or every class id once.
    seed
        Seed of a random order.

    Examples
    --------
    >>> class_order(3).tolist(), class_order(3, [2, 0, 1]).tolist()
    ([0, 1, 2], [2, 0, 1])
    """
    if isinstance(order, str):
        check_choice("order", order, ORDERS)
        if order == "natural":
            return np.arange(num_classes)
        return stream(check_integer("seed", seed, 0), "class order").permutation(num_classes)
    ids = [int(c) for c in order]
    if sorted(ids) != list(range(num_classes)):
        raise ArgumentError(f"expected each class id from 0 to {num_classes - 1} once, got {ids}", argument="order")
    return np.array(ids, np.int64)


def subsample(labels: ArrayLike, counts: ArrayLike, *, seed: int) -> NDArray[np.int64]:
    """Draw exactly ``counts[c]`` samples of every class c and return their sorted indices.

    The draw of a class depends on the seed, its id and its samples alone.

    Parameters
    ----------
    labels : (n,) integers from 0 to C - 1
        The class of each sample.
    counts : (C,) integers
        How many samples of each class to draw.
    seed
        Seed of the draw.

    Examples
    --------
    >>> subsample([0, 0, 1, 1, 1], [2, 1], seed=1).tolist()[:2]
    [0, 1]
    """
    numbers, seed = np.asarray(counts), check_integer("seed", seed, 0)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or (numbers.size and numbers.min() < 0):
        raise ArgumentError(f"expected one integer >= 0 per class, got {numbers.tolist()}", argument="counts")
    y = check_labels(labels, numbers.size)
    kept = [np.empty(0, np.int64)]
    for c, number in enumerate(numbers):
        ids = np.flatnonzero(y == c)
        if number > ids.size:
            what = f"class {c} has {ids.size} samples, but {number} were requested"
            raise DataError(f"{what}; lower `largest`", argument="imbalance")
        kept.append(stream(seed, "imbalance", client=c).choice(ids, number, replace=False))
    return np.sort(np.concatenate(kept))


class Selection(NamedTuple):
    """The samples that imbalance keeps.

    Attributes
    ----------
    indices
        Their sorted indices.
    counts
        How many there are of each class, ``(C,)``.
    minority
        Ids of the minority classes where the kind defines them, or None.

    Examples
    --------
    >>> chosen = Imbalance("step", ratio=2, minority=(1,)).apply([0, 0, 1, 1], 2, seed=1)
    >>> chosen.indices.size, chosen.counts.tolist(), chosen.minority.tolist()
    (3, [2, 1], [1])
    """

    indices: NDArray[np.int64]
    counts: NDArray[np.int64]
    minority: NDArray[np.int64] | None


def _class_ids(value: Sequence[Any]) -> tuple[int, ...]:
    for i, c in enumerate(value):
        if type(c) is not int or c < 0:
            raise ArgumentError(f"expected a class id >= 0, got {shown(c)}", item=(i,))
    return tuple(value)


def _check_minority(value: Any) -> float | tuple[int, ...]:
    if isinstance(value, list | tuple):
        ids = _class_ids(value)
        minority_classes(max(ids, default=0) + 1, ids)
        return ids
    if isinstance(value, float) and 0 <= value <= 1:
        return value
    if type(value) is int and value >= 0:
        what = f"expected a list of class ids, or a share from 0 to 1, got {value}"
        raise ArgumentError(f"{what}; write 0.3 for a share, [{value}] for a class")
    raise ArgumentError(f"expected a list of class ids, or a share from 0 to 1, got {shown(value)}")


def _check_order(value: Any) -> str | tuple[int, ...]:
    if isinstance(value, list | tuple):
        class_order(len(value), _class_ids(value))
        return tuple(value)
    return check_choice("order", value, ORDERS, ", or a list of class ids,")


@dataclass(frozen=True)
class Imbalance(Options):
    """Global imbalance: how many samples of each class are kept; each kind has its own options.

    A share of minority classes follows `order`; explicit ids do not. In a balanced data set, `largest` defaults to the
    size of a class, as in the official code.

    Parameters
    ----------
    kind
        ``natural``: as the source is; ``step``: two levels; ``long_tail``: falling exponentially.
    ratio, minority, side
        Of ``step``; see `step_counts`.
    factor
        Of ``long_tail``: largest over smallest class.
    largest
        Samples of the largest class; by default as many as every class allows.
    order
        Classes from head to tail; see `class_order`.

    Examples
    --------
    >>> long_tail = Imbalance("long_tail", factor=4)
    >>> long_tail.apply([0] * 8 + [1] * 8 + [2] * 8, 3, seed=1).counts.tolist()
    [8, 4, 2]
    """

    kind: str = option(
        "natural", "natural: as the source is; step: two levels; long_tail: falling exponentially", choices=tuple(KINDS)
    )
    ratio: float | None = option(None, "step: largest over smallest class", ge=1)
    minority: float | tuple[int, ...] = option(
        0.5,
        "step: ids of the minority classes, or their share of all classes",
        check=_check_minority,
        form="a list of class ids, or a share from 0 to 1",
    )
    side: str = option("last", "step: whether a share means the last classes or the first", choices=SIDES)
    factor: float | None = option(None, "long_tail: largest over smallest class", ge=1)
    largest: int | None = option(
        None, "samples of the largest class; left out: as many as every class allows", ge=1, le=MOST_SAMPLES
    )
    order: str | tuple[int, ...] = option(
        "natural",
        "classes from head to tail: natural (by id), random, or every id once",
        check=_check_order,
        form=f"one of {', '.join(ORDERS)}, or a list of class ids",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kind(self, KINDS)
        if isinstance(self.minority, tuple):
            minority_classes(max(self.minority, default=0) + 1, self.minority, side=self.side)

    def unused(self) -> dict[str, str]:
        """Return the options of other kinds."""
        return unused_by_kind(self, KINDS)

    def apply(self, labels: ArrayLike, num_classes: int, *, seed: int) -> Selection:
        """Choose the samples to keep.

        >>> Imbalance("step", ratio=3, minority=(1,)).apply([0, 0, 0, 1, 1, 1], 2, seed=1).counts.tolist()
        [3, 1]
        """
        y = check_labels(labels, num_classes)
        available = np.bincount(y, minlength=num_classes)
        if self.kind == "natural":
            return Selection(np.arange(available.sum()), available, None)
        if available.min() == 0:
            what = f"class {int(np.argmin(available))} has no samples; leave it out, or use kind = 'natural'"
            raise DataError(what, argument="imbalance")
        order = class_order(num_classes, self.order, seed=seed)
        minority = self._minority(order) if self.kind == "step" else None
        if minority is not None and not 0 < minority.size < num_classes:
            what = f"expected at least one of {num_classes} classes, and not all, got {minority.size}"
            raise ArgumentError(what, argument="minority")
        largest = self._feasible(order, available) if self.largest is None else self.largest
        counts = self._counts(order, largest)
        if counts.min() == 0:
            c = int(np.argmin(counts))
            why = f"would keep none of its {available[c]} samples with {largest} in the largest class"
            advice, least = "lower ratio or factor", int(np.argmin(available))
            if self.largest is None and available[least] < available.max():
                advice += f", or set largest: class {least} has only {plural(int(available[least]), 'sample')}"
            raise DataError(f"class {c} {why}; {advice}", argument="imbalance")
        return Selection(subsample(y, counts, seed=seed), counts, minority)

    def _minority(self, order: Ints) -> Ints:
        ids = minority_classes(order.size, self.minority, side=self.side)
        return np.sort(order[ids]) if not isinstance(self.minority, Iterable) else ids

    def _counts(self, order: Ints, largest: int) -> Ints:
        if self.ratio is not None:
            return step_counts(order.size, largest, self.ratio, self._minority(order).tolist())
        counts = np.empty(order.size, np.int64)
        counts[order] = long_tail_counts(order.size, largest, self.factor or 1.0)
        return counts

    def _feasible(self, order: Ints, available: Ints) -> int:
        """Return the largest count of a head class for which every class has enough samples, by bisection."""
        sizes = range(1, int(available.max()) + 1)
        return bisect_left(sizes, True, key=lambda largest: bool((self._counts(order, largest) > available).any()))


def _check(num_classes: int, largest: int, name: str, value: float) -> None:
    check_integer("num_classes", num_classes, 1)
    check_integer("largest", largest, 0)
    if not value >= 1:
        raise ArgumentError(f"expected largest over smallest class, at least 1, got {value!r}", argument=name)
