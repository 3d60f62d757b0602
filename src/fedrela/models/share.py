"""Which arrays of a model the federation shares, and which a client keeps.

Shared are the trained parameters and the float buffers, except those of parts that the algorithm declares private.
Frozen parameters are the same everywhere from the beginning and never travel. The shared arrays lie in one vector of
their own, trained ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from fedrela.errors import ArgumentError
from fedrela.models.arrays import FlatModel
from fedrela.models.layout import Entry, Layout


@dataclass(frozen=True)
class ParameterSlice:
    """Some arrays of a model as one vector: their layout there, and the slices of the model's vector they fill."""

    layout: Layout
    slices: tuple[slice, ...]

    @classmethod
    def of(cls, layout: Layout, chosen: Callable[[Entry], bool]) -> ParameterSlice:
        """Return the part of a model's layout that consists of the chosen entries."""
        entries, slices, offset = [], list[slice](), 0
        for entry in filter(chosen, layout.entries):
            entries.append(replace(entry, offset=offset))
            offset += entry.size
            if slices and slices[-1].stop == entry.place.start:
                slices[-1] = slice(slices[-1].start, entry.place.stop)
            else:
                slices.append(entry.place)
        return cls(Layout(tuple(entries), layout.dtype), tuple(slices))

    def read(self, model: FlatModel, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the values of a model as one vector, in `out` where it is given."""
        out = np.empty(self.layout.size, self.layout.dtype) if out is None else out
        self.layout.check_vector(out)
        at = 0
        for place in self.slices:
            values = model.vector[place].cpu().numpy()
            out[at : at + values.size] = values
            at += values.size
        return out

    def write(self, model: FlatModel, vector: NDArray[Any]) -> None:
        """Put the values of a vector into a model."""
        self.layout.check_vector(vector)
        at, on_cpu = 0, model.vector.device.type == "cpu"
        for place in self.slices:
            target = model.vector[place]
            values = vector[at : at + len(target)]
            if on_cpu:
                np.copyto(target.numpy(), values)  # torch.from_numpy would warn about a read-only array
            else:
                target.copy_(torch.tensor(values))
            at += len(target)


@dataclass(frozen=True)
class ParameterSplit:
    """A model's arrays in two parts: what all share, and what stays with each client."""

    shared: ParameterSlice
    private: ParameterSlice

    @classmethod
    def of(cls, layout: Layout, private: Sequence[str] = ()) -> ParameterSplit:
        """Return the parts of a model's layout.

        Parameters
        ----------
        layout
            Of the whole model.
        private
            Names of modules (or of single arrays) that stay with the client.

        Examples
        --------
        >>> from torch import nn
        >>> model = FlatModel(nn.ModuleDict({"body": nn.Linear(2, 3), "mine": nn.Linear(3, 2)}))
        >>> share = ParameterSplit.of(model.layout, ["mine"])
        >>> share.shared.layout.size, share.private.layout.size
        (9, 8)
        """
        for name in private:
            if not any(_belongs(entry.name, [name]) for entry in layout.entries):
                raise ArgumentError(f"private: the model has no part {name!r}")
        return cls(
            ParameterSlice.of(layout, lambda entry: entry.kind != "frozen" and not _belongs(entry.name, private)),
            ParameterSlice.of(layout, lambda entry: entry.kind != "frozen" and _belongs(entry.name, private)),
        )


def _belongs(name: str, modules: Iterable[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def call_with(module: nn.Module, weights: NDArray[Any], x: Tensor) -> Tensor:
    """Return what a module answers with other trained weights, given as one vector; its own stay."""
    named, at = {}, 0
    vector = torch.tensor(weights)
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            named[name] = vector[at : at + parameter.numel()].view(parameter.shape).to(parameter)
            at += parameter.numel()
    answer: Tensor = functional_call(module, named, (x,))
    return answer
