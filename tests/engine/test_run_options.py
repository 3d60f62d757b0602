"""Learning-rate schedules, the draw of clients, and when re-labelling acts."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedrela.algorithms.fedavg import FedAvg
from fedrela.core.relabel_options import RelabelOptions
from fedrela.engine.problem import Plan
from fedrela.engine.run_options import RelabelPlan, TrainOptions
from fedrela.errors import ArgumentError
from fedrela.options import options_of
from helpers.batteries import examples


def factors(**plan):
    made = TrainOptions(**plan)
    return [made.factor(round) for round in range(1, made.rounds + 1)]


def test_the_rate_stays():
    assert factors(rounds=5) == [1.0] * 5


def test_it_drops_from_each_milestone_on():
    assert factors(rounds=8, schedule="step") == pytest.approx([1] * 4 + [0.1] * 2 + [0.01] * 2)
    rounds = factors(rounds=8, schedule="step", milestones=(3, 7), gamma=0.5)
    assert rounds == [1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]
    assert factors(rounds=4, schedule="step", milestones=()) == [1.0] * 4


@examples(40, 1000)
@given(st.integers(1, 300), st.floats(0, 1))
def test_it_falls_along_a_cosine_to_its_end(rounds, end):
    found = factors(rounds=rounds, schedule="cosine", lr_end=end)
    assert found[0] == 1
    assert all(a >= b for a, b in pairwise(found))
    if rounds > 1:
        assert found[-1] == pytest.approx(end)
        assert found[0] + found[-1] == pytest.approx(found[rounds // 2] + found[rounds - 1 - rounds // 2])


def test_local_training_has_all_three_factors():
    train = TrainOptions(rounds=4, lr=0.2, schedule="step", clip=2.0, loss="focal", epochs=3)
    local = Plan(0, train, RelabelPlan(start=3, lr_scale=0.5), FedAvg(), make=nn.Identity).local(3)
    assert local.lr == pytest.approx(0.2 * 0.1 * 0.5)
    assert (local.epochs, local.clip, local.loss, local.momentum) == (3, 2.0, "focal", 0.9)


@examples(100, 3000)
@given(st.integers(1, 60), st.floats(0.001, 1), st.integers(1, 9), st.integers(0, 9))
def test_a_share_of_the_clients_is_chosen(clients, participation, round_, seed):
    chosen = TrainOptions(participation=participation).chosen(seed, round_, clients)
    assert len(chosen) == min(clients, max(1, round(participation * clients)))
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert set(chosen.tolist()) <= set(range(clients))
    assert chosen.tolist() == TrainOptions(participation=participation).chosen(seed, round_, clients).tolist()


def test_everybody_is_chosen_about_as_often():
    plan = TrainOptions(participation=0.3)
    times = Counter(client for r in range(1, 2001) for client in plan.chosen(1, r, 10).tolist())
    assert all(abs(times[client] - 600) < 5 * math.sqrt(2000 * 0.3 * 0.7) for client in range(10))
    assert any(plan.chosen(1, r, 10).tolist() != plan.chosen(2, r, 10).tolist() for r in range(1, 9))


@pytest.mark.parametrize("enabled", [True, False])
def test_the_drop_acts_from_its_round_on_in_both_arms(enabled):
    plan = RelabelPlan(enabled=enabled, lr_scale=0.1, start=0.8)
    assert [plan.scale(round, 10) for round in range(1, 11)] == [1.0] * 7 + [0.1] * 3


def test_due_only_where_it_is_enabled():
    on, off = (RelabelPlan(enabled=enabled, start=3) for enabled in (True, False))
    assert [on.due(round, 5, None) for round in range(1, 6)] == [False, False, True, True, True]
    assert not any(off.due(round, 5, None) for round in range(1, 6))
    assert not on.due(4, 5, 3)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ({}, []),
        ({"collected": True}, [1, 2]),
        ({"collected": True, "enabled": False}, []),
        ({"collected": True, "start": 3, "period": 2}, [1, 2, 3, 4, 5]),
    ],
)
def test_logits_are_collected_while_a_re_labelling_may_follow(plan, expected):
    made = RelabelPlan(**({"start": 3} | plan))
    assert [round for round in range(1, 7) if made.collects(round, 6)] == expected


@pytest.mark.parametrize(
    ("options", "argument", "item", "reason"),
    [
        ({"rounds": 0}, "rounds", (), "expected an integer from 1 to 1000000, got 0"),
        ({"milestones": (0.5, 1.5)}, "milestones", (1,), "expected a round from 1, or a share of the rounds"),
        ({"milestones": (3, 3)}, "milestones", (), "expected distinct milestones"),
        ({"rounds": 5, "milestones": (2, 6)}, "milestones", (1,), "expected a round up to the last one, 5, got 6"),
        ({"norm_limit": 0.5}, "norm_limit", (), "expected 0 \\(off\\) or a number >= 1"),
        ({"loss": "focall"}, "loss", (), "nearest: focal"),
    ],
)
def test_wrong_options_of_training(options, argument, item, reason):
    with pytest.raises(ArgumentError, match=reason) as raised:
        TrainOptions(**options)
    assert (raised.value.argument, raised.value.item) == (argument, item)


@pytest.mark.parametrize(
    ("options", "argument", "item", "reason"),
    [
        ({"tau": 5}, "tau", (), "got 5"),
        ({"tau": {"01": 0.1}}, "tau", ("01",), "expected a client id such as 0"),
        ({"tau": {"1": 2.0}}, "tau", ("1",), "got 2.0"),
        ({"forbidden": [(0, 1), (2,)]}, "forbidden", (1,), "expected a pair of classes"),
        ({"forbidden": [(0, -1)]}, "forbidden", (0, 1), "expected a class number >= 0 or a class name, got -1"),
        ({"forbidden": [(3, 3)]}, "forbidden", (0,), "expected two different classes, got 3 twice"),
        ({"start": 0}, "start", (), "expected a round >= 1"),
        ({"moves": "some"}, "moves", (), "expected one of fedrela, random"),
    ],
)
def test_wrong_options_of_re_labelling(options, argument, item, reason):
    with pytest.raises(ArgumentError, match=reason) as raised:
        RelabelPlan(**options)
    assert (raised.value.argument, raised.value.item) == (argument, item)


def test_the_options_of_relabel_for_each_client():
    plan = RelabelPlan(tau={"3": 0.2}, preset="official", max_fraction=0.5)
    assert plan.tau == {"default": 0.05, "3": 0.2}
    assert [plan.keywords(client)["tau"] for client in (0, 3)] == [0.05, 0.2]
    options = plan.keywords(0)
    assert (options["preset"], options["max_fraction"], options["spread"]) == ("official", 0.5, None)
    assert set(options) == {each.name for each in options_of(RelabelOptions)}


@pytest.mark.parametrize("module", ["run_options", "executors"])
def test_options_and_the_start_of_workers_load_no_torch(module):
    code = f"import sys, fedrela.engine.{module}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"
