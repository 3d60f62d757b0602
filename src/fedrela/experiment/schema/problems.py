"""Errors in a configuration as one-line messages: pydantic finds them, the schema says what was expected."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from fedrela.errors import ArgumentError, WrongKeyError
from fedrela.experiment.schema.config_table import BrokenRuleError, Fault
from fedrela.experiment.toml.reader import Origin, config_error
from fedrela.experiment.toml.writer import KeyPath
from fedrela.options import Option, expected
from fedrela.text import shown, unknown

KINDS: dict[Any, str] = {
    int: "an integer", float: "a number", bool: "true or false", str: "text", Path: "a path", tuple: "a list",
    list: "a list", dict: "a table",
}  # fmt: skip
LIMITS = ("ge", "gt", "le", "lt")


def problems_of(error: ValidationError, model: type[BaseModel]) -> Iterator[Fault]:
    """Yield everything that pydantic found, in its order; a missing key has the position of its table."""
    for found in error.errors(include_url=False):
        path: KeyPath = found["loc"]
        rule = found.get("ctx", {}).get("error")
        if isinstance(rule, BrokenRuleError):
            yield from (fault._replace(path=(*path, *fault.path)) for fault in rule.faults)
        elif isinstance(rule, ArgumentError):
            at: Literal["key", "value"] = "key" if isinstance(rule, WrongKeyError) else "value"
            yield Fault((*path, *([rule.argument] if rule.argument else []), *rule.item), rule.reason, at)
        elif found["type"] == "extra_forbidden":
            yield Fault(path, _unknown_key(model, path), "key")
        elif found["type"] == "missing":
            yield Fault(path, f"{_wanted_at(model, path)} is missing")
        else:
            yield Fault(path, f"expected {_wanted_at(model, path)}, got {shown(found['input'])}")


def _unknown_key(model: type[BaseModel], path: KeyPath) -> str:
    for name in path[:-1]:
        model = _kind(model.model_fields[str(name)].annotation)
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
    """Describe the values that a field accepts, by its type and limits.

    >>> from pydantic import Field
    >>> wanted(FieldInfo.from_annotated_attribute(float, Field(ge=0, lt=1)))
    'a number >= 0 and < 1'
    """
    kind = _kind(field.annotation)
    limits = {name: getattr(rule, name) for rule in field.metadata for name in LIMITS if hasattr(rule, name)}
    if kind in (int, float, bool):
        return expected(Option("", kind, None, "", **limits))
    return KINDS[dict if issubclass(kind, BaseModel) else kind]


class WrongConfigError(ArgumentError):
    """A configuration with problems: the message is the first one in the text, with the number of the others."""

    def __init__(self, problems: Iterable[Fault], origin: Origin) -> None:
        self.origin, places = origin, origin.places
        self.problems = sorted(problems, key=lambda fault: fault.position(places)) if places else list(problems)
        others = len(self.problems) - 1
        super().__init__(self._line(self.problems[0], f" (and {others} more)" if others else ""))

    def lines(self, most: int) -> Iterator[str]:
        """Yield one line per problem, in the order of the text; after `most` of them, how many more there are."""
        yield from map(self._line, self.problems[:most])
        if more := len(self.problems[most:]):
            yield str(config_error(self.origin.name, f"and {more} more"))

    def _line(self, fault: Fault, more: str = "") -> str:
        position = fault.position(self.origin.places) if self.origin.places else None
        return str(config_error(self.origin.name, fault.what + more, position, fault.path))
