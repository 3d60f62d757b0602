"""The tensor operations of one forward and backward pass, and a function that replays them without autograd.

The function is straight-line code, one call for each operation that the gradient or the scores depend on. Views of the
model's arrays are taken once. Matrix products and sums that make a parameter's gradient write it where it belongs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

Replay = Callable[..., Tensor | None]  # of the inputs; fills the gradients and returns the scores

aten = torch.ops.aten
SAME = {aten.detach.default, aten.alias.default}  # their result is their argument
RESHAPES = {aten.view.default, aten._unsafe_view.default}
ALIGNMENT = 64  # bytes, as torch allocates: MKL's products may have other last bits where a result lies elsewhere
WITH_OUT = {aten.mm.default: torch.mm, aten.sum.dim_IntList: torch.sum}
UNKNOWN_SIZE, VALUE = torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output
RANDOM = torch.Tag.nondeterministic_seeded
MASKS = (torch.bool, torch.uint8)
READERS = {"numpy", "tolist", "__array__", "__dlpack__", "data_ptr"}  # they read values past the dispatcher


class CannotRecordError(Exception):
    """The pass depends on something that a replay would not know."""


class Name(str):
    """A variable of the code."""


@dataclass
class Call:
    """One operation: what is called with which arguments, and the variables that receive its results."""

    function: Any
    args: list[Any]
    kwargs: dict[str, Any]
    results: list[Name | None]
    several: bool  # whether it returns a sequence
    out: Tensor | None = None  # where it writes its result, if it is a gradient

    def names(self) -> Iterator[Name]:
        """Yield the variables among its arguments."""
        return _names([*self.args, *self.kwargs.values()])

    @property
    def acts(self) -> bool:
        """Whether it does something beside returning results."""
        return self.function._schema.is_mutable or RANDOM in self.function.tags or "batch_norm" in str(self.function)


class Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch declares no types there
    """Records the operations inside; to be entered with `NoReading`.

    Parameters
    ----------
    resident
        Tensors that stay where they are, such as parameters.
    inputs
        Tensors that may differ at each replay.
    """

    def __init__(self, resident: Iterable[Tensor], inputs: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._resident = {id(tensor): tensor.detach() for tensor in resident}
        self._inputs = [Name(f"x{k}") for k in range(len(inputs))]
        self._of = {id(tensor): name for tensor, name in zip(inputs, self._inputs, strict=True)}
        self._fixed = {tensor.untyped_storage().data_ptr() for tensor in inputs}
        self._alive: list[Any] = [*resident, *inputs]  # so that no id is given twice
        self._shapes: dict[Name, torch.Size] = {}
        self._calls: list[Call] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry out an operation and note it."""
        kwargs = kwargs or {}
        named, words = self._replace(args), self._replace(kwargs)
        self._check(func, args)
        found = func(*args, **kwargs)
        self._alive.append(found)
        if func in SAME and id(args[0]) in self._of:
            self._of[id(found)] = self._of[id(args[0])]
        elif isinstance(found, Tensor) and func.is_view and id(args[0]) in self._resident:
            self._resident[id(found)] = found.detach()
        else:
            several = isinstance(found, tuple | list)
            results = [self._name(tensor) for tensor in (found if several else [found])]
            self._calls.append(Call(func, named, words, results, several))
        return found

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Skip torch's check: nothing here is compiled, and the check would load torch's compiler for seconds."""
        return False

    def _check(self, func: Any, args: Any) -> None:
        """Raise if values decide what is done, or if an input would be changed."""
        by_mask = func is aten.index.Tensor and any(k is not None and k.dtype in MASKS for k in args[1])
        if VALUE in func.tags or (UNKNOWN_SIZE in func.tags and func is not aten.index.Tensor) or by_mask:
            raise CannotRecordError(f"{func} depends on values")
        written = [arg for arg in args if func._schema.is_mutable and isinstance(arg, Tensor)]
        if any(arg.untyped_storage().data_ptr() in self._fixed for arg in written):
            raise CannotRecordError(f"{func} may change an input")

    def _name(self, result: Any) -> Name | None:
        if not isinstance(result, Tensor) or id(result) in self._resident:
            return None
        name = self._of.setdefault(id(result), Name(f"t{len(self._shapes)}"))
        self._shapes.setdefault(name, result.shape)
        return name

    def _replace(self, thing: Any) -> Any:
        """Return arguments with names in place of tensors."""
        if isinstance(thing, Tensor):
            known = self._of.get(id(thing), self._resident.get(id(thing)))
            if known is None:
                raise CannotRecordError("a tensor comes from elsewhere")
            return known
        if isinstance(thing, tuple | list):
            return [self._replace(part) for part in thing]
        return {key: self._replace(part) for key, part in thing.items()} if isinstance(thing, dict) else thing

    def compile(self, gradients: Sequence[Tensor], targets: Sequence[Tensor], scores: Tensor | None) -> Replay:
        """Return a function of the inputs that writes these gradients to their targets and returns the scores."""
        ends, returned = self._replace(gradients), None if scores is None else self._replace(scores)
        producers = {name: call for call in self._calls for name in call.results if name}
        uses = Counter(name for call in self._calls for name in call.names())
        uses.update(_names([ends, returned]))
        copies: dict[int, list[Call]] = {}  # by the call behind which they are made
        for end, target in zip(ends, targets, strict=True):
            made, place = self._made_in(end, target, producers, uses)
            if made is None:
                behind = producers.get(end) if isinstance(end, Name) else None
                copies.setdefault(id(behind), []).append(Call(aten.copy_.default, [target, end], {}, [], False))
            else:
                made.out = place
        kept = copies.get(id(None), [])
        needed = set(_names([returned, *(call.args for call in kept)]))
        for call in reversed(self._calls):
            kept += copies.get(id(call), [])
            if id(call) in copies or call.out is not None or call.acts or needed & {*call.results}:
                kept.append(call)
                needed.update(call.names())
        return _code(kept[::-1], self._inputs, returned)

    def _made_in(
        self, end: Any, target: Tensor, producers: dict[Name, Call], uses: Counter[Name]
    ) -> tuple[Call | None, Tensor]:
        """Return the call that can write a gradient to its target, behind views of nothing else, and where to."""
        while isinstance(end, Name) and end in producers and uses[end] == 1:
            call = producers[end]
            if call.function is aten.t.default:
                target = target.t()
            elif call.function in RESHAPES and isinstance(call.args[0], Name) and target.is_contiguous():
                target = target.view(self._shapes[call.args[0]])
            else:
                fits = call.function in WITH_OUT and target.is_contiguous() and not target.data_ptr() % ALIGNMENT
                return (call if fits else None), target
            end = call.args[0]
        return None, target


class NoReading(TorchFunctionMode):
    """Refuses functions that read values of tensors past the dispatcher."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function unless it reads values."""
        if getattr(func, "__name__", "") in READERS:
            raise CannotRecordError(f"{func} reads values")
        return func(*args, **(kwargs or {}))


