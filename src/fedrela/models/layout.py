"""The position of each named array in one flat vector, and which arrays clients share.

The layout is the fixed order in which a model is sent, averaged and digested. Clients share the trained parameters and
the float buffers, except those of modules that the algorithm declares private. Frozen parameters are the same
everywhere from the start and are never sent. The shared arrays form a separate vector, trained ones first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from fedrela.errors import ArgumentError
from fedrela.runfolder.checkpoints import vector_digest

if TYPE_CHECKING:
    from fedrela.models.flat_model import FlatModel

Kind = Literal["parameter", "frozen", "buffer"]


@dataclass(frozen=True)
class LayoutEntry:
    """One named array: its shape, its offset, and its kind."""

    name: str
    shape: tuple[int, ...]
    offset: int
    kind: Kind  # a parameter with a gradient, a parameter without one, or a float buffer

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def span(self) -> slice:
        """The position of the values in the vector."""
        return slice(self.offset, self.offset + self.size)


@dataclass(frozen=True)
class Layout:
    """All entries in order: parameters, frozen parameters, buffers, without gaps."""

    entries: tuple[LayoutEntry, ...]
    dtype: str  # of every array: "float32" or "float64"

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
        return {entry.name: vector[entry.span].reshape(entry.shape) for entry in self.entries}

    def sha256(self, vector: NDArray[Any]) -> str:
        """Digest names, shapes and values, little-endian, in order."""
        self.check_vector(vector)
        return vector_digest([(entry.name, entry.shape) for entry in self.entries], self.dtype, vector)

    def check_vector(self, vector: Any) -> None:
        """Raise if an array or tensor is not a vector of this layout."""
        if isinstance(vector, np.ndarray) and vector.shape == (self.size,) and vector.dtype == self.dtype:
            return
        shape, dtype = tuple(vector.shape), str(vector.dtype).removeprefix("torch.")
        if shape != (self.size,) or dtype != self.dtype:
            raise ArgumentError(f"vector: expected {self.dtype} of shape ({self.size},), got {dtype} of shape {shape}")


@dataclass(frozen=True)
class ParameterSlice:
    """Some arrays of a model as one vector: their layout in it, and their slices of the model's vector."""

    layout: Layout
    slices: tuple[slice, ...]

    @classmethod
    def of(cls, layout: Layout, chosen: Callable[[LayoutEntry], bool]) -> ParameterSlice:
        """Return the slice of a model's layout with the chosen entries."""
        entries, slices, offset = [], list[slice](), 0
        for entry in filter(chosen, layout.entries):
            entries.append(replace(entry, offset=offset))
            offset += entry.size
            if slices and slices[-1].stop == entry.span.start:
                slices[-1] = slice(slices[-1].start, entry.span.stop)
            else:
                slices.append(entry.span)
        return cls(Layout(tuple(entries), layout.dtype), tuple(slices))

    def read(self, model: FlatModel, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the values of a model as one vector, in `out` if given."""
        out = np.empty(self.layout.size, self.layout.dtype) if out is None else out
        self.layout.check_vector(out)
        start, values = 0, model.array
        for part in self.slices:
            end = start + part.stop - part.start
            out[start:end] = values[part]
            start = end
        return out

    def write(self, model: FlatModel, vector: NDArray[Any]) -> None:
        """Copy the values of a vector into a model."""
        self.layout.check_vector(vector)
        start, on_cpu, values = 0, model.vector.device.type == "cpu", model.array
        for part in self.slices:
            end = start + part.stop - part.start
            if on_cpu:
                values[part] = vector[start:end]
            else:
                model.vector[part].copy_(torch.tensor(vector[start:end]))
            start = end


@dataclass(frozen=True)
class ParameterSplit:
    """A model's arrays in two parts: shared by all clients, and private to each client."""

    shared: ParameterSlice
    private: ParameterSlice

    @classmethod
    def of(cls, layout: Layout, private: Sequence[str] = ()) -> ParameterSplit:
        """Split the layout of a whole model; `private` names modules, or arrays, that stay with the client.

        Examples
        --------
        >>> from torch import nn
        >>> from fedrela.models.flat_model import FlatModel
        >>> model = FlatModel(nn.ModuleDict({"body": nn.Linear(2, 3), "personal": nn.Linear(3, 2)}))
        >>> split = ParameterSplit.of(model.layout, ["personal"])
        >>> split.shared.layout.size, split.private.layout.size
        (9, 8)
        """
        for name in private:
            if not any(_belongs(entry.name, [name]) for entry in layout.entries):
                raise ArgumentError(f"the model has no module {name!r}", argument="private")
        return cls(
            ParameterSlice.of(layout, lambda entry: entry.kind != "frozen" and not _belongs(entry.name, private)),
            ParameterSlice.of(layout, lambda entry: entry.kind != "frozen" and _belongs(entry.name, private)),
        )


def _belongs(name: str, modules: Iterable[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)
