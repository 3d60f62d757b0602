"""The gradient of a loss, from a forward and backward pass that is recorded once and replayed for later batches.

A replay does the operations of autograd in the same order without autograd, so it gives the same bits in less time.
Each recording is replayed once beside autograd, and dropped if a single bit differs.

What is recorded must be a function of the batch, of the model's arrays, and of tensors that the loss refers to; these
may differ from client to client. So the model must consist of layers of torch and of this package, without hooks, and
the loss of functions of both that refer only to tensors and plain values. A pass that reads the value of a tensor is
not recorded. Whatever cannot be recorded is computed by autograd.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from fedrela.models.tape import CannotRecordError, NoValueReads, Replay, Tape

if TYPE_CHECKING:
    from fedrela.models.flat_model import FlatModel

RECORDED_AT = 3  # which batch of a shape is recorded; some shapes occur only once or twice
LOSS_SCALE = 1024.0  # in float16 the loss is multiplied and its gradient divided by it: small ones would become 0
MOST = 256  # recordings of one model: with more, losses or shapes are unlikely to recur
PACKAGES = {"torch", "fedrela"}
PLAIN = (type(None), bool, int, float, str, torch.dtype, torch.device, torch.Size)
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class BatchLike(Protocol):
    """The argument of a loss."""

    module: nn.Module
    x: Tensor
    y: Tensor
    scores: Tensor | None


Loss = Callable[[Any], Tensor]
# By shape of the batch: a recording, the number of batches so far, or None if it cannot be recorded.
Recordings = dict[Any, Replay | int | None]


class Recorder:
    """Computes gradients of losses for one model, and keeps its recordings."""

    def __init__(self, model: FlatModel) -> None:
        self._gradient, self._device = model.gradient, model.vector.device.type
        self._parameters, self._views = zip(*model.trained, strict=True)
        self._parts = {id(part): name for name, part in model.module.named_modules()}
        self._pure = all(package_of(type(part)) in PACKAGES for part in model.parts)
        self._hooks = [getattr(part, hooks) for part in model.parts for hooks in HOOKS]
        self._attributes = [part.__dict__ for part in model.parts]
        tables = [table for part in model.parts for table in (part._parameters, part._buffers)]
        self._arrays = [(table, name, array) for table in tables for name, array in table.items() if array is not None]
        self._positions = {id(array): position for position, (_, _, array) in enumerate(self._arrays)}
        self._recordings: dict[Any, Recordings] = {}
        self._number = 0

    def bind(self, loss: Loss) -> Callable[[BatchLike], None]:
        """Return a function that fills the model's gradient with that of the loss of a batch."""
        tensors: list[Tensor] = []
        try:
            self._check_model()
            key = self._describe(loss, tensors), tuple(p.requires_grad for p in self._parameters)
        except (CannotRecordError, ValueError):  # an empty cell of a closure
            return partial(self._compute, loss)
        return partial(self._fill, loss, tensors, self._recordings.setdefault(key, {}))

    def _fill(self, loss: Loss, tensors: list[Tensor], recordings: Recordings, batch: BatchLike) -> None:
        x, y = batch.x, batch.y
        shape = (x.shape, x.stride(), x.dtype, y.shape, y.dtype)
        recording = recordings.get(shape, 0)
        if callable(recording):
            batch.scores = recording(x, y, *tensors)
        elif recording is None:
            self._compute(loss, batch)
        elif recording + 1 < RECORDED_AT or self._number >= MOST:
            recordings[shape] = recording + 1
            self._compute(loss, batch)
        else:
            self._number += 1
            recordings[shape] = self._record(loss, tensors, batch)

    def _compute(self, loss: Loss, batch: BatchLike) -> None:
        """Fill the gradient by autograd."""
        torch._foreach_copy_(self._views, self._differentiate(loss, batch))

    def _differentiate(self, loss: Loss, batch: BatchLike) -> list[Tensor]:
        with torch.enable_grad():
            value, trained = loss(batch), [parameter for parameter in self._parameters if parameter.requires_grad]
            if self._in_float16():
                scaled = torch.autograd.grad(value.float() * LOSS_SCALE, trained, materialize_grads=True)
                gradients = iter([gradient / LOSS_SCALE for gradient in scaled])
            else:
                gradients = iter(torch.autograd.grad(value, trained, materialize_grads=True))
        return [next(gradients) if p.requires_grad else torch.zeros_like(p) for p in self._parameters]

    def _in_float16(self) -> bool:
        return torch.is_autocast_enabled(self._device) and torch.get_autocast_dtype(self._device) == torch.float16

    def _record(self, loss: Loss, tensors: list[Tensor], batch: BatchLike) -> Replay | None:
        """Fill the gradient, and return how to replay the pass if that gives the same bits."""
        before = self._state()
        try:
            seen = copy.copy(batch)
            vars(seen).pop("at", None)  # positions of samples differ between batches of the same shape
            tape = Tape([array for _, _, array in self._arrays], [batch.x, batch.y, *tensors])
            with NoValueReads(), tape:
                gradients = self._differentiate(loss, seen)
            replay = tape.compile(gradients, self._views, seen.scores)
            with torch.no_grad():
                torch._foreach_copy_(self._views, gradients)
            expected = [*self._state(), self._gradient.clone()]
            self._restore(before)
            batch.scores = replay(batch.x, batch.y, *tensors)
            if all(map(_same_bits, expected, [*self._state(), self._gradient])):
                return replay
        except Exception:  # an error in the loss itself is raised by the next call
            pass
        self._restore(before)
        self._compute(loss, batch)
        return None

    def _state(self) -> list[Tensor]:
        """Return copies of what a pass may change: the generators and the model's arrays, including integer ones."""
        generators = [torch.get_rng_state()]
        if self._device != "cpu":
            generators.append(getattr(torch, self._device).get_rng_state())
        return [*generators, *(array.detach().clone() for _, _, array in self._arrays)]

    def _restore(self, state: list[Tensor]) -> None:
        torch.set_rng_state(state[0])
        if self._device != "cpu":
            getattr(torch, self._device).set_rng_state(state[1])
        with torch.no_grad():
            for (_, _, array), value in zip(self._arrays, state[-len(self._arrays) :], strict=True):
                array.copy_(value)

    def _check_model(self) -> None:
        """Raise if the model changed, has hooks, or has layers with unknown code."""
        changed = any(table.get(name) is not array for table, name, array in self._arrays)
        special = any(self._hooks) or any("forward" in attributes for attributes in self._attributes)
        if not self._pure or changed or special or torch.is_autocast_enabled(self._device):
            raise CannotRecordError

    def _describe(self, value: Any, tensors: list[Tensor]) -> Any:
        """Return a key that is equal for equal losses, apart from the values of their tensors, which are appended."""
        describe = partial(self._describe, tensors=tensors)
        if isinstance(value, PLAIN):
            return type(value), value
        if isinstance(value, Tensor) and (id(value) in self._positions or not value.requires_grad):
            if id(value) in self._positions:
                return Tensor, self._positions[id(value)]
            tensors.append(value)
            return Tensor, value.shape, value.stride(), value.dtype, value.device
        if isinstance(value, nn.Module) and id(value) in self._parts:
            return nn.Module, self._parts[id(value)]
        if isinstance(value, BuiltinFunctionType) or (isinstance(value, FunctionType) and package_of(value) == "torch"):
            return value
        if isinstance(value, FunctionType) and package_of(value) in PACKAGES:
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            defaults = [each and describe(each) for each in (value.__defaults__, value.__kwdefaults__)]
            return value.__code__, *map(describe, cells), *defaults
        if isinstance(value, partial):
            return partial, *map(describe, (value.func, value.args, value.keywords))
        if type(value) is tuple:
            return tuple, *map(describe, value)
        if type(value) is dict:
            return dict, *((key, describe(item)) for key, item in value.items())
        if is_dataclass(value) and value.__hash__ is not None:
            return type(value), *(describe(getattr(value, each.name)) for each in fields(value))
        raise CannotRecordError


def package_of(value: Any) -> str:
    """Return the name of the package in which a class or function is defined."""
    return str(value.__module__).partition(".")[0]


def _same_bits(one: Tensor, other: Tensor) -> bool:
    return bool((one.reshape(-1).view(torch.uint8) == other.reshape(-1).view(torch.uint8)).all())
