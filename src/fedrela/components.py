"""User-defined components by name: ``"package.module:Name"``, or an entry point of an installed package.

A name with a colon imports that module, which runs its code. Components are looked up only to run or check a
configuration; reading a run folder never does that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.files import digest
from fedrela.text import nearest_hint, not_one_of, one_line, shown


def import_table(package: str, places: Mapping[str, str]) -> dict[str, Any]:
    """Import the components of a package that its table names: name -> ``"module:Name"``.

    >>> import_table("fedrela", {"argument": "errors:ArgumentError"})["argument"].exit_code
    2
    """
    parts = {name: place.split(":") for name, place in places.items()}
    return {name: getattr(import_module(f"{package}.{module}"), word) for name, (module, word) in parts.items()}


def find_component(
    group: str,
    name: object,
    builtin: Mapping[str, Any],
    fits: Callable[[Any], bool],
    expected: str,
    *,
    argument: str = "",
) -> Any:
    """Return the component called `name`: one of `builtin`, of a module, or of the entry points ``fedrela.<group>``.

    It must be what `fits` accepts, which `expected` describes; errors are about `argument`.

    >>> find_component("models", "math:sqrt", {}, callable, "a function")(9)
    3.0
    >>> find_component("models", "math:squirt", {}, callable, "a function")
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: module 'math' has no 'squirt'; nearest: 'sqrt'
    >>> find_component("models", "math:pi", {}, callable, "a function", argument="model")
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: model: expected a function, but 'math:pi' is 3.141592653589793
    """
    try:
        found = _look_up(group, name, builtin)
    except ArgumentError as error:
        raise ArgumentError(error.reason, argument=argument) from error.__cause__
    if not fits(found):
        raise ArgumentError(f"expected {expected}, but {shown(name)} is {shown(found)}", argument=argument)
    return found


def _look_up(group: str, name: object, builtin: Mapping[str, Any]) -> Any:
    if not isinstance(name, str):
        raise ArgumentError(not_one_of(name, builtin))
    if name in builtin:
        return builtin[name]
    if ":" in name:
        return import_object(name)
    installed = installed_components(group)
    if name not in installed:
        raise ArgumentError(not_one_of(name, [*builtin, *installed]))
    return import_object(installed[name].value)


def installed_components(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of installed packages by name, without importing them."""
    return {each.name: each for each in entry_points(group=f"fedrela.{group}")}


def import_object(name: str) -> Any:
    """Import the object ``"package.module:Name"``; modules are also looked up in the current folder."""
    module, _, attribute = name.partition(":")
    if not all(word.isidentifier() for word in [*module.split("."), *attribute.split(".")]):
        raise ArgumentError(f"expected module:name, such as mypackage.mymodule:MyClass, got {shown(name)}")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ArgumentError(f"module {module!r} cannot be imported: {one_line(error)}") from error
        raise ArgumentError(f"no module {error.name!r}; is it installed, or below the current folder?") from None
    except (Exception, SystemExit) as error:  # user code may raise anything, and a script may exit
        raise ArgumentError(f"module {module!r} cannot be imported: {one_line(error)}") from error
    for word in attribute.split("."):
        if not hasattr(found, word):
            raise ArgumentError(f"module {module!r} has no {attribute!r}{nearest_hint(word, dir(found))}")
        found = getattr(found, word)
    for each in _modules_of(name, found):
        _file_digest(each)  # now: the file may change while this process uses what it has imported
    return found


_digests: dict[str, tuple[object, str]] = {}  # by module: its spec, which a reload replaces, and the digest of its file


def code_digests(names: Iterable[str]) -> dict[str, str]:
    """Return the digest of each file, by module, that components named ``"module:Name"`` were imported from.

    Such a file is that of the named module, and that of the module of the same package which defines the component.

    >>> list(code_digests(["fedrela.core:relabel", "fedavg"]))
    ['fedrela.core', 'fedrela.core.relabelling']
    """
    modules = {each for name in names if ":" in name for each in _modules_of(name, import_object(name))}
    return {module: found for module in sorted(modules) if (found := _file_digest(module))}


def _modules_of(name: str, component: Any) -> set[str]:
    named, defining = name.partition(":")[0], str(getattr(component, "__module__", ""))
    return {each for each in (named, defining) if each.partition(".")[0] == named.partition(".")[0]}


def _file_digest(module: str) -> str:
    """Return the digest of the file of a module as it was when first asked for; empty if it has none."""
    loaded = sys.modules.get(module)
    spec, file = (getattr(loaded, name, None) for name in ("__spec__", "__file__"))
    if module not in _digests or _digests[module][0] is not spec:
        try:
            _digests[module] = (spec, digest(Path(file).read_bytes()) if file else "")
        except OSError:  # such as a module in an archive
            _digests[module] = (spec, "")
    return _digests[module][1]


def import_name(component: Any) -> str:
    """Return the name under which a class or function can be imported.

    >>> import_name(ArgumentError)
    'fedrela.errors:ArgumentError'
    """
    name = f"{component.__module__}:{component.__qualname__}"
    if "<" in name or import_object(name) is not component:
        raise ArgumentError(f"{name}: defined inside a function or replaced since; define it in a module")
    return name


def imported_modules(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the modules that the components named in a configuration would import, without importing them.

    >>> list(imported_modules({"algorithm": {"name": "lab.fast:FastAvg"}, "data": {"source": "digits"}}))
    ['lab.fast']
    """
    keys = {"algorithm": "name", "model": "name", "data": "source", "relabel": "method"}
    names = [config.get(table, {}).get(key) for table, key in keys.items()]
    for each in config.get("compare", {}).get("baselines", ()):
        names.append(each.get("name") if isinstance(each, Mapping) else each)
    yield from (name.partition(":")[0] for name in names if isinstance(name, str) and ":" in name)
