"""B9 in whole rounds: clients that need less than the deadline, about as much, or far more.

Whoever was late by the engine's own account is left out, and all is as if it had not been chosen. Only who is far too
late is known beforehand: nothing here depends on how fast the machine is.
"""

from __future__ import annotations

import numpy as np
import pytest

from fedrela.engine.executors.pool import Pool
from fedrela.engine.executors.serial import SerialExecutor
from helpers.batteries import count, tried
from helpers.failing import FOREVER, Failing, SilentClient
from helpers.hundred import begin, problem, rounds

DEADLINE, CLIENTS, ROUNDS = 0.3, 6, 2
PROBLEM = problem(CLIENTS)
PARTS = 4  # of the battery


def delays(number: int, above: float) -> dict[tuple[int, int], float]:
    """Return who waits for how long, by round and client; about one of them far too long."""
    rng = np.random.default_rng([number, 90])
    kinds = [0.0, 0.01, 0.1, DEADLINE, above]
    waits = rng.choice(kinds, (ROUNDS, CLIENTS), p=[0.45, 0.2, 0.1, 0.1, 0.15])
    waits[number % ROUNDS, number % CLIENTS] = above
    return {(r + 1, k): float(waits[r, k]) for r in range(ROUNDS) for k in range(CLIENTS)}


def check(executor, plan: dict[tuple[int, int], float], above: float) -> None:
    found = list(rounds(begin(PROBLEM, Failing(delays=plan), executor, deadline=DEADLINE, give_up=9)))
    late = {done.record.round: dict(done.record.excluded) for done, _ in found}
    for (round, client), seconds in plan.items():
        if seconds == above:
            assert late[round].get(client) == "deadline"
    tried(faults=sum(map(len, late.values())))
    assert {reason for reasons in late.values() for reason in reasons.values()} == {"deadline"}
    with SerialExecutor() as serial:
        expected = list(rounds(begin(PROBLEM, Failing(), serial, absent=late, give_up=9)))
    for (done, state), (other, wanted) in zip(found, expected, strict=True):
        assert state == wanted
        assert done.record.admitted == other.record.chosen
        same = {"chosen": other.record.chosen, "excluded": []}
        assert done.record.as_record() | same == other.record.as_record()


@pytest.fixture(scope="module")
def pool():
    with Pool(2) as pool:
        yield pool


@pytest.mark.parametrize("part", range(PARTS))
def test_in_workers(pool, part):
    for number in range(part, count(6, 40), PARTS):
        check(pool, delays(number, FOREVER), FOREVER)


def test_in_one_process():
    with SerialExecutor() as serial:
        for number in range(count(2, 8)):
            check(serial, delays(100 + number, 2 * DEADLINE), 2 * DEADLINE)


def test_in_an_exchange(pool):
    (done, _), _ = rounds(begin(PROBLEM, SilentClient(), pool, deadline=2 * DEADLINE))
    assert dict(done.record.excluded)[0] == "exchange ask: deadline"
