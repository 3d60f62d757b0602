"""The gradient of a loss, from a forward and backward pass that is recorded once and replayed for later batches.

A replay does the operations of autograd in the same order without autograd, so it gives the same bits in less time.
Each recording is replayed once beside autograd, and dropped if a single bit differs.

What is recorded must be a function of the batch, of the model's arrays, and of tensors that the loss refers to; these
may differ from client to client. So the model must consist of layers of torch and of this package, without hooks, and
the loss of functions of both that refer to nothing but tensors and plain values. A pass that looks at the value of a
tensor is not recorded. Whatever cannot be recorded is computed by autograd.
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

from fedrela.models.tape import CannotRecordError, NoReading, Replay, Tape

if TYPE_CHECKING:
    from fedrela.models.arrays import FlatModel

RECORDED_AT = 3  # the batch of one shape that is recorded; earlier ones may be the only ones
LOSS_SCALE = 1024.0  # a loss is multiplied by it in float16, and its gradient divided: small ones would become 0
MOST = 256  # recordings of one model: beyond, losses or shapes hardly come again
PACKAGES = {"torch", "fedrela"}
PLAIN = (type(None), bool, int, float, str, torch.dtype, torch.device, torch.Size)
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class BatchLike(Protocol):
    """What a loss is given."""

    module: nn.Module
    x: Tensor
    y: Tensor
    scores: Tensor | None


Loss = Callable[[Any], Tensor]
Known = dict[Any, Replay | int | None]  # by shape of the batch: a recording, the number of batches, or None: impossible


class Recorder:
    """Computes gradients of losses for one model, and keeps its recordings."""

    def __init__(self, model: FlatModel) -> None:
        self._gradient, self._device = model.gradient, model.vector.device.type
        self._parameters, self._views = zip(*model.trained, strict=True)
        self._parts = {id(part): name for name, part in model.module.named_modules()}
        self._pure = all(_package(type(part)) in PACKAGES for part in model.parts)
        self._hooks = [getattr(part, hooks) for part in model.parts for hooks in HOOKS]
        self._attributes = [part.__dict__ for part in model.parts]
        tables = [table for part in model.parts for table in (part._parameters, part._buffers)]
        self._arrays = [(table, name, array) for table in tables for name, array in table.items() if array is not None]
        self._places = {id(array): place for place, (_, _, array) in enumerate(self._arrays)}
        self._known: dict[Any, Known] = {}
        self._number = 0

    def bind(self, loss: Loss) -> Callable[[BatchLike], None]:
        """Return a function that fills the model's gradient with that of the loss of a batch."""
        tensors: list[Tensor] = []
        try:
            self._check_model()
            key = self._describe(loss, tensors), tuple(p.requires_grad for p in self._parameters)
        except (CannotRecordError, ValueError):  # an empty cell of a closure
            return partial(self._compute, loss)
        return partial(self._fill, loss, tensors, self._known.setdefault(key, {}))

    def _fill(self, loss: Loss, tensors: list[Tensor], known: Known, batch: BatchLike) -> None:
        x, y = batch.x, batch.y
        shape = (x.shape, x.stride(), x.dtype, y.shape, y.dtype)
        found = known.get(shape, 0)
        if callable(found):
            batch.scores = found(x, y, *tensors)
        elif found is None:
            self._compute(loss, batch)
        elif found + 1 < RECORDED_AT or self._number >= MOST:
            known[shape] = found + 1
            self._compute(loss, batch)
        else:
            self._number += 1
            known[shape] = self._record(loss, tensors, batch)

    def _compute(self, loss: Loss, batch: BatchLike) -> None:
        """Fill the gradient by autograd."""
        torch._foreach_copy_(self._views, self._differentiate(loss, batch))

    def _differentiate(self, loss: Loss, batch: BatchLike) -> list[Tensor]:
        with torch.enable_grad():
            value, wanted = loss(batch), [parameter for parameter in self._parameters if parameter.requires_grad]
            if self._in_float16():
                scaled = torch.autograd.grad(value.float() * LOSS_SCALE, wanted, materialize_grads=True)
                found = iter([gradient / LOSS_SCALE for gradient in scaled])
            else:
                found = iter(torch.autograd.grad(value, wanted, materialize_grads=True))
        return [next(found) if p.requires_grad else torch.zeros_like(p) for p in self._parameters]

    def _in_float16(self) -> bool:
        return torch.is_autocast_enabled(self._device) and torch.get_autocast_dtype(self._device) == torch.float16

    def _record(self, loss: Loss, tensors: list[Tensor], batch: BatchLike) -> Replay | None:
        """Fill the gradient, and return how to replay the pass if that gives the same bits."""
        before = self._state()
        try:
            seen = copy.copy(batch)
            vars(seen).pop("at", None)  # positions of samples differ between batches of the same shape
            tape = Tape([array for _, _, array in self._arrays], [batch.x, batch.y, *tensors])
            with NoReading(), tape:
                gradients = self._differentiate(loss, seen)
            replay = tape.compile(gradients, self._views, seen.scores)
            with torch.no_grad():
                torch._foreach_copy_(self._views, gradients)
            expected = [*self._state(), self._gradient.clone()]
            self._restore(before)
            batch.scores = replay(batch.x, batch.y, *tensors)
            if all(map(_same_bits, expected, [*self._state(), self._gradient])):
                return replay
        except Exception:  # an error in the loss itself is raised again
            pass
        self._restore(before)
        self._compute(loss, batch)
        return None

    def _state(self) -> list[Tensor]:
        """Return copies of what a pass may change: the generator, the model's arrays, the integer ones among them."""
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
        """Raise if the model changed, has hooks, or has layers that may do anything."""
        changed = any(table.get(name) is not array for table, name, array in self._arrays)
        special = any(self._hooks) or any("forward" in attributes for attributes in self._attributes)
        if not self._pure or changed or special or torch.is_autocast_enabled(self._device):
            raise CannotRecordError

    def _describe(self, thing: Any, tensors: list[Tensor]) -> Any:
        """Return what a loss is, apart from the values of its tensors, which are appended; equal for equal losses."""
        again = partial(self._describe, tensors=tensors)
        if isinstance(thing, PLAIN):
            return type(thing), thing
        if isinstance(thing, Tensor) and (id(thing) in self._places or not thing.requires_grad):
            if id(thing) in self._places:
                return Tensor, self._places[id(thing)]
            tensors.append(thing)
            return Tensor, thing.shape, thing.stride(), thing.dtype, thing.device
        if isinstance(thing, nn.Module) and id(thing) in self._parts:
            return nn.Module, self._parts[id(thing)]
        if isinstance(thing, BuiltinFunctionType) or (isinstance(thing, FunctionType) and _package(thing) == "torch"):
            return thing
        if isinstance(thing, FunctionType) and _package(thing) in PACKAGES:
            cells = [cell.cell_contents for cell in thing.__closure__ or ()]
            defaults = [given and again(given) for given in (thing.__defaults__, thing.__kwdefaults__)]
            return thing.__code__, *map(again, cells), *defaults
        if isinstance(thing, partial):
            return partial, *map(again, (thing.func, thing.args, thing.keywords))
        if type(thing) is tuple:
            return tuple, *map(again, thing)
        if type(thing) is dict:
            return dict, *((key, again(value)) for key, value in thing.items())
        if is_dataclass(thing) and thing.__hash__ is not None:
            return type(thing), *(again(getattr(thing, each.name)) for each in fields(thing))
        raise CannotRecordError


def _package(thing: Any) -> str:
    return str(thing.__module__).partition(".")[0]


def _same_bits(one: Tensor, other: Tensor) -> bool:
    return bool((one.reshape(-1).view(torch.uint8) == other.reshape(-1).view(torch.uint8)).all())
