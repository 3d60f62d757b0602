"""The table ``[sweep]``: keys of the other tables, each with the values to try; every one goes with every other.

A key is named with dots, ``"relabel.tau" = [0.01, 0.05]``, or stands in a table of its own, ``[sweep.relabel]``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fedrela.experiment.schema.base import BrokenRuleError, Fault
from fedrela.experiment.toml.text import toml_value
from fedrela.text import shown

MOST_CELLS = 5_000  # runs; their configurations alone take two seconds to check
MOST_KEYS = 50
NOT_SWEPT = {
    "seed": "seeds stand in [compare] seeds, and what they reach is averaged",
    "engine": "nothing in [engine] changes a result, so there is nothing to try",
    "report": "nothing in [report] changes a result, so there is nothing to try",
    "compare": "[compare] speaks of all runs, not of one",
    "sweep": "[sweep] speaks of all runs, not of one",
}


class Entry(NamedTuple):
    """A key that is swept: how it is written below ``[sweep]``, the key of the configuration, and its values."""

    path: tuple[str, ...]
    target: tuple[str, ...]
    values: Sequence[Any]

    @property
    def key(self) -> str:
        """The key of the configuration, with dots."""
        return ".".join(self.target)

    def down_to(self, depth: int) -> tuple[str, ...]:
        """Return as much of the written path as names the first `depth` parts of the key; a part may hold dots."""
        parts = 0
        for end, part in enumerate(self.path, 1):
            parts += part.count(".") + 1
            if parts >= depth:
                return self.path[:end]
        return self.path


class Point(NamedTuple):
    """One value of every key: `places` says which of its values, `values` has them by dotted key."""

    places: tuple[int, ...]
    values: dict[str, Any]


def entries_of(sweep: Mapping[str, Any] | None) -> list[Entry]:
    """Return the swept keys in their order.

    >>> [(entry.key, entry.values) for entry in entries_of({"relabel": {"tau": [0.1, 0.2]}, "train.rounds": [5]})]
    [('relabel.tau', [0.1, 0.2]), ('train.rounds', [5])]
    """
    return [Entry(path, tuple(".".join(path).split(".")), values) for path, values in _lists(sweep or {}, ())]


def points_of(entries: Sequence[Entry]) -> Iterator[Point]:
    """Yield every combination of values, the last key's changing fastest."""
    for places in itertools.product(*(range(len(entry.values)) for entry in entries)):
        pairs = zip(entries, places, strict=True)
        yield Point(places, {entry.key: entry.values[i] for entry, i in pairs})


def number_of_points(entries: Sequence[Entry]) -> int:
    """Return how many combinations there are."""
    return math.prod(len(entry.values) for entry in entries)


def check_sweep(sweep: dict[str, Any]) -> dict[str, Any]:
    """Complain of what is wrong with the table itself; whether its keys and values are right is seen with the others'.

    Raises
    ------
    BrokenRuleError
        Where a key has no list of values, cannot be swept or comes twice, or where there are too many combinations.
    """
    entries = entries_of(sweep)
    if len(entries) > MOST_KEYS:
        raise BrokenRuleError(Fault((), "value", f"expected at most {MOST_KEYS} keys, got {len(entries)}"))
    faults = [fault for entry in entries for fault in _faults_of(entry)] + list(_overlaps(entries))
    if not faults and (number := number_of_points(entries)) > MOST_CELLS:
        faults = [Fault((), "value", f"expected at most {MOST_CELLS} combinations, got {number}")]
    if faults:
        raise BrokenRuleError(*faults)
    return sweep


def _lists(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _lists(value, (*path, key))
        else:
            yield (*path, key), value


def _faults_of(entry: Entry) -> Iterator[Fault]:
    if what := NOT_SWEPT.get(entry.target[0]):
        yield Fault(entry.path, "key", what)
    elif not isinstance(entry.values, list | tuple) or not entry.values:
        got = "an empty one" if isinstance(entry.values, list | tuple) else shown(entry.values)
        yield Fault(entry.path, "value", f"expected a list of values to try, got {got}")
    else:
        seen: set[str] = set()
        for i, value in enumerate(entry.values):
            if (text := toml_value(value)) in seen:  # as text, since 1, 1.0 and true are three values
                yield Fault((*entry.path, i), "value", f"{shown(value)} is there already; leave one of the two out")
            seen.add(text)


def _overlaps(entries: Sequence[Entry]) -> Iterator[Fault]:
    for i, entry in enumerate(entries):
        for other in entries[:i]:
            shared = min(len(entry.target), len(other.target))
            if entry.target[:shared] == other.target[:shared]:
                yield Fault(entry.path, "key", f"{other.key} is swept already; leave one of the two out")
