"""Re-allocators: one contract (`fedrela.core.reallocators.base`), one small file each, one explicit table."""

from __future__ import annotations

from typing import Any

from fedrela.core.reallocators.base import Reallocator, proposal
from fedrela.core.reallocators.confident import Confident
from fedrela.core.reallocators.fedrela import FedReLa
from fedrela.core.reallocators.margin import Margin
from fedrela.core.reallocators.random import Random
from fedrela.errors import ArgumentError
from fedrela.parts import find_part
from fedrela.text import shown

__all__ = ["REALLOCATORS", "Reallocator", "method_name", "proposal", "reallocator"]

REALLOCATORS: dict[str, type[Reallocator]] = {
    "confident": Confident,
    "fedrela": FedReLa,
    "margin": Margin,
    "random": Random,
}


def reallocator(method: object) -> Reallocator:
    """Return the re-allocator of a name, of a class, or given as such.

    >>> reallocator("margin").label
    'Posterior margin'
    """
    found = find_part("reallocators", method, REALLOCATORS) if isinstance(method, str) else method
    made = found() if isinstance(found, type) and issubclass(found, Reallocator) else found
    if not isinstance(made, Reallocator):
        what = "expected a re-allocator, a class derived from fedrela.core.Reallocator"
        raise ArgumentError(f"{what}, or the name of one out of {', '.join(REALLOCATORS)}, got {shown(method)}")
    return made


def method_name(method: Any) -> str:
    """Return how ledgers call a re-allocator."""
    if isinstance(method, str):
        return method
    kind = method if isinstance(method, type) else type(method)
    return f"{kind.__module__}:{kind.__qualname__}"
