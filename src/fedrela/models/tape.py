"""The tensor operations of one forward and backward pass, and a function that replays them without autograd.

The function is straight-line code, one call for each operation that the gradient or the scores depend on. Views of the
model's arrays are taken once. Matrix products and sums that compute a parameter's gradient write it in place.
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
SEEDS = {aten.ones_like.default}  # where a backward pass begins; the result depends on a shape alone
ALIGNMENT = 64  # bytes, as torch allocates: MKL's products may differ in the last bits at another alignment
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
    returns_sequence: bool
    out: Tensor | None = None  # where it writes its result, if it is a gradient

    def names(self) -> Iterator[Name]:
        """Yield the variables among its arguments."""
        return _names([*self.args, *self.kwargs.values()])

    @property
    def has_side_effects(self) -> bool:
        """Whether it does more than return results."""
        return self.function._schema.is_mutable or RANDOM in self.function.tags or "batch_norm" in str(self.function)


class Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch declares no types there
    """Records the operations inside; to be entered with `NoValueReads`.

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
        """Carry out an operation and record it."""
        kwargs = kwargs or {}
        named_args, named_kwargs = self._replace(args), self._replace(kwargs)
        self._check(func, args)
        result = func(*args, **kwargs)
        self._alive.append(result)
        if func in SAME and id(args[0]) in self._of:
            self._of[id(result)] = self._of[id(args[0])]
        elif isinstance(result, Tensor) and func.is_view and id(args[0]) in self._resident:
            self._resident[id(result)] = result.detach()
        elif func in SEEDS:
            self._resident[id(result)] = result.detach()
            self._fixed.add(result.untyped_storage().data_ptr())
        else:
            is_sequence = isinstance(result, tuple | list)
            results = [self._name(tensor) for tensor in (result if is_sequence else [result])]
            self._calls.append(Call(func, named_args, named_kwargs, results, is_sequence))
        return result

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

    def _replace(self, value: Any) -> Any:
        """Return arguments with names in place of tensors."""
        if isinstance(value, Tensor):
            name = self._of.get(id(value), self._resident.get(id(value)))
            if name is None:
                raise CannotRecordError("a tensor comes from elsewhere")
            return name
        if isinstance(value, tuple | list):
            return [self._replace(part) for part in value]
        return {key: self._replace(part) for key, part in value.items()} if isinstance(value, dict) else value

    def compile(self, gradients: Sequence[Tensor], targets: Sequence[Tensor], scores: Tensor | None) -> Replay:
        """Return a function of the inputs that writes these gradients to their targets and returns the scores."""
        outputs, returned = self._replace(gradients), None if scores is None else self._replace(scores)
        producers = {name: call for call in self._calls for name in call.results if name}
        uses = Counter(name for call in self._calls for name in call.names())
        uses.update(_names([outputs, returned]))
        copies: dict[int, list[Call]] = {}  # by the call that they follow
        for output, target in zip(outputs, targets, strict=True):
            producer, out = self._writer(output, target, producers, uses)
            if producer is None:
                after = producers.get(output) if isinstance(output, Name) else None
                copies.setdefault(id(after), []).append(Call(aten.copy_.default, [target, output], {}, [], False))
            else:
                producer.out = out
        kept = copies.get(id(None), [])
        needed = set(_names([returned, *(call.args for call in kept)]))
        for call in reversed(self._calls):
            kept += copies.get(id(call), [])
            if id(call) in copies or call.out is not None or call.has_side_effects or needed & {*call.results}:
                kept.append(call)
                needed.update(call.names())
        return _code(kept[::-1], self._inputs, returned)

    def _writer(
        self, output: Any, target: Tensor, producers: dict[Name, Call], uses: Counter[Name]
    ) -> tuple[Call | None, Tensor]:
        """Return the call that can write a gradient to its target through views used only here, and that view."""
        while isinstance(output, Name) and output in producers and uses[output] == 1:
            call = producers[output]
            if call.function is aten.t.default:
                target = target.t()
            elif call.function in RESHAPES and isinstance(call.args[0], Name) and target.is_contiguous():
                target = target.view(self._shapes[call.args[0]])
            else:
                fits = call.function in WITH_OUT and target.is_contiguous() and not target.data_ptr() % ALIGNMENT
                return (call if fits else None), target
            output = call.args[0]
        return None, target


class NoValueReads(TorchFunctionMode):
    """Refuses functions that read values of tensors past the dispatcher."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function unless it reads values."""
        if getattr(func, "__name__", "") in READERS:
            raise CannotRecordError(f"{func} reads values")
        return func(*args, **(kwargs or {}))


def _names(values: Iterable[Any]) -> Iterator[Name]:
    for value in values:
        if isinstance(value, Name):
            yield value
        elif isinstance(value, list):
            yield from _names(value)


def _code(calls: list[Call], inputs: list[Name], returned: Any) -> Replay:
    """Return the calls as a function; a variable is deleted after its last use, so that its memory is reused."""
    namespace: dict[str, Any] = {}

    def source(value: Any) -> str:
        if isinstance(value, Name):
            return value
        if any(True for _ in _names([value])):
            return f"[{', '.join(map(source, value))}]"
        name = f"k{len(namespace)}"
        namespace[name] = value
        return name

    last = {name: call for call in calls for name in (*filter(None, call.results), *call.names())}
    lines = []
    for call in calls:
        kwargs = call.kwargs if call.out is None else {"out": call.out}
        arguments = ", ".join([*map(source, call.args), *(f"{key}={source(value)}" for key, value in kwargs.items())])
        line = f"{source(_function(call))}({arguments})"
        if call.out is None and any(call.results):
            line = f"{', '.join(name or '_' for name in call.results)}{',' * call.returns_sequence} = {line}"
        unused = {name for name, final in last.items() if final is call} - {*inputs, returned}
        lines += [line, *(f"del {name}" for name in sorted(unused) if call.out is None or name not in call.results)]
    lines.append(f"return {source(returned)}")
    # The code contains only variables, constants and operations of torch, and no text from a user or a file.
    exec("\n    ".join([f"def replay({', '.join(inputs)}):", *lines]), namespace)
    replay: Replay = torch.inference_mode()(namespace["replay"])
    return replay


def _function(call: Call) -> Any:
    """Return the binding of an operation that takes the least time to call: torch's own if there is one."""
    if call.out is not None:
        return WITH_OUT[call.function]
    name = call.function._schema.name.removeprefix("aten::")
    homes = (torch._C._VariableFunctions, torch._C.TensorBase) if call.function.namespace == "aten" else ()
    return next((getattr(home, name) for home in homes if hasattr(home, name)), call.function._op)
