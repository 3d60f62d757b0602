"""What all tables of the configuration share: a closed table, a word out of a list, and rules across keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict

from fedrela.errors import ArgumentError
from fedrela.experiment.schema.words import nearest, shown

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

    def check_used(self, kind: str, used: Collection[str]) -> None:
        """Complain of keys that are given though a table of this kind does not use them."""
        given = [name for name in type(self).model_fields if name in self.model_fields_set and name != "kind"]
        what = f"kind {kind!r} does not use it; leave it out"
        if unused := [name for name in given if name not in used and getattr(self, name) is not None]:
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


def one_of(words: Iterable[str]) -> BeforeValidator:
    """Return the rule that a value is one of some words."""
    allowed = tuple(words)

    def check(value: Any) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        near = nearest(value, allowed) if isinstance(value, str) else ""
        hint = f"; nearest: {near}" if near else ""
        raise BrokenRuleError(Fault((), "value", f"one of {', '.join(allowed)} is needed, got {shown(value)}{hint}"))

    return BeforeValidator(check)
