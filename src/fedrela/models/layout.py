"""Where each named array lies in one flat vector: the fixed order in which a model is sent, averaged and digested."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import ArgumentError

Kind = Literal["parameter", "frozen", "buffer"]


@dataclass(frozen=True)
class Entry:
    """One named array: its shape, where it starts, and what it is.

    Attributes
    ----------
    kind
        ``"parameter"`` has a gradient, ``"frozen"`` is a parameter without one, ``"buffer"`` is a float buffer.
    """

    name: str
    shape: tuple[int, ...]
    offset: int
    kind: Kind

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def place(self) -> slice:
        """Where the values lie in the vector."""
        return slice(self.offset, self.offset + self.size)


@dataclass(frozen=True)
class Layout:
    """All entries in order: parameters, then frozen ones, then buffers, without gaps.

    Attributes
    ----------
    dtype
        Of every array: ``"float32"`` or ``"float64"``.
    """

    entries: tuple[Entry, ...]
    dtype: str

    @cached_property
    def size(self) -> int:
        """Number of values in the vector."""
        return sum(entry.size for entry in self.entries)

    @cached_property
    def trained(self) -> int:
        """Number of leading values that have a gradient."""
        return sum(entry.size for entry in self.entries if entry.kind == "parameter")

    def split(self, vector: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the named arrays of a vector, as views of it."""
        self.check_vector(vector)
        return {entry.name: vector[entry.place].reshape(entry.shape) for entry in self.entries}

    def join(self, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Return the vector of named arrays; a wrong name, shape or dtype is an error."""
        self.check_arrays(arrays)
        vector = np.empty(self.size, self.dtype)
        for entry in self.entries:
            vector[entry.place] = arrays[entry.name].ravel()
        return vector

    def sha256(self, vector: NDArray[Any]) -> str:
        """Digest names, shapes and values, little-endian, in order."""
        self.check_vector(vector)
        stored = np.ascontiguousarray(vector, np.dtype(self.dtype).newbyteorder("<"))
        hasher = hashlib.sha256()
        for entry in self.entries:
            hasher.update(f"{entry.name} {list(entry.shape)} {self.dtype}\n".encode())
            hasher.update(stored[entry.place].data)
        return hasher.hexdigest()

    def check_vector(self, vector: Any) -> None:
        """Raise where an array or tensor is no vector of this layout."""
        shape, dtype = tuple(vector.shape), str(vector.dtype).removeprefix("torch.")
        if shape != (self.size,) or dtype != self.dtype:
            raise ArgumentError(f"vector: expected {self.dtype} of shape ({self.size},), got {dtype} of shape {shape}")

    def check_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Raise where the names, a shape or a dtype differ from this layout's."""
        known = {entry.name for entry in self.entries}
        for name in arrays:
            if name not in known:
                raise ArgumentError(f"arrays: {str(name)[:80]!r} is none of the model's {len(known)} arrays")
        for entry in self.entries:
            if entry.name not in arrays:
                raise ArgumentError(f"arrays: {entry.name!r} is missing; all {len(known)} arrays are needed")
            shape, dtype = tuple(arrays[entry.name].shape), arrays[entry.name].dtype
            if shape != entry.shape or dtype != self.dtype:
                needed = f"{self.dtype} of shape {entry.shape}"
                raise ArgumentError(f"arrays: {entry.name!r}: expected {needed}, got {dtype} of shape {shape}")
