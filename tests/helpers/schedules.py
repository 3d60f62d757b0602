"""Who drops out when: a hundred clients, two rounds, re-labelling in one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from helpers.hundred import CLIENTS, ROUNDS


@dataclass(frozen=True)
class Dropouts:
    """A schedule: clients lost by round, how many a round needs, and the round of re-labelling."""

    kind: str
    lost: dict[int, frozenset[int]]
    least: int
    relabel: int

    def good(self, round: int) -> list[int]:
        return [client for client in range(CLIENTS) if client not in self.lost.get(round, ())]


def some(rng: np.random.Generator, number: int) -> frozenset[int]:
    return frozenset(rng.choice(CLIENTS, number, replace=False).tolist())


def any_number(rng, relabel):
    return {round: some(rng, int(rng.integers(0, CLIENTS))) for round in range(1, ROUNDS + 1)}


def all_but_one(rng, relabel):
    return {int(rng.integers(1, ROUNDS + 1)): some(rng, CLIENTS - 1)}


def the_same_always(rng, relabel):
    few = some(rng, int(rng.choice([1, 1, 10])))
    return dict.fromkeys(range(1, ROUNDS + 1), few)


def when_re_labelling(rng, relabel):
    return {relabel: some(rng, int(rng.choice([1, 30, 60, 98, 99])))}


def around_the_least(rng, relabel):
    return {round: some(rng, CLIENTS - int(rng.integers(4, 8))) for round in range(1, ROUNDS + 1)}


KINDS = (any_number, all_but_one, around_the_least, any_number, the_same_always, any_number, when_re_labelling)


def schedule(number: int) -> Dropouts:
    """Return the schedule of that number."""
    rng = np.random.default_rng([number, 8])
    kind = KINDS[number % len(KINDS)]
    least = 6 if kind is around_the_least else int(rng.choice([1, 1, 1, 25]))
    relabel = 1 + number % ROUNDS
    return Dropouts(kind.__name__, kind(rng, relabel), least, relabel)
