"""What all tables of a configuration share: closed keys, choices, rules across keys, declared options.

A table is a `ConfigTable` with a field per key, or a class of `fedrela.options.Options`, which declares its keys where
they are used: ``[train]`` is `fedrela.engine.run_options.TrainOptions`, checked here by `options_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import NoneType
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, PlainValidator

from fedrela.arguments import check_choice
from fedrela.errors import ArgumentError, WrongKeyError
from fedrela.experiment.toml.reader import Places, Position
from fedrela.experiment.toml.writer import KeyPath
from fedrela.options import Option, Options, checked, options_of, without_none
from fedrela.text import shown, unknown

Declared = TypeVar("Declared", bound=Options)
LARGEST_SIZE = 1_000_000  # of one dimension or layer; larger numbers are mistakes that would exhaust memory


class Fault(NamedTuple):
    """One error: the path below the value that was checked, the message, and which part to point at.

    A wrong value is shown at the value, a key that must not be there at the key.
    """

    path: KeyPath
    what: str
    at: Literal["key", "value"] = "value"

    def position(self, places: Places) -> Position:
        """Return where to look in the text."""
        place = places.of(self.path)
        return place.key if self.at == "key" else place.value


class BrokenRuleError(ArgumentError):
    """Several faults, or one below the value that was checked; validators may also raise an `ArgumentError`.

    Pydantic collects both with everything else that is wrong.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = list(faults)
        super().__init__("; ".join(fault.what for fault in self.faults))


def raise_any(faults: Iterable[Fault]) -> None:
    """Raise a `BrokenRuleError` if there are faults."""
    if found := list(faults):
        raise BrokenRuleError(found)


def setting(default: Any, description: str, **limits: Any) -> Any:
    """Return the field of one key of a table; `description` is its comment in a file."""
    return Field(default=default, description=description, **limits)


class ConfigTable(BaseModel):
    """A closed table: an unknown key is an error, a boolean is not a number, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def as_table(self) -> dict[str, Any]:
        """Return the keys with their values, defaults included, as plain values for a TOML text."""
        values = {name: plain_table(getattr(self, name)) for name in type(self).model_fields}
        return {key: value for key, value in values.items() if value is not None}

    def comments(self) -> dict[str, str]:
        """Return a one-line description of each key."""
        return {name: field.description or "" for name, field in type(self).model_fields.items()}


def sizes(value: Any, what: str) -> tuple[int, ...]:
    """Return a list of sizes; `what` says in the message of an error what they are of."""
    if not isinstance(value, list | tuple):
        raise ArgumentError(f"expected a list of integers, {what}, got {shown(value)}")
    for i, size in enumerate(value):
        if type(size) is not int or not 1 <= size <= LARGEST_SIZE:
            raise ArgumentError(f"expected an integer from 1 to {LARGEST_SIZE}, got {shown(size)}", item=(i,))
    return tuple(value)


def plain_table(value: Any) -> Any:
    """Return a table as plain values; any other value as it is. Options that are not used or None are left out."""
    if isinstance(value, ConfigTable):
        return value.as_table()
    if not isinstance(value, Options):
        return value
    values = {name: getattr(value, name) for name in _own_first(type(value)) if name not in value.unused()}
    return {name: each for name, each in values.items() if each is not None}


def comments_of(table: ConfigTable | Options) -> dict[str, str]:
    """Return a one-line description of each key of a table."""
    if isinstance(table, ConfigTable):
        return table.comments()
    known = {each.name: each for each in options_of(type(table))}
    return {name: _comment(known[name]) for name in _own_first(type(table))}


def _comment(option: Option) -> str:
    words = () if callable(option.words) else option.choices
    return option.help if all(word in option.help for word in words) else f"{option.help} ({', '.join(words)})"


def _own_first(kind: type[Options]) -> list[str]:
    """Return the names of options, those that the class declares itself before those that it inherits."""
    names = dict.fromkeys(each.name for each in options_of(kind))
    return list(dict.fromkeys([*(name for name in kind.__annotations__ if name in names), *names]))


def options_table(kind: type[Declared], *, strict: bool = False) -> PlainValidator:
    """Return the rule that a value is a table of declared options; it becomes an instance of their class.

    An unused option must be left out, or have its default if the rule is not `strict`.
    """

    def check(value: Any) -> Declared:
        if isinstance(value, kind):
            return value
        if not isinstance(value, Mapping):
            raise ArgumentError(f"expected a table, got {shown(value)}")
        table = kind(**checked_options(options_of(kind), value, "this table"))
        unused, given = table.unused().items(), value if strict else changed_options(table)
        raise_any(Fault((name,), f"{why}; leave it out", "key") for name, why in unused if name in given)
        return table

    return PlainValidator(check)


def changed_options(table: Options) -> dict[str, Any]:
    """Return the options that are not as their class declares them."""
    options = options_of(type(table))
    return {each.name: value for each in options if (value := getattr(table, each.name)) != each.default}


CHANGED = PlainSerializer(changed_options)  # writes only the changed options of a table
FULL = PlainSerializer(plain_table)  # writes all options in use, since a new kind replaces its table


def checked_options(
    options: Iterable[Option], given: Mapping[str, Any], owner: str, others: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the values to keep; messages about unknown keys say whose options they are, and which other keys exist."""
    known = {each.name: each for each in options}
    values, faults = {}, []
    for name, value in given.items():
        if name not in known:
            faults.append(Fault((name,), unknown("key", name, [*others, *known], owner), "key"))
            continue
        try:
            values[name] = _kept(known[name], value)
        except ArgumentError as error:
            at: Literal["key", "value"] = "key" if isinstance(error, WrongKeyError) else "value"
            faults.append(Fault((name, *error.item), error.reason, at))
    raise_any(faults)
    return values


def _kept(option: Option, value: Any) -> Any:
    """Return the value to keep; messages do not offer None, which means left out and which TOML cannot express."""
    if option.check is None and NoneType in option.types:
        option = without_none(option)
    kept = checked(option, value)
    return float(kept) if option.type is float and type(kept) is int else kept


def component_name(find: Callable[[], Callable[[object], Any]], *, sure: str | None = None) -> BeforeValidator:
    """Return the rule that a value names a component, built-in or the user's own; `find` returns the lookup function.

    The lookup may load torch; `sure` is accepted without it.
    """

    def check(value: Any) -> str:
        try:
            if value != sure:
                find()(value)
        except ArgumentError as error:
            raise ArgumentError(error.reason) from None  # the key is the argument
        return str(value)

    return BeforeValidator(check)


def one_of(words: Iterable[str]) -> BeforeValidator:
    """Return the rule that a value is one of some words."""
    return BeforeValidator(lambda value: check_choice("", value, words))
