"""Posteriors at a client's turn: a plain pass, the official collection, or the logits of training."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from fedrela.algorithms.fedavg import FedAvg
from fedrela.engine.options import RelabelPlan
from fedrela.engine.relabelling import BATCH, posterior
from fedrela.engine.round import next_round
from helpers.contexts import blobs, client_context
from helpers.engine_federations import (
    CLASSES,
    SIDE,
    Made,
    carry_out,
    dropping,
    image_problem,
    normed,
    table_problem,
    tiny_mlp,
    weights_of,
)
from helpers.relabelled_by_hand import by_hand, plain_pass, softmax
from helpers.relabelling_baselines import Doubling, Silent

PICTURES = partial(normed, SIDE * SIDE)
OFFICIAL = {"passes": 3, "augment": True, "train_mode": True}


@pytest.mark.parametrize("executor", ["serial", "pool"])
def test_the_posterior_is_a_plain_pass_of_the_received_model(request, executor):
    run = Made().begin(request.getfixturevalue(executor))
    next_round(run)
    expected = {client: by_hand(run, client, plain_pass(run, client)) for client in range(5)}
    done = next_round(run)
    assert done.ledgers == expected
    assert done.record.relabelled == [(client, len(ledger)) for client, ledger in expected.items()]
    assert sum(map(len, expected.values())) > 10
    run.close()


def test_long_clients_are_scored_in_fixed_batches():
    x, y = blobs(n=2 * BATCH + 7, classes=CLASSES)
    module = tiny_mlp(table_problem())()
    context = client_context(module, x, y)
    Q = posterior(context, FedAvg(), RelabelPlan(), None)
    with torch.no_grad():
        parts = [module.eval()(torch.from_numpy(x[i : i + BATCH])).numpy() for i in range(0, len(x), BATCH)]
    assert Q.tobytes() == softmax(np.concatenate(parts)).tobytes()


@pytest.mark.parametrize("n", [1, 2, 8, 9, 17, 24])
@pytest.mark.parametrize("make", [normed, dropping])
@pytest.mark.parametrize("options", [{}, OFFICIAL])
def test_the_model_is_as_it_was(make, n, options):
    x, y = blobs(n=n, classes=CLASSES)
    context = client_context(make(), x, y, batch_size=8)
    module = context.model.module.train()
    context.counts = np.bincount(y, minlength=CLASSES)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    torch.manual_seed(3)
    Q = posterior(context, FedAvg(), RelabelPlan(**options), None)
    torch.manual_seed(4)
    again = posterior(context, FedAvg(), RelabelPlan(**options), None)
    assert all(value.equal(before[name]) for name, value in module.state_dict().items())
    assert module.training
    assert Q.tobytes() == again.tobytes()
    np.testing.assert_allclose(Q.sum(axis=1), 1)


def test_training_mode_and_augmentation_matter(serial):
    problem = image_problem()
    found = {}
    for name, options in {"plain": {}, "train": {"train_mode": True}, "augment": {"augment": True}}.items():
        run = Made(problem=problem, make=PICTURES, relabel=options).begin(serial)
        next_round(run)
        found[name] = next_round(run).ledgers
        run.close()
    assert found["plain"] != found["train"]
    assert found["plain"] != found["augment"]


@pytest.mark.parametrize("options", [{}, OFFICIAL, {"collected": True}, {"moves": "random"}, {"min_agreement": 0.5}])
@pytest.mark.parametrize("make", [normed, dropping])
def test_nothing_may_pass_is_switched_off_to_the_bit(serial, options, make):
    parts = {"make": make, "train": {"participation": 0.6, "rounds": 3}}
    off = weights_of(Made(relabel={"enabled": False}, **parts), serial)
    assert weights_of(Made(relabel={"tau": 0.0, **options}, **parts), serial) == off
    on = weights_of(Made(relabel={"tau": 0.3, **options}, **parts), serial)
    assert on[0] == off[0]
    assert on[1] != off[1]


def test_pictures_collected_as_the_official_code_does(serial, pool):
    made = Made(problem=image_problem(), make=PICTURES, relabel=OFFICIAL)
    some = carry_out(made, serial)
    assert some == carry_out(made, pool)
    off = carry_out(Made(problem=image_problem(), make=PICTURES, relabel={"enabled": False}), serial)
    assert some[0][0]["weights"] == off[0][0]["weights"]
    assert some[0][1]["weights"] != off[0][1]["weights"]


def kept_scores(run, client):
    return run.memory["client_state"].row(client)["scores"][: len(run.problem.shards[client].train)]


def test_collected_logits_are_those_of_the_last_epoch(serial):
    run = Made(relabel={"collected": True}).begin(serial)
    next_round(run)
    scores = {client: kept_scores(run, client).copy() for client in range(5)}
    assert all(np.isfinite(each).all() for each in scores.values())
    passes = {client: plain_pass(run, client) for client in range(5)}
    assert np.abs(softmax(scores[0]) - passes[0]).max() > 1e-3
    expected = {client: by_hand(run, client, softmax(each)) for client, each in scores.items()}
    assert next_round(run).ledgers == expected
    assert all(np.isnan(kept_scores(run, client)).all() for client in range(5))
    run.close()


def test_collecting_costs_no_bit_before_its_round(serial):
    assert weights_of(Made(relabel={"collected": True}), serial, 1) == weights_of(Made(), serial, 1)


@pytest.mark.parametrize("baseline", [Silent(), Doubling()])
def test_without_collected_logits_there_is_a_pass(serial, baseline):
    run = Made(algorithm=baseline, relabel={"collected": True}).begin(serial)
    next_round(run)
    assert np.isnan(kept_scores(run, 0)).all()
    expected = {client: by_hand(run, client, plain_pass(run, client)) for client in range(5)}
    assert next_round(run).ledgers == expected
    run.close()


def test_a_client_without_an_earlier_turn_makes_a_pass(serial):
    run = Made(train={"participation": 0.6}, relabel={"collected": True}, seed=13).begin(serial)
    known = set(next_round(run).record.chosen)
    expected = {client: by_hand(run, client, plain_pass(run, client)) for client in set(range(5)) - known}
    ledgers = next_round(run).ledgers
    new = set(ledgers) - known
    assert new
    assert set(ledgers) & known
    assert {client: ledgers[client] for client in new} == {client: expected[client] for client in new}
    run.close()
