"""When a client re-labels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela import Schedule
from fedrela.errors import ArgumentError
from helpers.batteries import examples


def passes(plan: Schedule, rounds: int, turns: set[int]) -> list[int]:
    """The rounds in which a client that has its turn in `turns` re-labels."""
    done: list[int] = []
    for r in range(1, rounds + 1):
        if r in turns and plan.due(r, rounds, done[-1] if done else None):
            done.append(r)
    return done


EVERY = set(range(1, 101))


@pytest.mark.parametrize(
    ("start", "rounds", "first"),
    [
        (0.8, 60, 48),
        (0.8, 1, 1),
        (0.01, 10, 1),
        (1.0, 10, 10),
        (7, 10, 7),
        (1, 10, 1),
        (12, 10, 12),
        (0.55, 10, 6),
    ],
)
def test_first_round(start, rounds, first):
    assert Schedule(start=start).first(rounds) == first


def test_one_shot():
    assert passes(Schedule(start=0.8), 100, EVERY) == [80]
    assert passes(Schedule(start=120), 100, EVERY) == []


def test_periodic():
    assert passes(Schedule(start=70, period=10), 100, EVERY) == [70, 80, 90, 100]
    assert passes(Schedule(start=98, period=1), 100, EVERY) == [98, 99, 100]


def test_late_joiners():
    turns = {10, 85, 95}
    assert passes(Schedule(start=80), 100, turns) == [85]
    assert passes(Schedule(start=80, late=False), 100, turns) == []
    assert passes(Schedule(start=80, period=10), 100, turns) == [85, 95]
    assert passes(Schedule(start=80, period=5, late=False), 100, turns) == [85, 95]
    assert passes(Schedule(start=80, period=10, late=False), 100, turns) == []


def test_a_repeated_turn_does_not_relabel_twice():
    plan = Schedule(start=5, late=False)
    assert plan.due(5, 10)
    assert not plan.due(5, 10, last=5)


@pytest.mark.parametrize("start", [0, -1, 0.0, 1.5, -0.5, float("nan"), True, "0.8", None])
def test_wrong_start(start):
    with pytest.raises(ArgumentError) as error:
        Schedule(start=start)
    assert str(error.value) == f"start: expected a round >= 1 or a share of the rounds in (0, 1], got {start!r}"


@pytest.mark.parametrize("period", [-1, 2.0, True, None])
def test_wrong_period(period):
    with pytest.raises(ArgumentError, match="period:"):
        Schedule(period=period)


@examples(200, 5000)
@given(st.integers(1, 120), st.integers(0, 30), st.booleans(), st.sets(st.integers(1, 100)))
def test_a_pass_a_period_at_most(start, period, late, turns):
    done = passes(Schedule(start=start, period=period, late=late), 100, turns)
    assert set(done) <= turns
    assert all(r >= start for r in done)
    slots = [0 if period == 0 else (r - start) // period for r in done]
    assert len(set(slots)) == len(slots)
    if late:
        expected = {0 if period == 0 else (r - start) // period for r in turns if r >= start}
        assert set(slots) == expected
