"""Named arrays of fixed shape in one row of bytes: how uploads and client states lie in a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms.base import ArraySpecs
from fedrela.errors import ArgumentError

ALIGNMENT = 64  # bytes, one cache line

Reader = Callable[[int, tuple[int, ...], str], NDArray[Any]]


@dataclass(frozen=True)
class Rows:
    """The places of some fields in a row.

    >>> from fedrela.algorithms.base import Field
    >>> rows = Rows({"weights": Field((3,)), "steps": Field((), "int64")})
    >>> rows.offsets, rows.nbytes
    ({'weights': 0, 'steps': 64}, 128)
    """

    fields: ArraySpecs

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Where each field starts."""
        offsets, at = {}, 0
        for name, field in self.fields.items():
            offsets[name] = at
            at += -(-field.nbytes // ALIGNMENT) * ALIGNMENT
        return offsets

    @cached_property
    def nbytes(self) -> int:
        """Bytes of a row."""
        return sum(-(-field.nbytes // ALIGNMENT) * ALIGNMENT for field in self.fields.values())

    def views(self, read: Reader, row: int) -> dict[str, NDArray[Any]]:
        """Return the arrays of a row of a block, as views of it; `read` is the block's ``array``."""
        start = row * self.nbytes
        return {name: read(start + self.offsets[name], f.shape, f.dtype) for name, f in self.fields.items()}


def fill(place: str, target: Mapping[str, NDArray[Any]], arrays: Mapping[str, Any], fields: ArraySpecs) -> None:
    """Copy arrays to where they belong; names, shapes and dtypes must be the declared ones."""
    if set(arrays) != set(fields):
        odd = sorted(set(arrays) ^ set(fields))[0]
        what = "is declared but missing" if odd in fields else "is not declared"
        raise ArgumentError(f"{place}: {odd!r} {what}")
    for name, field in fields.items():
        array = np.asarray(arrays[name])
        if array.shape != field.shape or array.dtype != field.dtype:
            raise ArgumentError(
                f"{place}: {name!r}: {field.dtype} of shape {field.shape} is declared, got {array.dtype} of shape "
                f"{array.shape}"
            )
        target[name][...] = array
