"""Whether every combination of swept values is a configuration, and which entry of ``[sweep]`` is to blame if not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fedrela.experiment.schema.base import Fault
from fedrela.experiment.schema.problems import Problem, WrongConfigError, dotted
from fedrela.experiment.schema.sweep import MOST_CELLS, Entry, Point, entries_of, number_of_points, points_of
from fedrela.experiment.toml.places import KeyPath

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

SET_BY = {  # what a key of [compare] sets in every run
    "baselines": (("algorithm", "name"),),
    "arms": (("relabel", "enabled"), ("relabel", "lr_scale"), ("relabel", "moves")),
}


def compared(config: Config, key: str) -> tuple[Any, ...]:
    """Return the seeds, baselines or arms that ``[compare]`` gives; empty where it gives none, defaults do not count."""
    table = config.compare
    return getattr(table, key) or () if table is not None and key in table.model_fields_set else ()


def sweep_faults(config: Config) -> list[Fault]:
    """Return what is wrong with the values in ``[sweep]``, each fault once, with the place of the entry."""
    entries = entries_of(config.sweep)
    if not entries:
        return []
    if faults := [*_set_elsewhere(config, entries), *_too_many(config, entries)]:
        return faults
    found: dict[Fault, None] = {}
    for baseline in compared(config, "baselines") or (None,):
        found |= dict.fromkeys(_faults_below(config, {} if baseline is None else baseline.changes(), entries))
    return list(found)


def _set_elsewhere(config: Config, entries: Sequence[Entry]) -> Iterator[Fault]:
    for key, targets in SET_BY.items():
        for entry in entries if compared(config, key) else ():
            if any(target[: len(entry.target)] == entry.target for target in targets):
                yield Fault(("sweep", *entry.path), "key", f"[compare] {key} set it; leave one of the two out")


def _too_many(config: Config, entries: Sequence[Entry]) -> Iterator[Fault]:
    others = math.prod(len(compared(config, key)) or 1 for key in ("seeds", "baselines", "arms"))
    if (number := others * number_of_points(entries)) > MOST_CELLS:
        what = f"expected at most {MOST_CELLS} runs, got {number} with the seeds, baselines and arms of [compare]"
        yield Fault(("sweep",), "value", what)


def _faults_below(config: Config, baseline: Mapping[str, Any], entries: Sequence[Entry]) -> Iterator[Fault]:
    """Yield the faults of all combinations, over what a baseline lays over the configuration; the same may come again."""
    elsewhere: set[tuple[KeyPath, str]] = set()
    for point in points_of(entries):
        for problem in _problems(config, baseline, point.values):
            words = problem.tell()
            own = list(_own_faults(entries, point, problem, words))
            yield from own
            if not own and (problem.path, words) not in elsewhere:
                elsewhere.add((problem.path, words))
                entry, place = _culprit(config, baseline, entries, point, problem)
                yield Fault(("sweep", *entry.path, place), "value", f"{dotted(problem.path)}: {words}")


def _problems(config: Config, baseline: Mapping[str, Any], values: Mapping[str, Any]) -> list[Problem]:
    from fedrela.experiment.overlay import laid_over, nested, overlay  # which need the schema that this is a part of

    try:
        overlay(config, laid_over(baseline, nested(values)))
    except WrongConfigError as error:
        return error.problems
    return []


def _own_faults(entries: Sequence[Entry], point: Point, problem: Problem, words: str) -> Iterator[Fault]:
    """Yield the faults of entries whose key is the one with the problem, lies above it, or below it."""
    for entry, place in zip(entries, point.places, strict=True):
        shared = min(len(entry.target), len(problem.path))
        if entry.target[:shared] == problem.path[:shared]:
            yield _own_fault(entry, place, problem, words)


def _own_fault(entry: Entry, place: int, problem: Problem, words: str) -> Fault:
    below = problem.path[len(entry.target) :]
    if below or (len(problem.path) == len(entry.target) and problem.at != "key"):
        return Fault(("sweep", *entry.path, place, *below), "key" if problem.at == "key" else "value", words)
    path = entry.down_to(len(problem.path))
    whole = ".".join(path) == ".".join(map(str, problem.path))
    return Fault(("sweep", *path), "key", words if whole else f"{dotted(problem.path)}: {words}")


def _culprit(
    config: Config, baseline: Mapping[str, Any], entries: Sequence[Entry], point: Point, problem: Problem
) -> tuple[Entry, int]:
    """Return the first entry without which the problem goes away, or the last one, and the place of its value."""
    pairs = list(zip(entries, point.places, strict=True))
    for entry, place in pairs:
        others = {key: value for key, value in point.values.items() if key != entry.key}
        if all(other.path != problem.path for other in _problems(config, baseline, others)):
            return entry, place
    return pairs[-1]
