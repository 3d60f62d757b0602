"""Where a run can be killed: before, amid and after every step on disk."""

from __future__ import annotations

from collections import Counter

import numpy as np

from helpers.disk_faults import WRITES, Notes

Point = tuple[int, str, str, int]  # phase, verb, moment, how many verbs came before


def points(notes: Notes) -> list[Point]:
    """Return every kill point of a run."""
    reached = [at for at, _, _ in notes.marks]
    found = []
    for number, (verb, arguments) in enumerate(notes.tried):
        phase = sum(at <= number for at in reached)
        moments = ("before", "amid", "after") if verb in WRITES and len(arguments[1]) > 1 else ("before", "after")
        found += [(phase, verb, moment, number) for moment in moments]
    return found


def spread(found: list[Point], number: int, seed: int) -> list[Point]:
    """Return some points: every verb of every phase has its turn before any has a second one, and verbs alternate."""
    pairs: Counter[tuple[int, str]] = Counter()
    verbs: Counter[str] = Counter()
    turns = []
    for place in np.random.default_rng(seed).permutation(len(found)):
        phase, verb, _, _ = point = found[place]
        turns.append((pairs[phase, verb], verbs[verb], point))
        verbs[verb] += pairs[phase, verb] == 0
        pairs[phase, verb] += 1
    return [point for *_, point in sorted(turns, key=lambda turn: turn[:2])[:number]]
