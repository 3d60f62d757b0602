"""Parts of your own by name: ``"package.module:Name"``, or the name under which an installed package offers one.

Whoever names a part with a colon has its module imported, which runs its code. Parts are looked up only to run or check
a configuration; reading a run folder never does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.text import nearest_hint, not_one_of, one_line, shown


def find_part(group: str, name: object, known: Mapping[str, Any]) -> Any:
    """Return the part called `name`: one of `known`, of a module, or of the entry points ``fedrela.<group>``.

    >>> find_part("models", "math:sqrt", {})(9)
    3.0
    >>> find_part("models", "math:squirt", {})
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: module 'math' has no 'squirt'; nearest: 'sqrt'
    """
    if not isinstance(name, str):
        raise ArgumentError(not_one_of(name, known))
    if name in known:
        return known[name]
    if ":" in name:
        return import_part(name)
    installed = installed_parts(group)
    if name not in installed:
        raise ArgumentError(not_one_of(name, [*known, *installed]))
    return import_part(installed[name].value)


def installed_parts(group: str) -> dict[str, EntryPoint]:
    """Return what installed packages offer, by name; nothing of it is imported."""
    return {each.name: each for each in entry_points(group=f"fedrela.{group}")}


def import_part(name: str) -> Any:
    """Import what ``"package.module:Name"`` stands for; modules are also looked for in the current folder."""
    module, _, attribute = name.partition(":")
    if not all(word.isidentifier() for word in [*module.split("."), *attribute.split(".")]):
        raise ArgumentError(f"expected module:name, such as mypackage.mymodule:Mine, got {shown(name)}")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ArgumentError(f"module {module!r} cannot be imported: {one_line(error)}") from error
        where = "is it installed, or below the current folder?"
        raise ArgumentError(f"no module {error.name!r}; {where}") from None
    except Exception as error:  # user code may raise anything
        raise ArgumentError(f"module {module!r} cannot be imported: {one_line(error)}") from error
    for word in attribute.split("."):
        if not hasattr(found, word):
            raise ArgumentError(f"module {module!r} has no {attribute!r}{nearest_hint(word, dir(found))}")
        found = getattr(found, word)
    return found


def check_kind(name: object, found: Any, right: bool, expected: str) -> None:
    """Raise if a name stands for the wrong kind of object."""
    if not right:
        raise ArgumentError(f"expected {expected}, but {shown(name)} is {shown(found)}")


def name_of(part: Any) -> str:
    """Return the name under which a class or function can be imported.

    >>> name_of(ArgumentError)
    'fedrela.errors:ArgumentError'
    """
    name = f"{part.__module__}:{part.__qualname__}"
    if "<" in name or import_part(name) is not part:
        raise ArgumentError(f"{name}: defined inside a function or replaced since; define it in a module")
    return name


def modules_named(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the modules that the parts named in a configuration would import; nothing is imported.

    >>> list(modules_named({"algorithm": {"name": "mine.fast:Mine"}, "data": {"source": "digits"}}))
    ['mine.fast']
    """
    named = {"algorithm": ("name",), "model": ("name",), "data": ("source",), "relabel": ("method",)}
    tables = [(table.get(key, {}), keys) for key, keys in named.items()]
    for each in table.get("compare", {}).get("baselines", ()):
        tables += [(each if isinstance(each, Mapping) else {"name": each}, ("name",))]
    for each, keys in tables:
        for name in (each.get(key, "") for key in keys):
            if isinstance(name, str) and ":" in name:
                yield name.partition(":")[0]
