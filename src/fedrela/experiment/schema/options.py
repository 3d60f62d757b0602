"""The table ``[data.options]``: what one source alone can be told; names and types are those of its own function."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from fedrela.data.sources import SOURCES
from fedrela.experiment.schema.base import BrokenRuleError, Fault
from fedrela.text import shown, unknown

_KINDS = {str: "text", int: "an integer", float: "a number", bool: "true or false"}


def plain_option(value: Any) -> Any:
    """Check that a value is a plain one or a list of plain ones, and return it with a tuple for a list."""
    items = enumerate(value) if isinstance(value, list | tuple) else [(None, value)]
    for i, item in items:
        if not isinstance(item, str | bool | int | float) or (isinstance(item, float) and not math.isfinite(item)):
            what = f"expected text, a finite number, true or false, or a list of these, got {shown(item)}"
            raise BrokenRuleError(Fault(() if i is None else (i,), "value", what))
    return tuple(value) if isinstance(value, list | tuple) else value


def check_options(source: str, options: Mapping[str, Any]) -> None:
    """Complain of options that a source does not have, and of values of another type than it takes."""
    own, hints = SOURCES[source].options, get_type_hints(SOURCES[source].load)
    faults = []
    for name, value in options.items():
        if name not in own:
            faults.append(Fault(("options", name), "key", unknown("option", name, own, f"source {source!r}")))
        elif what := misfit(value, hints[name]):
            faults.append(Fault(("options", name), "value", what))
    if faults:
        raise BrokenRuleError(*faults)


def misfit(value: Any, hint: Any) -> str:
    """Say what a type hint wants where a value is something else; empty where it fits.

    >>> misfit("9", int | None), misfit(9, float)
    ("expected an integer, got '9'", '')
    """
    return "" if _fits(value, hint) else f"expected {' or '.join(_words(hint))}, got {shown(value)}"


def _parts(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, without `None`, which is an option left out."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return tuple(part for part in parts if part is not types.NoneType)


def _fits(value: Any, hint: Any) -> bool:
    for part in _parts(hint):
        if get_origin(part):  # a sequence
            fits = isinstance(value, tuple) and all(_fits(item, get_args(part)[0]) for item in value)
        elif isinstance(value, bool) or part is bool:
            fits = part is bool and isinstance(value, bool)
        else:
            fits = isinstance(value, int | float if part is float else part)
        if fits:
            return True
    return False


def _words(hint: Any) -> Iterator[str]:
    for part in _parts(hint):
        inner = " or ".join(_words(get_args(part)[0])) if get_origin(part) else ""
        yield f"a list, each item {inner}," if inner else _KINDS[part]
