"""Keys that a table has because of the name in it: options of the model, parameters of the algorithm.

They stand beside the other keys of their table, so such a table takes any key, and what is not known is found here.
Only those that differ from the defaults are kept: two tables that mean the same are equal, and a table that chooses
nothing is checked without loading torch, which the models and algorithms need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fedrela.experiment.schema.base import BrokenRuleError, Fault, Table
from fedrela.text import unknown

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
