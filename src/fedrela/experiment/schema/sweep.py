"""The table ``[sweep]``: keys of the other tables, each with the values to try; every combination is a run.

A key is named with dots, ``"relabel.tau" = [0.01, 0.05]``, or is a key of its own table, ``[sweep.relabel]``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fedrela.errors import ArgumentError
from fedrela.experiment.schema.compare import problems_over, repeated
from fedrela.experiment.schema.config_table import Fault, raise_any
from fedrela.experiment.toml.reader import dotted
from fedrela.experiment.toml.writer import toml_value
from fedrela.text import shown

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

MOST_CELLS = 5_000  # runs; their configurations alone take two seconds to check
MOST_KEYS = 50
NOT_SWEPT = {
    "seed": "seeds belong in [compare] seeds, and their results are averaged",
    "engine": "nothing in [engine] changes a result, so there is nothing to try",
    "report": "nothing in [report] changes a result, so there is nothing to try",
    "compare": "[compare] is about all runs, not one",
    "sweep": "[sweep] is about all runs, not one",
}


class SweptKey(NamedTuple):
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


def swept_keys(sweep: Mapping[str, Any] | None) -> list[SweptKey]:
    """Return the swept keys in their order.

    >>> [(swept.key, swept.values) for swept in swept_keys({"relabel": {"tau": [0.1, 0.2]}, "train.rounds": [5]})]
    [('relabel.tau', [0.1, 0.2]), ('train.rounds', [5])]
    """
    return [SweptKey(path, tuple(".".join(path).split(".")), values) for path, values in _lists(sweep or {}, ())]


def points_of(keys: Sequence[SweptKey]) -> Iterator[Point]:
    """Yield every combination of values, the last key's changing fastest."""
    for places in itertools.product(*(range(len(swept.values)) for swept in keys)):
        pairs = zip(keys, places, strict=True)
        yield Point(places, {swept.key: swept.values[i] for swept, i in pairs})


def number_of_points(keys: Sequence[SweptKey]) -> int:
    """Return how many combinations there are."""
    return math.prod(len(swept.values) for swept in keys)


def check_sweep(sweep: dict[str, Any]) -> dict[str, Any]:
    """Check the table itself; its keys and values are checked together with the other tables.

    It is wrong if a key has no list of values, cannot be swept or comes twice, or if there are too many
    combinations.
    """
    keys = swept_keys(sweep)
    if len(keys) > MOST_KEYS:
        raise ArgumentError(f"expected at most {MOST_KEYS} keys, got {len(keys)}")
    raise_any([fault for swept in keys for fault in _faults_of(swept)] + list(_overlaps(keys)))
    if (number := number_of_points(keys)) > MOST_CELLS:
        raise ArgumentError(f"expected at most {MOST_CELLS} combinations, got {number}")
    return sweep


