"""Argument checks of imbalance, partitions and sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_integer
from fedrela.core.input_checks import as_labels
from fedrela.errors import ArgumentError, DataError, WrongKeyError
from fedrela.options import expected, options_of, without_none

Kinds = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]  # kind -> required and optional options


def first(wrong: NDArray[np.bool_]) -> int | None:
    """Return the first index at which something is wrong, or None."""
    return int(np.argmax(wrong)) if wrong.any() else None


def repeated(names: Sequence[str]) -> str | None:
    """Return the first name that occurs more than once, or None."""
    if len(set(names)) == len(names):
        return None
    return next(name for name, times in Counter(names).items() if times > 1)


def check_labels(labels: ArrayLike, num_classes: int | None = None) -> NDArray[np.int64]:
    """Return `labels` as int64, or raise where one is not from 0 to `num_classes` - 1."""
    y = as_labels(labels).astype(np.int64, copy=False)
    if (i := first(y < 0)) is not None:
        raise DataError(f"classes count from 0, got {y[i]} at index {i}; renumber the classes", argument="labels")
    if num_classes is not None and (i := first(y >= num_classes)) is not None:
        raise DataError(f"expected classes 0 to {num_classes - 1}, got {y[i]} at index {i}", argument="labels")
    return y


def check_clients(samples: int, clients: int, min_size: int) -> int:
    """Return the number of clients, or raise if they cannot all have `min_size` samples."""
    clients, min_size = check_integer("clients", clients, 1), check_integer("min_size", min_size, 0)
    if min_size * clients > samples:
        required = f"{clients} clients with {min_size} samples each need {min_size * clients}"
        key, advice = ("min_size", "min_size or clients") if min_size > 1 else ("clients", "clients")
        raise ArgumentError(f"{required}, but there are only {samples}; lower {advice}", argument=key)
    return clients


def unused_by_kind(options: Any, kinds: Kinds) -> dict[str, str]:
    """Return the options that the chosen `kind` does not use, with the reason."""
    used = {"kind", *kinds[options.kind][0], *kinds[options.kind][1]}
    why = f"kind {options.kind!r} does not use it"
    return {each.name: why for each in options_of(type(options)) if each.name not in used}


def check_kind(options: Any, kinds: Kinds) -> None:
    """Raise if the chosen `kind` lacks an option that it needs, or has one that it does not use."""
    unused = options.unused()
    for each in options_of(type(options)):
        value = getattr(options, each.name)
        if value is None and each.name in kinds[options.kind][0]:
            what = f"{expected(without_none(each))} is missing; kind {options.kind!r} needs it"
            raise ArgumentError(what, argument=each.name)
        if value != each.default and each.name in unused:
            raise WrongKeyError(f"{unused[each.name]}; leave it out", argument=each.name)