def _names(things: Iterable[Any]) -> Iterator[Name]:
    for thing in things:
        if isinstance(thing, Name):
            yield thing
        elif isinstance(thing, list):
            yield from _names(thing)


def _code(calls: list[Call], inputs: list[Name], returned: Any) -> Replay:
    """Return the calls as a function; a variable is deleted after its last use, so that its memory is reused."""
    space: dict[str, Any] = {}

    def shown(thing: Any) -> str:
        if isinstance(thing, Name):
            return thing
        if any(True for _ in _names([thing])):
            return f"[{', '.join(map(shown, thing))}]"
        name = f"k{len(space)}"
        space[name] = thing
        return name

    last = {name: call for call in calls for name in (*filter(None, call.results), *call.names())}
    lines = []
    for call in calls:
        words = call.kwargs if call.out is None else {"out": call.out}
        arguments = ", ".join([*map(shown, call.args), *(f"{key}={shown(value)}" for key, value in words.items())])
        line = f"{shown(_function(call))}({arguments})"
        if call.out is None and any(call.results):
            line = f"{', '.join(name or '_' for name in call.results)}{',' * call.several} = {line}"
        ended = {name for name, final in last.items() if final is call} - {*inputs, returned}
        lines += [line, *(f"del {name}" for name in sorted(ended) if call.out is None or name not in call.results)]
    lines.append(f"return {shown(returned)}")
    # Variables, constants and operations of torch: no text of a user or a file is among them.
    exec("\n    ".join([f"def replay({', '.join(inputs)}):", *lines]), space)
    replay: Replay = torch.inference_mode()(space["replay"])
    return replay


def _function(call: Call) -> Any:
    """Return torch's own binding of an operation where there is one: it takes less time to call than the operation."""
    if call.out is not None:
        return WITH_OUT[call.function]
    name = call.function._schema.name.removeprefix("aten::")
    homes = (torch._C._VariableFunctions, torch._C.TensorBase) if call.function.namespace == "aten" else ()
    return next((getattr(home, name) for home in homes if hasattr(home, name)), call.function)