def _lists(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _lists(value, (*path, key))
        else:
            yield (*path, key), value


def _faults_of(swept: SweptKey) -> Iterator[Fault]:
    if what := NOT_SWEPT.get(swept.target[0]):
        yield Fault(swept.path, what, "key")
    elif not isinstance(swept.values, list | tuple) or not swept.values:
        got = "an empty one" if isinstance(swept.values, list | tuple) else shown(swept.values)
        yield Fault(swept.path, f"expected a list of values to try, got {got}")
    else:
        texts = [toml_value(value) for value in swept.values]  # since 1, 1.0 and true are three values
        twice = [i for i, text in enumerate(texts) if text in texts[:i]]
        yield from (Fault((*swept.path, i), repeated(swept.values[i])) for i in twice)


def _overlaps(keys: Sequence[SweptKey]) -> Iterator[Fault]:
    for i, swept in enumerate(keys):
        for other in keys[:i]:
            shared = min(len(swept.target), len(other.target))
            if swept.target[:shared] == other.target[:shared]:
                yield Fault(swept.path, f"{other.key} is swept already; leave one of the two out", "key")


SET_BY = {  # what a key of [compare] sets in every run
    "baselines": (("algorithm", "name"),),
    "arms": (("relabel", "enabled"), ("relabel", "lr_scale"), ("relabel", "moves")),
}


def compared(config: Config, key: str) -> tuple[Any, ...]:
    """Return the seeds, baselines or arms that ``[compare]`` gives, without defaults; empty if none."""
    table = config.compare
    return getattr(table, key) or () if table is not None and key in table.model_fields_set else ()


def sweep_faults(config: Config) -> list[Fault]:
    """Return what is wrong with the values in ``[sweep]``, each fault once, at the swept key."""
    keys = swept_keys(config.sweep)
    if not keys:
        return []
    if faults := [*_not_of_a_sweep(config), *_set_elsewhere(config, keys), *_too_many(config, keys)]:
        return faults
    found: dict[Fault, None] = {}
    for baseline in compared(config, "baselines") or (None,):
        found |= dict.fromkeys(_faults_below(config, {} if baseline is None else baseline.changes(), keys))
    return list(found)


def _not_of_a_sweep(config: Config) -> Iterator[Fault]:
    table = config.compare
    if table is not None and table.score != "last":
        yield Fault(("compare", "score"), "a sweep is scored after the last round; leave it out", "key")
    if table is not None and table.pairs:
        yield Fault(("compare", "pairs"), "a sweep shows the arms, not their differences; leave it out", "key")


def _set_elsewhere(config: Config, keys: Sequence[SweptKey]) -> Iterator[Fault]:
    for key, targets in SET_BY.items():
        for swept in keys if compared(config, key) else ():
            if any(target[: len(swept.target)] == swept.target for target in targets):
                yield Fault(("sweep", *swept.path), f"[compare] {key} set it; leave one of the two out", "key")


def _too_many(config: Config, keys: Sequence[SweptKey]) -> Iterator[Fault]:
    others = math.prod(len(compared(config, key)) or 1 for key in ("seeds", "baselines", "arms"))
    if (number := others * number_of_points(keys)) > MOST_CELLS:
        what = f"expected at most {MOST_CELLS} runs, got {number} with the seeds, baselines and arms of [compare]"
        yield Fault(("sweep",), what)


def _faults_below(config: Config, baseline: Mapping[str, Any], keys: Sequence[SweptKey]) -> Iterator[Fault]:
    """Yield the faults of all combinations, on top of what a baseline sets; one may come twice."""
    from fedrela.experiment.overlay import merge, nested  # late, since they import this schema

    elsewhere: set[Fault] = set()
    for point in points_of(keys):
        for problem in problems_over(config, merge(baseline, nested(point.values))):
            own = list(_own_faults(keys, point, problem))
            yield from own
            if not own and problem not in elsewhere:  # a key that is not swept, but conflicts with these
                elsewhere.add(problem)
                yield _joint_fault(keys, point, f"{dotted(problem.path)}: {problem.what}")


def _joint_fault(keys: Sequence[SweptKey], point: Point, what: str) -> Fault:
    if len(keys) == 1:
        return Fault(("sweep", *keys[0].path, point.places[0]), what)
    values = ", ".join(f"{key} = {toml_value(value)}" for key, value in point.values.items())
    return Fault(("sweep",), f"with {values}: {what}")


def _own_faults(keys: Sequence[SweptKey], point: Point, problem: Fault) -> Iterator[Fault]:
    """Yield the problem as a fault of each swept key that is the same key, above it, or below it."""
    for swept, place in zip(keys, point.places, strict=True):
        shared = min(len(swept.target), len(problem.path))
        if swept.target[:shared] != problem.path[:shared]:
            continue
        below = problem.path[len(swept.target) :]
        if below or (len(problem.path) == len(swept.target) and problem.at != "key"):
            yield problem._replace(path=("sweep", *swept.path, place, *below))
        else:
            path = swept.down_to(len(problem.path))
            whole = ".".join(path) == ".".join(map(str, problem.path))
            what = problem.what if whole else f"{dotted(problem.path)}: {problem.what}"
            yield Fault(("sweep", *path), what, "key")
