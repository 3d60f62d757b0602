"""Which entries of a table, or runs of a study, are asked for: words such as ``FedETF,IF=100``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fedrela.errors import ArgumentError
from fedrela.text import nearest_hint, not_one_of, shown

Place = Mapping[str, str]  # value by axis


def matching(only: str, places: Sequence[Place]) -> list[bool]:
    """Return for every place whether `only` asks for it; an empty text asks for all.

    `only` lists values, or ``AXIS=VALUE`` where several axes have the value, separated by commas. A place must have one
    of the values that are named for an axis, for each axis named. Capital letters and spaces do not count.

    >>> methods = ["FedAvg", "FedAvg", "MLP, SMOTE"]
    >>> places = [{"IF": IF, "method": method} for IF, method in zip(("50", "100", "50"), methods)]
    >>> matching("fedavg, IF=100", places), matching("FedAvg,MLP, SMOTE", places)
    ([False, True, False], [True, True, True])
    """
    asked: dict[str, set[str]] = {}
    for term in _terms(only, places):
        axis, value = _axis_and_value(term, places)
        asked.setdefault(axis, set()).add(value)
    found = [all(_folded(place.get(axis, "")) in values for axis, values in asked.items()) for place in places]
    if not any(found):
        raise ArgumentError("no entry has all of these values", argument="only")
    return found


def _terms(only: str, places: Sequence[Place]) -> Iterator[str]:
    """Split a list at its commas, but not within a known value, which may have some."""
    known = {_folded(value) for place in places for value in place.values()}
    parts = only.split(",")
    if only and not any(map(str.strip, parts)):
        raise ArgumentError("expected values, separated by commas, got none", argument="only")
    while parts:
        axis, is_pair, first = parts[0].rpartition("=")
        joined = ((end, ",".join([first, *parts[1:end]])) for end in range(len(parts), 0, -1))
        end, value = next((each for each in joined if _folded(each[1]) in known), (1, first))
        del parts[:end]
        if term := f"{axis}{is_pair}{value}".strip():
            yield term


def _axis_and_value(term: str, places: Sequence[Place]) -> tuple[str, str]:
    """Return the axis and the folded value that a term names."""
    name, is_pair, value = term.rpartition("=")
    axes = dict.fromkeys(axis for place in places for axis in place)
    within = [axis for axis in axes if not is_pair or _folded(name) in (_folded(axis), _folded(axis.split(".")[-1]))]
    if not within:
        hint = nearest_hint(name, axes)
        raise ArgumentError(f"expected one of {', '.join(axes)} before =, got {shown(name)}{hint}", argument="only")
    having = [axis for axis in within if any(_folded(place.get(axis, "")) == _folded(value) for place in places)]
    if len(having) == 1:
        return having[0], _folded(value)
    if having:
        pairs = " or ".join(f"{axis}={value}" for axis in having)
        raise ArgumentError(f"{shown(value)} has several meanings: write {pairs}", argument="only")
    known = dict.fromkeys(place[axis] for axis in within for place in places if axis in place)
    raise ArgumentError(not_one_of(value, known), argument="only")


def _folded(text: str) -> str:
    return "".join(text.split()).casefold()
