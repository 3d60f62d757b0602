"""B8: clients that drop out of a round are named, and the rest is as if they had never been chosen, bit for bit."""

from __future__ import annotations

import pytest

from fedrela.engine.executors.pool import Pool
from fedrela.engine.executors.serial import SerialExecutor
from helpers.batteries import count, tried
from helpers.engine_federations import snapshot
from helpers.failing import Failing, way
from helpers.hundred import CLIENTS, ROUNDS, begin, by_hand, problem, rounds
from helpers.schedules import KINDS, Dropouts, schedule
from helpers.toy_work import last_line

PROBLEM = problem()
GONE = last_line(Failing.client)
PARTS = 10  # of the battery, which may run beside each other


@pytest.fixture
def serial():
    with SerialExecutor() as serial:
        yield serial


def check(plan: Dropouts, executor) -> list[dict[str, bytes]]:
    """Carry out a schedule, compare every round with a mean by hand, and return the state after each."""
    run = begin(PROBLEM, Failing(plan.lost), executor, plan.relabel, min_clients=plan.least)
    states = [snapshot(run)]
    for done, state in rounds(run):
        record, round = done.record, done.record.round
        good, lost = plan.good(round), sorted(plan.lost.get(round, ()))
        assert record.chosen == list(range(CLIENTS))
        assert record.excluded == [(client, f"ConnectionError: gone {way(round, client)}{GONE}") for client in lost]
        assert record.skipped == (len(good) < plan.least)
        assert record.admitted == ([] if record.skipped else good)
        assert record.samples == ([] if record.skipped else [len(PROBLEM.shards[k].train) for k in good])
        assert state["weights"] == (states[-1]["weights"] if record.skipped else by_hand(run, good))
        if record.skipped:
            assert (record.moved, record.relabelled, done.ledgers) == (0, [], {})
            assert state["labels"] == states[-1]["labels"]
        states.append(state)
    tried(faults=sum(map(len, plan.lost.values())))
    return states[1:]


def check_against_the_never_chosen(plan: Dropouts, states: list[dict[str, bytes]], executor) -> None:
    """Compare with a run in which no client fails, and those that would have are never chosen."""
    run = begin(PROBLEM, Failing(), executor, plan.relabel, plan.lost, min_clients=plan.least)
    assert [state for _, state in rounds(run)] == states


@pytest.mark.parametrize("part", range(PARTS))
def test_schedules(part, serial):
    for number in range(part, count(100, 1000), PARTS):
        plan = schedule(number)
        states = check(plan, serial)
        if number % 20 == part:
            check_against_the_never_chosen(plan, states, serial)


def test_what_the_schedules_hold():
    plans = [schedule(number) for number in range(100)]
    assert {plan.kind for plan in plans} == {kind.__name__ for kind in KINDS}
    numbers = {
        (round == plan.relabel, len(plan.lost.get(round, ()))) for plan in plans for round in range(1, ROUNDS + 1)
    }
    assert {(due, lost) for due in (True, False) for lost in (0, 1, CLIENTS - 1)} <= numbers
    skipped = [len(plan.good(round)) < plan.least for plan in plans for round in range(1, ROUNDS + 1)]
    assert 20 <= sum(skipped) <= 100
    ways = {way(round, k) for plan in plans for round, lost in plan.lost.items() for k in lost}
    assert len(ways) == 3


def test_in_workers(serial):
    plans = [schedule(number) for number in range(count(3, 30))]
    with Pool(2) as pool:
        for plan in plans:
            check_against_the_never_chosen(plan, check(plan, pool), serial)


def test_clients_that_failed_re_label_when_they_are_chosen_next(serial):
    even, odd = frozenset(range(0, CLIENTS, 2)), frozenset(range(1, CLIENTS, 2))
    found = [done.record for done, _ in rounds(begin(PROBLEM, Failing({2: even}), serial, rounds=3))]
    assert [{client for client, _ in record.relabelled} for record in found] == [set(), odd, even]
    assert all(record.moved for record in found[1:])
