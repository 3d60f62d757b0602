"""A model whose parameters and float buffers are views of one flat vector, and whose gradients are views of another.

Broadcasting, collecting, zeroing gradients and a step of SGD are then one operation each, whatever the number of
layers. Integer buffers, such as the batch counters of BatchNorm, and non-persistent ones are not part of the vector:
`load` resets them to their initial values, so that nothing is carried over from one client to the next.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from fedrela.errors import ArgumentError
from fedrela.models.layout import Kind, Layout, LayoutEntry
from fedrela.models.recording import Recorder
from fedrela.models.sgd import LANES, Sgd

DTYPES = (torch.float32, torch.float64)


class FlatModel:
    """A module on one flat vector.

    The module can still be called, and trained by any optimiser. Three calls would detach its arrays from the vectors
    and are not allowed: ``zero_grad(set_to_none=True)`` (use `zero_grad` here),
    ``backward(create_graph=True)`` (use `torch.autograd.grad`), and moving the module to another device (do it before).

    Parameters
    ----------
    module
        All its parameters and float buffers have one dtype, float32 or float64, and one device. A parameter used in two
        places is stored once.

    Examples
    --------
    >>> flat = FlatModel(nn.Linear(2, 1))
    >>> [(entry.name, entry.shape, entry.offset) for entry in flat.layout.entries]
    [('weight', (1, 2), 0), ('bias', (1,), 2)]
    >>> _ = flat.vector.fill_(1.0)
    >>> flat.module(torch.ones(1, 2)).item()
    3.0
    """

    def __init__(self, module: nn.Module) -> None:
        named = list(_arrays(module))
        first = _check(module, named)
        self.module = module
        self.layout = _layout(named, first.dtype)
        # All values: parameters, frozen parameters, float buffers. Those that have gradients come first.
        trained, size = self.layout.trained, self.layout.size
        values, gradient = (torch.zeros(_padded(n), dtype=first.dtype, device=first.device) for n in (size, trained))
        self.vector = values[:size]
        self.weights = self.vector[:trained]
        self.gradient = gradient[:trained]  # of the weights
        self.padded = (values, gradient) if trained == size else None  # with zeros behind the last weight
        self.trained: list[tuple[nn.Parameter, Tensor]] = []  # with views of `gradient`
        for entry, (_, tensor, _) in zip(self.layout.entries, named, strict=True):
            view = self.vector[entry.span].view(entry.shape)
            view.copy_(tensor.detach())
            tensor.data = view
            if entry.kind == "parameter":
                tensor.grad = self.gradient[entry.span].view(entry.shape)
                self.trained.append((tensor, tensor.grad))
        self._on_cpu = self.vector.numpy() if first.device.type == "cpu" else None
        self.parts = list(module.modules())
        self.optimizers: tuple[Any, list[Sgd]] | None = None  # those of the last training, with their options
        shared = {id(tensor) for _, tensor, _ in named}
        self._own = [(buffer, buffer.clone()) for buffer in module.buffers() if id(buffer) not in shared]

    @cached_property
    def recorder(self) -> Recorder:
        """The recorder that computes gradients of losses."""
        return Recorder(self)

    @property
    def array(self) -> NDArray[Any]:
        """All values as a NumPy vector: the vector itself on the CPU, a copy of it on other devices."""
        return self.vector.cpu().numpy() if self._on_cpu is None else self._on_cpu

    def train(self) -> None:
        """Set the module to training mode, unless it already is, since the call takes time."""
        if not all(part.training for part in self.parts):
            self.module.train()

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        self.gradient.zero_()

    def attached(self) -> bool:
        """Whether every gradient is still a view of `gradient`."""
        return all(parameter.grad is view for parameter, view in self.trained)

    def load(self, vector: Tensor | NDArray[Any]) -> None:
        """Copy all values from a vector."""
        self.layout.check_vector(vector)
        if isinstance(vector, Tensor):
            self.vector.copy_(vector)
        elif self._on_cpu is not None:
            np.copyto(self._on_cpu, vector)  # torch.from_numpy would warn about a read-only array
        else:
            self.vector.copy_(torch.tensor(vector))
        self.restore_buffers()

    def restore_buffers(self) -> None:
        """Reset buffers that are not part of the vector to their initial values."""
        for buffer, initial in self._own:
            buffer.copy_(initial)

    def collect(self) -> NDArray[Any]:
        """Return a copy of all values as one NumPy vector."""
        return self.array.copy()

    @contextlib.contextmanager
    def holding(self, vector: Tensor) -> Iterator[None]:
        """Load other values inside the block, and restore the current ones afterwards; not during a backward pass."""
        before = self.vector.clone()
        with torch.no_grad():
            self.vector.copy_(vector)
            try:
                yield
            finally:
                self.vector.copy_(before)

    def read(self) -> dict[str, NDArray[Any]]:
        """Return a copy of every array by its name."""
        return self.layout.split(self.collect())


def _arrays(module: nn.Module) -> Iterator[tuple[str, Any, Kind]]:
    """Yield name, tensor and kind in the fixed order."""
    parameters = list(module.named_parameters())
    for name, parameter in parameters:
        if parameter.requires_grad:
            yield name, parameter, "parameter"
    for name, parameter in parameters:
        if not parameter.requires_grad:
            yield name, parameter, "frozen"
    persistent = module.state_dict(keep_vars=True)
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point() and name in persistent:
            yield name, buffer, "buffer"


def _check(module: nn.Module, named: list[tuple[str, Any, Kind]]) -> Tensor:
    """Return the first array if all have one dtype and device and at least one is trained, or raise."""
    model = type(module).__name__
    for name, tensor, _ in named:
        if is_lazy(tensor):
            raise ArgumentError(f"{model}: {name} has no shape yet; pass one batch through the model first")
    if not any(kind == "parameter" for _, _, kind in named):
        raise ArgumentError(f"{model}: has no parameter to train")
    first: Tensor = named[0][1]
    for name, tensor, _ in named:
        if tensor.dtype not in DTYPES or tensor.dtype != first.dtype or tensor.device != first.device:
            expected = f"{first.dtype if first.dtype in DTYPES else 'torch.float32'} on {first.device}"
            raise ArgumentError(f"{model}: {name}: expected {expected}, got {tensor.dtype} on {tensor.device}")
    return first


def _padded(size: int) -> int:
    return -(-size // LANES) * LANES


def _layout(named: list[tuple[str, Any, Kind]], dtype: torch.dtype) -> Layout:
    entries, offset = [], 0
    for name, tensor, kind in named:
        entries.append(LayoutEntry(name, tuple(tensor.shape), offset, kind))
        offset += tensor.numel()
    return Layout(tuple(entries), str(dtype).removeprefix("torch."))


def call_with(module: nn.Module, weights: NDArray[Any], x: Tensor) -> Tensor:
    """Return the output of a module with other trained weights, given as one vector; its own are unchanged."""
    named, at = {}, 0
    vector = torch.tensor(weights)
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            named[name] = vector[at : at + parameter.numel()].view(parameter.shape).to(parameter)
            at += parameter.numel()
    output: Tensor = functional_call(module, named, (x,))
    return output
