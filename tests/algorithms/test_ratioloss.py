"""Ratio-Loss against its official numbers, a literal loop, and its invariants."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.context import ServerContext
from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.ratioloss import (
    LARGEST,
    NO_RIVALS,
    RatioLoss,
    gradient_ratios,
    head_gradients,
    ratio_loss,
    ratios,
)
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from fedrela.errors import ArgumentError
from fedrela.models import Classifier
from fedrela.models.flat_model import FlatModel
from goldens.class_gradients import ALPHA, load
from helpers.contexts import blobs, client_context, uploads_of
from helpers.engine_federations import Made, normed, table_problem

CASES = {"alpha1d_as_called": "as_run", "alpha2d_intended": "per_sample", "alphaNone": "per_sample"}


@pytest.mark.parametrize("case", CASES)
def test_the_loss_is_the_official_one(case):
    golden = load(f"ratioloss_official_CE_{case}")
    logits, labels = torch.tensor(golden["logits"], requires_grad=True), torch.tensor(golden["target"]).long()
    alpha = torch.ones(26) if case == "alphaNone" else torch.tensor(golden["alpha"]).float().reshape(-1)
    loss = ratio_loss(logits, labels, alpha, CASES[case])
    loss.backward()
    assert loss.item() == pytest.approx(float(golden["loss"]), abs=1e-5)
    assert (logits.grad - torch.tensor(golden["grad_logits"])).abs().max() < 1e-6


def literal(U):
    """The rule in words, weight by weight."""
    C, rows, d = U.shape
    mask = np.zeros(U.shape, bool)
    for i in range(rows):
        for j in range(d):
            p = int(np.argmax(U[:, i, j]))
            if all(abs(U[q, i, j]) <= 0.8 * abs(U[p, i, j]) for q in range(C) if q != p):
                mask[p, i, j] = True
    r = np.empty(C)
    for p in range(C):
        others = np.mean([U[q] for q in range(C) if q != p], axis=0)
        below = abs(others[mask[p]].sum())
        r[p] = min(abs(U[p][mask[p]].sum()) / below, LARGEST) if below else NO_RIVALS
    return r, mask


def test_the_mask_is_the_official_one_and_the_ratios_follow_from_it():
    golden = load(ALPHA)
    U = golden["W_aux"].astype(float) - golden["W_glob"].astype(float)
    r, mask = ratios(U)
    assert (mask == golden["selected_mask"]).all()
    assert r == pytest.approx(literal(U)[0], rel=1e-9)


def test_against_the_literal_loop_and_under_scaling():
    rng = np.random.default_rng(0)
    for _ in range(20):
        U = rng.normal(size=(3, 3, 4)) * rng.integers(0, 2, (3, 1, 1))
        r, mask = ratios(U)
        expected, places = literal(U)
        assert (mask == places).all()
        assert r == pytest.approx(expected)
        again, same = ratios(100 * U)
        assert (same == mask).all()
        assert again == pytest.approx(r)
        assert ((1 + 0.1 * r >= 1) & (1 + 0.1 * r <= 501)).all()


def port_golden():
    """Its network, its probe samples, and what came out."""
    golden = load("ratioloss_climbrepo_Ra")
    x = torch.tensor(golden["aux_X"])
    classes, each, _ = x.shape
    module = Classifier(nn.Sequential(nn.Linear(6, 8), nn.ReLU()), 8, classes)
    with torch.no_grad():
        for parameter, name in zip(module.parameters(), ("W1", "b1", "W2", "b2"), strict=True):
            parameter.copy_(torch.tensor(golden[name]))
    return module, x.flatten(0, 1), torch.arange(classes).repeat_interleave(each), golden


def test_the_ratios_of_the_port_are_its_own():
    module, x, y, golden = port_golden()
    assert gradient_ratios(head_gradients(module, x, y)) == pytest.approx(golden["Ra"], abs=4e-6)


def test_the_servers_step_makes_the_class_weights_of_the_port():
    module, x, y, golden = port_golden()
    model = FlatModel(module)
    start = model.collect()
    context = ServerContext(1, 1, 1, 2, uploads_of(np.stack([start, start])), start, start.size, 0.1, {}, model, (x, y))
    new = RatioLoss(rule="port").server(context)
    assert context.state["alpha"] == pytest.approx(golden["class_weights"], abs=4e-6)
    assert (new == start).all()


def test_head_gradients_are_those_of_backward_and_leave_the_model_as_it_was():
    torch.manual_seed(0)
    module = normed()
    model = FlatModel(module)
    before = model.collect()
    x, y = (torch.from_numpy(array) for array in blobs(n=30))
    y[y == 2] = 3  # class 2 has no probe sample
    G = head_gradients(module, x, y)
    assert model.collect().tobytes() == before.tobytes()
    for p in range(4):
        if p != 2:
            loss = cross_entropy(module.eval()(x[y == p]), y[y == p])
            (slope,) = torch.autograd.grad(loss, [module.head.weight])
            assert G[p] == pytest.approx(slope.numpy(), abs=1e-6)
    assert (G[2] == 0).all()


def test_gradient_ratios_against_a_literal_loop():
    rng = np.random.default_rng(1)
    for _ in range(20):
        G = rng.normal(size=(3, 3, 5)) * rng.integers(0, 2, 5)  # some features are used by nobody
        expected = []
        for p in range(3):
            pairs = [(G[p, p, j], sum(G[q, p, j] for q in range(3) if q != p)) for j in range(5)]
            terms = [2 * own / others for own, others in pairs if others]
            expected.append(min(abs(sum(terms)) / len(terms), LARGEST) if terms else NO_RIVALS)
        assert gradient_ratios(G) == pytest.approx(expected)
        assert gradient_ratios(100 * G) == pytest.approx(expected)


def test_ratios_of_the_port_where_there_is_nothing_to_divide_by_or_next_to_nothing():
    G = np.ones((2, 2, 3))
    G[1, 0], G[0, 1] = 0, 1e-9
    assert gradient_ratios(G).tolist() == [NO_RIVALS, LARGEST]


def test_weights_of_one_are_cross_entropy_and_equal_weights_a_multiple_of_it():
    logits, labels = torch.randn(9, 4, generator=torch.Generator().manual_seed(1)), torch.arange(9) % 4
    plain = cross_entropy(logits, labels).item()
    for weighting in ("per_sample", "as_run"):
        assert ratio_loss(logits, labels, torch.ones(4), weighting).item() == pytest.approx(plain)
        assert ratio_loss(logits, labels, torch.full((4,), 2.5), weighting).item() == pytest.approx(2.5 * plain)


def test_as_run_is_one_number_a_batch():
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(2)).requires_grad_()
    labels, alpha = torch.tensor([0, 1, 2, 2, 1, 0]), torch.tensor([1.0, 2.0, 4.0])
    (own,) = torch.autograd.grad(ratio_loss(logits, labels, alpha, "as_run"), [logits])
    (plain,) = torch.autograd.grad(cross_entropy(logits, labels), [logits])
    assert torch.allclose(own, alpha[labels].mean() * plain)


@pytest.mark.parametrize("rule", ["official", "port"])
def test_alpha_is_one_in_the_first_round_and_follows_the_probe_set(rule):
    algorithm = RatioLoss(probe=6, probe_epochs=1, rule=rule)
    run = Made(algorithm=algorithm, problem=table_problem(auxiliary=6)).begin(SerialExecutor())
    assert (run.state.server["alpha"] == 1).all()
    next_round(run)
    assert (run.state.server["alpha"] > 1).all()
    run.close()


@pytest.mark.parametrize("rule", ["official", "port"])
def test_without_beta_it_is_fedavg_with_equal_weights(rule):
    """All clients alike, so that equal weights are those of FedAvg."""
    problem = table_problem(1, auxiliary=6)
    weights = []
    for algorithm in (RatioLoss(beta=0.0, probe=6, rule=rule), FedAvg()):
        run = Made(algorithm=algorithm, problem=problem).begin(SerialExecutor())
        for _ in range(3):
            next_round(run)
        weights.append(run.state.weights)
        run.close()
    assert weights[0] == pytest.approx(weights[1], abs=1e-6)


def test_a_rule_that_is_not_there_is_told_so():
    with pytest.raises(ArgumentError, match="rule: expected one of official, port, got 'paper'"):
        RatioLoss(rule="paper")


def test_a_head_that_is_not_linear_is_told_so():
    body = Classifier(nn.Linear(5, 6), 6, 4)
    body.head = nn.Sequential(nn.Linear(6, 4))
    body.num_features = 6
    with pytest.raises(ArgumentError, match="expected a model with a linear head"):
        Made(algorithm=RatioLoss(probe=6), problem=table_problem(auxiliary=6), make=lambda: body).begin(
            SerialExecutor()
        )


def test_the_client_trains_with_the_weights_received():
    x, y = blobs()
    moved = []
    for alpha in (np.ones(4), np.array([1.0, 5.0, 1.0, 1.0])):
        torch.manual_seed(0)
        context = client_context(nn.Linear(5, 4), x, y)
        context.received = {"alpha": alpha.astype("f4")}
        RatioLoss().client(context)
        moved.append(context.model.collect())
    assert not np.array_equal(*moved)
