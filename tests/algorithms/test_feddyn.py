"""FedDyn: the official trainer, what h_i is, n_mean, and which model is scored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.feddyn import FedDyn
from fedrela.algorithms.fedprox import FedProx
from fedrela.losses import LOSSES
from fedrela.models.flat_model import FlatModel
from goldens.whole_rounds import FEDDYN, load
from helpers.contexts import blobs, linear
from helpers.engine_federations import doubled, normed, table_problem
from helpers.rounds_by_hand import Bowl, ByHand, bowls, first_logit
from helpers.through_engine import equal_clients, rounds_of

W, B = np.random.default_rng(1).normal(size=(4, 5)), np.zeros(4)


@pytest.fixture(autouse=True)
def first(monkeypatch):
    monkeypatch.setitem(LOSSES, "first logit", first_logit)


@pytest.fixture
def golden(request):
    return load(FEDDYN, request.config.getoption("--goldens"))


def golden_federation(golden):
    cuts = np.cumsum(golden["n_per_client"])[:-1]
    parts = list(zip(np.split(golden["X"], cuts), np.split(golden["Y"], cuts), strict=True))
    options = {name: float(golden[name]) for name in ("lr", "weight_decay")}
    algorithm = FedDyn(alpha=float(golden["alpha"]), clip=float(golden["clip"]))
    module = linear(golden["w0"][:18].reshape(3, 6), golden["w0"][18:])
    return ByHand(algorithm, module, parts, batch_size=20, epochs=int(golden["epochs"]), **options)


def test_the_official_trainer(golden):
    hand = golden_federation(golden)
    for round in range(4):
        sent = np.stack([upload.arrays["weights"] for upload in hand.round()])
        np.testing.assert_allclose(hand.weights, golden["cloud_rounds"][round], atol=1e-6, rtol=0)
        np.testing.assert_allclose(hand.state["average"], golden["avg_sel_rounds"][round], atol=1e-6, rtol=0)
        np.testing.assert_allclose(hand.state["average"], golden["avg_all_rounds"][round], atol=1e-6, rtol=0)
    np.testing.assert_allclose(
        np.stack([state["h"] for state in hand.client_states]), golden["h_final"], atol=1e-6, rtol=0
    )
    np.testing.assert_allclose(sent, golden["client_params_final"], atol=1e-6, rtol=0)


def test_after_the_first_round_the_server_is_twice_as_far(golden):
    hand = golden_federation(golden)
    hand.round()
    np.testing.assert_allclose(hand.weights, 2 * hand.state["average"] - golden["w0"], atol=1e-6)
    assert np.abs(hand.weights - golden["w0"]).max() > 0.1


def test_without_strength_a_client_trains_as_in_fedavg():
    x, y = blobs(n=24, dtype="f8")
    local = {"lr": 0.1, "batch_size": 8, "epochs": 2, "weight_decay": 1e-3}
    dyn, plain = (ByHand(each, linear(W, B), [(x, y)], **local) for each in (FedDyn(alpha=1e-12), FedAvg()))
    found, expected = (hand.round()[0].arrays["weights"] for hand in (dyn, plain))
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_clients_first_round_is_fedprox_with_its_own_alpha(momentum):
    parts = [blobs(n=n, seed=n, dtype="f8") for n in (6, 24, 30)]
    local = {"lr": 0.1, "batch_size": 8, "epochs": 3, "momentum": momentum}
    found = ByHand(FedDyn(alpha=0.5, clip=0), linear(W, B), parts, **local).round()
    for upload, n in zip(found, (6, 24, 30), strict=True):
        prox = ByHand(FedProx(mu=0.5 * 20 / n), linear(W, B), [parts[upload.client]], **local).round()
        np.testing.assert_allclose(upload.arrays["weights"], prox[0].arrays["weights"], atol=1e-12)


@pytest.mark.parametrize("relabelled", [True, False])
def test_the_first_round_of_equal_clients_is_fedprox(relabelled):
    parts = {"problem": equal_clients(), "make": normed, "relabelled": relabelled, "rounds": 1}
    dyn, prox = (rounds_of(each, **parts)[0] for each in (FedDyn(alpha=0.2, clip=0), FedProx(mu=0.2)))
    np.testing.assert_allclose(dyn.server["average"], prox.weights[: prox.trained], atol=1e-6)
    np.testing.assert_allclose(dyn.weights[dyn.trained :], prox.weights[prox.trained :], atol=1e-6)


def test_an_exact_minimum_makes_h_the_negative_gradient():
    parts = [blobs(n=n, seed=n, dtype="f8") for n in (6, 10)]
    hand = ByHand(FedDyn(alpha=0.5), linear(W, B), parts, lr=0.4, batch_size=20, epochs=400)
    for _ in range(2):
        sent = hand.round()
    for upload, (x, y), state in zip(sent, parts, hand.client_states, strict=True):
        model = linear(*hand.layout.split(upload.arrays["weights"]).values())
        cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y)).backward()
        gradient = np.concatenate([p.grad.numpy().ravel() for p in model.parameters()])
        np.testing.assert_allclose(0.5 * 8 / len(y) * state["h"], -gradient, atol=1e-9)


def test_it_ends_where_the_mean_of_the_objectives_is_least():
    """There h has the mean 0 and stays, and so does x."""
    rng = np.random.default_rng(2)
    A, b = rng.uniform(0.5, 3.0, (3, 2)), rng.normal(0, 2, (3, 2))
    parts = [bowls(A[i], b[i], np.zeros((n, 2))) for i, n in enumerate((5, 5, 5))]
    local = {"lr": 0.2, "batch_size": 5, "epochs": 12, "loss": "first logit"}
    hand = ByHand(FedDyn(alpha=1.0), Bowl(np.zeros(2)), parts, **local)
    for _ in range(40):
        hand.round()
    least = (A * b).sum(axis=0) / A.sum(axis=0)
    np.testing.assert_allclose(hand.weights, least, atol=1e-6)
    np.testing.assert_allclose(hand.state["average"], least, atol=1e-6)
    np.testing.assert_allclose(hand.state["h"], 0, atol=1e-6)
    assert max(np.abs(state["h"]).max() for state in hand.client_states) > 0.1


def test_clients_that_stay_leave_h_and_the_server_adds_it():
    hand = ByHand(FedDyn(), linear(W, B), [blobs(n=6, dtype="f8")] * 2, lr=0.1, batch_size=6)
    hand.round()
    x, h = hand.weights.copy(), hand.state["h"].copy()
    hand.local["lr"] = 0.0
    hand.round()
    np.testing.assert_allclose(hand.state["h"], h, atol=1e-15)
    np.testing.assert_allclose(hand.weights, x + h, atol=1e-15)


def test_the_clip_leaves_out_the_quadratic_part():
    """One step from x = 10: the clipped part has length 1, the decay alpha y comes on top."""
    part = bowls(0.0, 0.0, np.array([[100.0]]))
    local = {"lr": 0.1, "batch_size": 1, "loss": "first logit"}
    sent = ByHand(FedDyn(alpha=0.5, clip=1.0), Bowl(np.full(1, 10.0)), [part], **local).round()
    np.testing.assert_allclose(sent[0].arrays["weights"], 10 - 0.1 * (1 + 0.5 * 10), atol=1e-6)


@pytest.mark.parametrize("make", [None, normed, doubled])
@pytest.mark.parametrize("participation", [1.0, 0.4])
def test_the_servers_h_is_the_mean_of_all_clients(participation, make):
    sizes = [len(shard.train) for shard in table_problem().shards]
    x = None
    for after in rounds_of(FedDyn(), 4, make=make, train={"participation": participation, "momentum": 0.0}):
        h = after.server["h"]
        everybody = [
            after.client_states[i]["state.h"] if i in after.client_states else np.zeros_like(h) for i in range(5)
        ]
        np.testing.assert_allclose(h, np.mean(everybody, axis=0), atol=1e-6)
        np.testing.assert_allclose(after.weights[: h.size], after.server["average"] + h, atol=1e-6)
        assert after.server["mean_samples"] == np.mean(sizes)  # of all, also of those that were not chosen yet
        assert after.server["average"].dtype == after.weights.dtype
        assert x is None or np.abs(x - after.weights).max() > 1e-3
        x = after.weights


def test_scored_is_the_mean_of_the_clients_with_the_averaged_buffers():
    after = rounds_of(FedDyn(alpha=0.5), 2, make=normed)[-1]
    algorithm, x = FedDyn(alpha=0.5), torch.from_numpy(table_problem().x_test)
    mean = np.concatenate([after.server["average"], after.weights[after.trained :]])
    answers = []
    for vector in (after.weights, mean):
        model = FlatModel(normed())
        model.load(vector)
        model.module.eval()
        answers.append(model.module(x).detach().numpy())
        if vector is after.weights:
            received = algorithm.broadcast(after.server)
            scored = algorithm.logits(model.module, x, received).detach().numpy()
            assert model.collect().tobytes() == vector.tobytes()
            cloud = FedDyn(scored="cloud")
            assert set(cloud.broadcast(after.server)) == {"mean_samples"}
            same = cloud.logits(model.module, x, cloud.broadcast(after.server)).detach().numpy()
            assert same.tobytes() == answers[0].tobytes()
    np.testing.assert_allclose(scored, answers[1], atol=1e-6)
    assert np.abs(scored - answers[0]).max() > 1e-3
    assert after.record.accuracy["overall"] == pytest.approx((scored.argmax(1) == table_problem().y_test).mean())


def test_before_the_first_round_it_is_the_first_model():
    hand = ByHand(FedDyn(), linear(W, B), [blobs(n=6, dtype="f8")], lr=0.1)
    assert hand.state["average"].tobytes() == hand.weights.tobytes()


def test_one_alpha_for_all_asks_nobody_how_many_samples_it_has():
    assert FedDyn(scaling="none").exchanges() == ()
    parts = [blobs(n=n, seed=n, dtype="f8") for n in (6, 24)]
    local = {"lr": 0.1, "batch_size": 8, "epochs": 3}
    found = ByHand(FedDyn(alpha=0.5, clip=0, scaling="none"), linear(W, B), parts, **local).round()
    for upload in found:
        prox = ByHand(FedProx(mu=0.5), linear(W, B), [parts[upload.client]], **local).round()
        np.testing.assert_allclose(upload.arrays["weights"], prox[0].arrays["weights"], atol=1e-12)
