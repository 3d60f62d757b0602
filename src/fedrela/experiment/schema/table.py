"""What all tables of a configuration share: closed keys, words out of a list, rules across keys, keys that a name brings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator

from fedrela.errors import ArgumentError
from fedrela.text import not_one_of, shown, unknown

MOST_CLIENTS = 1_000_000
MOST_SAMPLES = 10**9  # far beyond any data set; larger numbers are slips that would end in a lack of memory


class Fault(NamedTuple):
    """One thing that is wrong: the path below the value that was checked, which part of it to show, and what it is.

    A wrong value is shown at the value, a key that must not be there at the key, and one that is missing at the
    table that lacks it.
    """

    path: tuple[str | int, ...]
    at: Literal["key", "value", "table"]
    what: str


class BrokenRuleError(ArgumentError):
    """What a validator raises; pydantic collects it with everything else that is wrong."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.what for fault in faults))
        self.faults = faults


class Table(BaseModel):
    """A closed table: an unknown key is an error, a truth value is no number, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def as_table(self) -> dict[str, Any]:
        """Return the keys with their values, defaults included, as plain values for a TOML text."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {key: _plain(value) for key, value in values.items() if value is not None}

    def comments(self) -> dict[str, str]:
        """Return what each key means, in one line."""
        return {name: field.description or "" for name, field in type(self).model_fields.items()}

    def check_used(self, chooser: str, used: Collection[str], among: Collection[str] | None = None) -> None:
        """Complain of keys that are given though the choice made by the key `chooser` does not use them."""
        owned = set(type(self).model_fields if among is None else among) - {chooser, *used}
        what = f"{chooser} {getattr(self, chooser)!r} does not use it; leave it out"
        given = [name for name in type(self).model_fields if name in owned & self.model_fields_set]
        if unused := [name for name in given if getattr(self, name) is not None]:
            raise BrokenRuleError(*(Fault((name,), "key", what) for name in unused))

    def check_rules(self, *rules: Callable[[], object]) -> None:
        """Call what states the rules; an `ArgumentError` of it, ``key: what is wrong``, becomes a fault at that key."""
        for rule in rules:
            try:
                rule()
            except ArgumentError as error:
                key, _, what = str(error).partition(": ")
                missing = getattr(self, key, None) is None
                raise BrokenRuleError(Fault((key,), "table" if missing else "value", what)) from None


def _plain(value: Any) -> Any:
    return value.as_table() if isinstance(value, Table) else value


def one_of(words: Iterable[str] | Callable[[], Iterable[str]], *, sure: str | None = None) -> BeforeValidator:
    """Return the rule that a value is one of some words.

    Parameters
    ----------
    words
        The words, or a function that returns them: it is called only when they are needed, since it may load torch.
    sure
        A word that is allowed without a look at the others.
    """

    def check(value: Any) -> str:
        if isinstance(value, str) and value == sure:
            return value
        allowed = tuple(words() if callable(words) else words)
        if isinstance(value, str) and value in allowed:
            return value
        raise BrokenRuleError(Fault((), "value", not_one_of(value, allowed)))

    return BeforeValidator(check)


def stated_by(rule: Callable[[Any], Any]) -> PlainValidator:
    """Return the rule that something outside the configuration states: it returns the value to keep, or raises."""

    def check(value: Any) -> Any:
        try:
            return rule(value)
        except ArgumentError as error:
            raise BrokenRuleError(Fault((), "value", said_of(value, error))) from None

    return PlainValidator(check)


def said_of(value: Any, error: ArgumentError) -> str:
    """Return the words of an error, ``name: expected what, got value``, without the name and with a short value."""
    return str(error).partition(": ")[2].replace(f"got {value!r}", f"got {shown(value)}")


Check = Callable[[str, Any], list[Fault]]


def settle(table: Table, owner: str, defaults: Mapping[str, Any], check: Check) -> None:
    """Complain of what is wrong in the further keys of a table; keep of them what is not the default.

    Parameters
    ----------
    table
        A table that takes any key.
    owner
        Whose keys they are, for messages.
    defaults
        The further keys that there are, with what they are when left out.
    check
        Returns what is wrong with the value of one key; lists come as tuples.
    """
    given, faults = further_keys(table), []
    given.update({key: tuple(value) for key, value in given.items() if isinstance(value, list)})
    for key, value in given.items():
        if key not in defaults:
            what = unknown("key", key, [*type(table).model_fields, *defaults], owner)
            faults.append(Fault((key,), "key", what))
        elif wrong := check(key, value):
            faults += wrong
        elif isinstance(defaults[key], float):
            given[key] = float(value)
    if faults:
        raise BrokenRuleError(*faults)
    for key in [key for key, value in given.items() if value == defaults[key]]:
        del given[key]


def further_keys(table: Table) -> dict[str, Any]:
    """Return the keys of a table that are no fields of it; changing them changes the table."""
    return table.__pydantic_extra__ or {}
