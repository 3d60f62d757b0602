"""What is wrong with a configuration, in plain words: pydantic finds it, the schema says what was wanted."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from fedrela.errors import ArgumentError
from fedrela.experiment.schema.table import BrokenRuleError, Fault
from fedrela.experiment.toml.positions import KeyPath, Places, Position
from fedrela.experiment.toml.reader import complaint
from fedrela.text import shown, unknown

KINDS: dict[Any, str] = {
    int: "an integer", float: "a number", bool: "true or false", str: "text", Path: "a path", tuple: "a list",
    list: "a list", dict: "a table",
}  # fmt: skip


class Problem(NamedTuple):
    """One thing that is wrong: the key, which part of it to show, and the sentence, made only when it is wanted."""

    path: KeyPath
    at: Literal["key", "value", "table"]
    tell: Callable[[], str]

    def position(self, places: Places) -> Position:
        """Return where to look in the text; a missing key is not there, so its place is that of its table."""
        place = places.of(self.path)
        return place.key if self.at == "key" else place.value


def problems_of(error: ValidationError, model: type[BaseModel]) -> Iterator[Problem]:
    """Yield everything that pydantic found, in its order."""
    for found in error.errors(include_url=False):
        path: KeyPath = found["loc"]
        rule = found.get("ctx", {}).get("error")
        if isinstance(rule, BrokenRuleError):
            for fault in rule.faults:
                yield Problem((*path, *fault.path), fault.at, functools.partial(_fault, model, path, fault))
        elif found["type"] == "extra_forbidden":
            yield Problem(path, "key", functools.partial(_unknown_key, model, path))
        elif found["type"] == "missing":
            yield Problem(path, "table", functools.partial(_missing, model, path))
        else:
            yield Problem(path, "value", functools.partial(_not_wanted, model, path, found["input"]))


def _fault(model: type[BaseModel], path: KeyPath, fault: Fault) -> str:
    if fault.at != "table":
        return fault.what
    return f"{_missing(model, (*path, *fault.path))}; {fault.what}"


def _missing(model: type[BaseModel], path: KeyPath) -> str:
    return f"{_wanted_at(model, path)} is missing"


def _not_wanted(model: type[BaseModel], path: KeyPath, value: Any) -> str:
    return f"expected {_wanted_at(model, path)}, got {shown(value)}"


def _unknown_key(model: type[BaseModel], path: KeyPath) -> str:
    for key in path[:-1]:
        model = _kind(model.model_fields[str(key)].annotation)
    return unknown("key", str(path[-1]), model.model_fields, "this table")


def _wanted_at(model: type[BaseModel], path: KeyPath) -> str:
    words, kind = KINDS[dict], model
    for key in path:
        if not issubclass(kind, BaseModel):
            break  # inside a list or a free table, whose field says what it takes
        field = kind.model_fields[str(key)]
        words, kind = wanted(field), _kind(field.annotation)
    return words


def _kind(annotation: Any) -> Any:
    """Return the type behind an annotation, without `None`, which means left out."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType, Annotated):
        return _kind(next(part for part in get_args(annotation) if part is not types.NoneType))
    return origin or annotation


def wanted(field: FieldInfo) -> str:
    """Return what a field takes, from its type and its limits.

    >>> from pydantic import Field
    >>> wanted(FieldInfo.from_annotated_attribute(float, Field(ge=0, lt=1)))
    'a number >= 0 and < 1'
    """
    kind = _kind(field.annotation)
    noun = KINDS[dict if issubclass(kind, BaseModel) else kind]
    low, above, high, below = (_limit(field, name) for name in ("ge", "gt", "le", "lt"))
    if above:
        return f"{noun} > {above}" + (f" and <= {high}" if high else "")
    if high:
        return f"{noun} from {low} to {high}"
    limits = [f">= {low}"] * bool(low) + [f"< {below}"] * bool(below)
    return " ".join([noun, " and ".join(limits)]).strip()


def _limit(field: FieldInfo, name: str) -> str:
    values = [getattr(rule, name) for rule in field.metadata if hasattr(rule, name)]
    return "".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


class WrongConfigError(ArgumentError):
    """A configuration with problems: the message is the first one in the text, with the number of the others."""

    def __init__(self, problems: Iterable[Problem], name: str, places: Places | None) -> None:
        self.name, self.places = name, places
        self.problems = sorted(problems, key=lambda problem: problem.position(places)) if places else list(problems)
        others = len(self.problems) - 1
        super().__init__(self._line(self.problems[0], f" (and {others} more)" if others else ""))

    def lines(self, most: int) -> Iterator[str]:
        """Yield one line a problem, in the order of the text; after `most` of them, how many more there are."""
        yield from map(self._line, self.problems[:most])
        if more := len(self.problems[most:]):
            yield str(complaint(self.name, f"and {more} more"))

    def _line(self, problem: Problem, more: str = "") -> str:
        position = problem.position(self.places) if self.places else None
        return str(complaint(self.name, problem.tell() + more, position, problem.path))
