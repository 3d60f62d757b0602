"""SCAFFOLD: the rounds of two ports, what a control variate is, and when it is FedAvg."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fednova import normalizer
from fedrela.algorithms.scaffold import Scaffold
from fedrela.losses import LOSSES
from goldens.whole_rounds import joined, load
from helpers.contexts import blobs, linear
from helpers.engine_federations import doubled, normed
from helpers.rounds_by_hand import Bowl, ByHand, bowls, first_logit
from helpers.through_engine import equal_clients, rounds_of, weights_of


@pytest.fixture(autouse=True)
def first(monkeypatch):
    monkeypatch.setitem(LOSSES, "first logit", first_logit)


def weight_part(vector, shape):
    return vector[: np.prod(shape)].reshape(shape)


def test_the_rounds_of_niidbench(request):
    golden = load("scaffold_niidbench_rho0p0", request.config.getoption("--goldens"))
    data = zip(golden["X"], golden["Y"], golden["n_batches"], strict=True)
    hand = ByHand(
        Scaffold(correction="after_step", weighting="samples"), linear(golden["W0"], golden["b0"]),
        [joined(x[:n], y[:n]) for x, y, n in data], golden["sample_ratio"] * 10 + 0.5, batch_size=4,
        epochs=int(golden["epochs"]), **{name: float(golden[name]) for name in ("lr", "momentum", "weight_decay")},
    )  # fmt: skip
    for round in range(3):
        hand.round()
        W = golden["W_rounds"][round + 1]
        np.testing.assert_allclose(hand.named()["weight"], W, atol=2.4e-6, rtol=0)
        np.testing.assert_allclose(
            weight_part(hand.state["control"], W.shape), golden["c_weight"][round], atol=2.4e-6, rtol=0
        )
        for state, expected in zip(hand.client_states, golden["ci_weight"][round], strict=True):
            np.testing.assert_allclose(weight_part(state["control"], W.shape), expected, atol=2.4e-6, rtol=0)


@pytest.mark.parametrize("correction", ["gradient", "after_step"])
def test_the_rounds_of_plain_sgd(request, correction):
    """Without momentum and weight decay the two ways to correct are the same."""
    golden = load("scaffold_shenzebang_plain_sgd_K4", request.config.getoption("--goldens"))
    hand = ByHand(
        Scaffold(correction=correction), linear(golden["weight_rounds"][0], golden["bias_rounds"][0]),
        [joined(x, y) for x, y in zip(golden["X"], golden["Y"], strict=True)], batch_size=5,
        epochs=int(golden["local_epoch"]), lr=float(golden["local_lr"]),
    )  # fmt: skip
    for round in range(3):
        hand.round()
        W, named = golden["weight_rounds"][round + 1], hand.named()
        np.testing.assert_allclose(named["weight"], W, atol=1.1e-6, rtol=0)
        np.testing.assert_allclose(named["bias"], golden["bias_rounds"][round + 1], atol=1.1e-6, rtol=0)
        c = weight_part(hand.state["control"], W.shape)
        np.testing.assert_allclose(c, golden["c_weight_part"][round], atol=1.1e-6, rtol=0)
        for state, expected in zip(hand.client_states, golden["ci_weight_part"][round], strict=True):
            np.testing.assert_allclose(weight_part(state["control"], W.shape), expected, atol=1.1e-6, rtol=0)


@pytest.mark.parametrize("make", [None, normed, doubled])
@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_the_servers_control_is_the_mean_of_all_clients(participation, make):
    for after in rounds_of(Scaffold(), 4, make=make, train={"participation": participation}):
        c = after.server["control"]
        everybody = [
            after.client_states[i]["state.control"] if i in after.client_states else np.zeros_like(c) for i in range(5)
        ]
        assert c.shape == (after.trained,)
        assert c.dtype == after.weights.dtype
        np.testing.assert_allclose(c, np.mean(everybody, axis=0), atol=1e-6)
        assert np.abs(c).max() > 1e-2


@pytest.mark.parametrize("relabelled", [True, False])
@pytest.mark.parametrize("correction", ["gradient", "after_step"])
def test_the_first_round_is_fedavg(correction, relabelled):
    parts = {"problem": equal_clients(), "make": normed, "relabelled": relabelled, "rounds": 2}
    one, two = weights_of(Scaffold(correction=correction), **parts) - weights_of(FedAvg(), **parts)
    np.testing.assert_allclose(one, 0, atol=1e-6)
    assert np.abs(two).max() > 1e-4


def test_with_weights_by_samples_it_is_the_first_round_of_unequal_clients_too():
    weighted, equal = (weights_of(Scaffold(weighting=how), 1) for how in ("samples", "equal"))
    plain = weights_of(FedAvg(), 1)
    np.testing.assert_allclose(weighted, plain, atol=1e-6)
    assert np.abs(equal - plain).max() > 1e-4


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_identical_clients_are_fedavg(momentum):
    x, y = blobs(n=20, dtype="f8")
    W, b = np.random.default_rng(1).normal(size=(4, 5)), np.zeros(4)
    local = {"lr": 0.1, "batch_size": 8, "epochs": 2, "momentum": momentum}
    scaffold, plain = (ByHand(each, linear(W, b), [(x, y)] * 3, **local) for each in (Scaffold(), FedAvg()))
    for _ in range(4):
        scaffold.round()
        plain.round()
        for state in scaffold.client_states:
            np.testing.assert_allclose(state["control"], scaffold.state["control"], atol=1e-12)
        np.testing.assert_allclose(scaffold.weights, plain.weights, atol=1e-12)


def test_after_one_step_the_control_is_the_gradient():
    x, y = blobs(n=20, dtype="f8")
    W, b = np.random.default_rng(1).normal(size=(4, 5)), np.zeros(4)
    hand = ByHand(Scaffold(), linear(W, b), [(x[:8], y[:8]), (x[8:], y[8:])], lr=0.1, batch_size=20)
    for _ in range(3):  # in later rounds c - c_i is not 0
        model = linear(*hand.named().values())
        hand.round()
        for state, (inputs, labels) in zip(hand.client_states, hand.parts, strict=True):
            loss = cross_entropy(model(torch.from_numpy(inputs)), torch.from_numpy(labels))
            gradient = torch.cat([g.ravel() for g in torch.autograd.grad(loss, list(model.parameters()))])
            np.testing.assert_allclose(state["control"], gradient.numpy(), atol=1e-12)


def apart(algorithm, momentum=0.0, lr=0.05, seed=4):
    """Clients in bowls of different curvature, centre and number of samples, and where their mean is least."""
    rng = np.random.default_rng(seed)
    A, b = rng.uniform(0.5, 3.0, (3, 2)), rng.normal(0, 2, (3, 2))
    parts = [bowls(A[i], b[i], rng.normal(0, 0.3, (4, 2))) for i in range(3)]
    noise = np.stack([x[:, 4:].mean(axis=0) for x, _ in parts])
    hand = ByHand(algorithm, Bowl(np.zeros(2)), parts, lr=lr, momentum=momentum, batch_size=1, loss="first logit")
    return hand, (A * b - noise).sum(axis=0) / A.sum(axis=0)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_the_control_is_the_mean_of_raw_gradients(momentum):
    """With momentum each gradient counts as often as it enters the way; the correction is taken out exactly."""
    hand, _ = apart(Scaffold(), momentum)
    hand.round()
    for _ in range(3):
        x0, controls = hand.weights, [(hand.state["control"], state["control"]) for state in hand.client_states]
        hand.round()
        for state, (x, _), (c, own) in zip(hand.client_states, hand.parts, controls, strict=True):
            y, m, gradients = x0.copy(), 0.0, []
            for A, b, noise in x.reshape(-1, 3, 2):
                gradients.append(A * (y - b) + noise)
                m = momentum * m + gradients[-1] + c - own
                y = y - 0.05 * m
            entries = np.array([normalizer(k, momentum=momentum) for k in range(5)])
            shares = np.diff(entries)[::-1] / entries[-1]
            np.testing.assert_allclose(state["control"], shares @ gradients, atol=1e-12)


def test_past_the_momentum_the_control_is_the_mean_of_its_buffers():
    gradient = np.array([0.7, -1.3])
    part = bowls(0.0, 0.0, np.tile(gradient, (20, 1)))
    options = {"lr": 0.05, "momentum": 0.9, "batch_size": 1, "loss": "first logit"}
    for correction, size in (("gradient", 1.0), ("after_step", normalizer(20, momentum=0.9) / 20)):
        hand = ByHand(Scaffold(correction=correction), Bowl(np.zeros(2)), [part], **options)
        for _ in range(3):
            hand.round()
            np.testing.assert_allclose(hand.client_states[0]["control"], gradient * size, rtol=1e-12)


@pytest.mark.parametrize(("momentum", "correction"), [(0.0, "gradient"), (0.5, "gradient"), (0.5, "after_step")])
def test_it_ends_where_the_mean_of_the_objectives_is_least(momentum, correction):
    hand, least = apart(Scaffold(correction=correction), momentum)
    plain, _ = apart(FedAvg(), momentum)
    for _ in range(40):
        hand.round()
        plain.round()
    assert np.abs(plain.weights - least).max() > 0.03
    assert np.abs(hand.weights - least).max() < np.abs(plain.weights - least).max() / 4


def test_the_servers_rate():
    once, half = (apart(Scaffold(lr_global=rate))[0] for rate in (1.0, 0.5))
    once.round()
    half.round()
    np.testing.assert_allclose(half.weights, once.weights / 2, rtol=1e-12)


def test_a_rate_of_zero_leaves_the_control():
    hand, _ = apart(Scaffold())
    hand.round()
    before, state = hand.state["control"].copy(), hand.client_states[0]["control"].copy()
    hand.local["lr"] = 0.0
    hand.round()
    np.testing.assert_array_equal(hand.state["control"], before)
    np.testing.assert_array_equal(hand.client_states[0]["control"], state)
