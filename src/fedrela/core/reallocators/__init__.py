"""Re-allocators: one contract (`fedrela.core.reallocators.base`), one small file each, one explicit table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrela.components import find_component, import_table
from fedrela.core.reallocators.base import Reallocator, proposal
from fedrela.errors import ArgumentError, WrongKeyError
from fedrela.options import options_of
from fedrela.text import shown, unknown

__all__ = ["REALLOCATORS", "Reallocator", "method_name", "proposal", "reallocator"]

REALLOCATORS: dict[str, type[Reallocator]] = import_table(
    __name__,
    {
        "confident": "confident:Confident",
        "fedrela": "fedrela:FedReLa",
        "margin": "margin:Margin",
        "random": "random:Random",
    },
)


def reallocator(method: object, params: Mapping[str, Any] | None = None) -> Reallocator:
    """Return the re-allocator of a name or a class, created with these parameters; an instance is returned as it is.

    >>> reallocator("margin").label
    'Posterior margin'
    >>> reallocator("margin", {"share": 0.5})
    Traceback (most recent call last):
    ...
    fedrela.errors.WrongKeyError: params.share: unknown parameter; method 'Posterior margin' has none
    """
    found: Any = method
    expected = "a re-allocator, a class derived from fedrela.core.Reallocator"
    if isinstance(method, str):
        found = find_component("reallocators", method, REALLOCATORS, _is_reallocator, expected)
    elif not _is_reallocator(method):
        raise ArgumentError(f"expected {expected}, or one of the names {', '.join(REALLOCATORS)}, got {shown(method)}")
    if not isinstance(found, Reallocator):
        return _with_params(found, params or {})
    if params:
        raise ArgumentError("the method is an object with its own parameters; leave these out", argument="params")
    return found


def _is_reallocator(found: object) -> bool:
    return isinstance(found, Reallocator) or (isinstance(found, type) and issubclass(found, Reallocator))


def _with_params(kind: type[Reallocator], params: Mapping[str, Any]) -> Reallocator:
    names = [each.name for each in options_of(kind.Params)]
    for name in map(str, params):
        if name not in names:
            what = unknown("parameter", name, names, f"method {kind.label!r}")
            raise WrongKeyError(what, argument="params", item=(name,))
    try:
        return kind(**params)
    except ArgumentError as error:
        own = (error.argument,) if error.argument else ()
        raise type(error)(error.reason, argument="params", item=(*own, *error.item)) from None


def method_name(method: Any) -> str:
    """Return a re-allocator's name in ledgers."""
    if isinstance(method, str):
        return method
    kind = method if isinstance(method, type) else type(method)
    return f"{kind.__module__}:{kind.__qualname__}"
