"""Re-allocators: one contract (`fedrela.core.reallocators.base`), one small file each, one explicit table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrela.core.reallocators.base import Reallocator, proposal
from fedrela.core.reallocators.confident import Confident
from fedrela.core.reallocators.fedrela import FedReLa
from fedrela.core.reallocators.margin import Margin
from fedrela.core.reallocators.random import Random
from fedrela.errors import ArgumentError
from fedrela.options import options_of
from fedrela.parts import find_part
from fedrela.text import shown, unknown

__all__ = ["REALLOCATORS", "Reallocator", "method_name", "proposal", "reallocator"]

REALLOCATORS: dict[str, type[Reallocator]] = {
    "confident": Confident,
    "fedrela": FedReLa,
    "margin": Margin,
    "random": Random,
}


def reallocator(method: object, params: Mapping[str, Any] | None = None) -> Reallocator:
    """Return the re-allocator of a name, or of a class, with parameters of its own; or one given as such.

    >>> reallocator("margin").label
    'Posterior margin'
    >>> reallocator("margin", {"share": 0.5})
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: params: 'share': unknown parameter; method 'Posterior margin' has none
    """
    found = find_part("reallocators", method, REALLOCATORS) if isinstance(method, str) else method
    if isinstance(found, type) and issubclass(found, Reallocator):
        made: object = _with_params(found, params or {})
    elif params:
        raise ArgumentError("the method is an object, which has its own; leave them out", argument="params")
    else:
        made = found
    if not isinstance(made, Reallocator):
        what = "expected a re-allocator, a class derived from fedrela.core.Reallocator"
        raise ArgumentError(f"{what}, or the name of one out of {', '.join(REALLOCATORS)}, got {shown(method)}")
    return made


def _with_params(kind: type[Reallocator], params: Mapping[str, Any]) -> Reallocator:
    known = [each.name for each in options_of(kind.Params)]
    for name in params:
        if name not in known:
            what = f"{shown(name)}: {unknown('parameter', str(name), known, f'method {kind.label!r}')}"
            raise ArgumentError(what, argument="params")
    try:
        return kind(**params)
    except ArgumentError as error:
        raise ArgumentError(str(error), argument="params") from None


def method_name(method: Any) -> str:
    """Return a re-allocator's name in ledgers."""
    if isinstance(method, str):
        return method
    kind = method if isinstance(method, type) else type(method)
    return f"{kind.__module__}:{kind.__qualname__}"
