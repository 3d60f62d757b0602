"""FedNova: the official rounds, the norm a_i, and when it is FedAvg."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fednova import FedNova, normalizer, normalizer_as_run
from fedrela.errors import ArgumentError
from fedrela.losses import LOSSES
from goldens.whole_rounds import FEDNOVA, load
from helpers.batteries import examples
from helpers.contexts import blobs, client_context, linear
from helpers.engine_federations import normed
from helpers.rounds_by_hand import Bowl, ByHand, bowls, first_logit
from helpers.through_engine import equal_clients, rounds_of, weights_of


@pytest.fixture(autouse=True)
def first(monkeypatch):
    monkeypatch.setitem(LOSSES, "first logit", first_logit)


def federation(algorithm, start, parts, samples=None, **local):
    options = {"lr": 0.05, "batch_size": 1, "loss": "first logit"} | local
    return ByHand(algorithm, Bowl(start), parts, samples, **options)


def golden_rounds(golden, counting):
    rates = {name: float(golden[name]) for name in ("lr", "momentum", "weight_decay")}
    algorithm = FedNova(mu=float(golden["mu"]), gmf=float(golden["gmf"]), counting=counting)
    parts = [bowls(golden["A"][0], golden["b"][0], golden["noise"][0, 0])] * 5
    hand = federation(algorithm, golden["x_rounds"][0], parts, golden["ratios"] * 20 + 0.5, **rates)
    for noise in golden["noise"]:
        each = zip(golden["A"], golden["b"], noise, golden["taus"], strict=True)
        hand.parts = [bowls(A, b, steps[:tau]) for A, b, steps, tau in each]
        yield hand.round(), hand.weights


@pytest.mark.parametrize("name", FEDNOVA)
def test_the_official_rounds(request, name):
    golden = load(name, request.config.getoption("--goldens"))
    found = list(golden_rounds(golden, "as_run"))
    assert len(found) == len(golden["x_rounds"]) - 1
    for round, (uploads, x) in enumerate(found):
        sent = {key: np.stack([u.arrays[key] for u in uploads]) for key in ("weights", "normalizer", "steps")}
        np.testing.assert_allclose(sent["weights"], golden["local_models_end_of_round"][round], atol=2.5e-6, rtol=0)
        np.testing.assert_allclose(sent["normalizer"], golden["a_norm"][round], rtol=1e-9)
        np.testing.assert_array_equal(sent["steps"], golden["taus"])
        np.testing.assert_allclose(x, golden["x_rounds"][round + 1], atol=2.5e-6, rtol=0)


def test_the_true_norm_where_the_official_code_counts_twice():
    rates = {"momentum": 0.9, "lr": 0.05, "mu": 0.01}
    taus = (3, 7, 12, 1, 20)
    true = [normalizer(tau, **rates) for tau in taus]
    np.testing.assert_allclose(true, [5.608, 22.995, 55.080, 1, 119.085], atol=6e-4)
    as_run = [normalizer_as_run(tau, **rates) for tau in taus]
    np.testing.assert_allclose(as_run, [8.60, 30.0, 67.2, 2.00, 140.3], rtol=2e-3)
    sent = next(golden_rounds(load("fednova_mom09_mu001_K5_officialquirk"), "exact"))[0]
    np.testing.assert_allclose([float(u.arrays["normalizer"]) for u in sent], true, rtol=1e-12)


def test_reference_values():
    found = [normalizer(tau, momentum=0.9) for tau in (1, 3, 6, 7, 12, 20)]
    np.testing.assert_allclose(found, [1, 5.61, 17.82969, 23.046721, 55.418658, 120.941899], atol=5e-7)


@examples(60, 3000)
@given(st.integers(0, 200), st.floats(1e-3, 0.99), st.floats(1e-4, 0.5), st.floats(1e-3, 2.0))
def test_the_closed_forms(tau, rho, lr, mu):
    momentum = (tau - rho * (1 - rho**tau) / (1 - rho)) / (1 - rho)
    assert normalizer(tau, momentum=rho) == pytest.approx(momentum, rel=1e-10, abs=1e-10)
    entries = (1 - rho ** np.arange(tau, 0, -1)) / (1 - rho)
    assert normalizer(tau, momentum=rho) == pytest.approx(entries.sum(), rel=1e-12, abs=1e-12)
    assert normalizer(tau, lr=lr, mu=mu) == pytest.approx((1 - (1 - lr * mu) ** tau) / (lr * mu), rel=1e-9, abs=1e-9)
    assert normalizer(tau) == tau == pytest.approx(normalizer(tau, momentum=1e-15), rel=1e-12)
    assert normalizer(tau, momentum=rho, lr=0.0, mu=mu) == normalizer(tau, momentum=rho)


@pytest.mark.parametrize("wrong", [{"momentum": 1.0}, {"momentum": -0.1}, {"mu": -1.0, "lr": 0.1}, {"mu": 1.0}])
def test_what_has_no_norm(wrong):
    with pytest.raises(ArgumentError, match="normalizer"):
        normalizer(3, **wrong)


CONSTANT = [0.7, -1.3, 0.2]


@examples(40, 1000)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 30)), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.5, 0.9]),
    st.sampled_from([0.0, 0.3]),
)
def test_a_common_gradient_moves_the_server_by_the_effective_steps(clients, rho, mu):
    start = np.array([1.0, 2.0, 3.0])
    parts = [bowls(0.0, 0.0, np.tile(CONSTANT, (tau, 1))) for tau, _ in clients]
    hand = federation(FedNova(mu=mu), start, parts, [n for _, n in clients], momentum=rho)
    hand.round()
    taus, n = np.array(clients).T
    a = taus if mu else [normalizer(tau, momentum=rho) for tau in taus.tolist()]
    expected = start - 0.05 * (n / n.sum() @ a) * np.array(CONSTANT)
    np.testing.assert_allclose(hand.weights, expected, rtol=1e-12)


def whole_weight(taus, samples):
    """W in x <- (1 - W) x + sum_i w_i y_i, found by moving all y_i by -1 from x = 0."""
    parts = [bowls(0.0, 0.0, np.zeros((tau, 1))) for tau in taus]
    hand = federation(FedNova(), np.zeros(1), parts, samples, momentum=0.9)
    hand.number = 1
    sent = hand.round()
    for upload in sent:
        upload.arrays["weights"][...] = -1.0
    return -float(hand.algorithm.server(hand.server_context(sent))[0])


def test_weights_sum_to_more_than_one_unless_all_norms_are_equal():
    assert whole_weight([4, 4, 4], [1, 5, 30]) == pytest.approx(1, abs=1e-12)
    assert whole_weight([4, 4, 5], [1, 5, 30]) > 1.001
    assert whole_weight([1, 20], [1, 1]) > 2


def test_one_client_is_where_it_went():
    hand = federation(FedNova(), np.ones(3), [bowls(0.4, 0.1, np.tile(CONSTANT, (7, 1)))], momentum=0.9)
    (sent,) = hand.round()
    np.testing.assert_allclose(hand.weights, sent.arrays["weights"], rtol=1e-14)


@pytest.mark.parametrize("relabelled", [True, False])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_equal_steps_are_fedavg(momentum, relabelled):
    parts = {"problem": equal_clients(), "make": normed, "train": {"momentum": momentum}, "relabelled": relabelled}
    np.testing.assert_allclose(weights_of(FedNova(), **parts), weights_of(FedAvg(), **parts), atol=1e-6)


def test_unequal_steps_are_not():
    assert np.abs(weights_of(FedNova(), 1) - weights_of(FedAvg(), 1)).max() > 1e-3


def test_buffers_are_averaged_by_samples():
    nova, plain = (rounds_of(algorithm, 1, make=normed)[0] for algorithm in (FedNova(), FedAvg()))
    assert nova.weights[nova.trained :].tobytes() == plain.weights[plain.trained :].tobytes()
    assert nova.weights.size > nova.trained
    after = rounds_of(FedNova(), 4, make=normed)[-1]
    assert (after.weights[-6:] > 0).all()  # the running variances


def test_a_step_that_batchnorm_cannot_take_is_not_counted():
    x, y = blobs(n=9)
    context = client_context(nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 4)), x, y, batch_size=8, epochs=3)
    assert FedNova().client(context) == {"normalizer": 3.0, "steps": 3}
    context = client_context(nn.Sequential(nn.Linear(5, 4)), x, y, batch_size=8, epochs=3, momentum=0.9)
    assert FedNova().client(context) == {"normalizer": normalizer(6, momentum=0.9), "steps": 6}


def test_a_rate_of_zero_moves_nothing():
    hand = federation(FedNova(mu=0.1, gmf=0.5), np.ones(3), [bowls(1.0, 0.0, np.zeros((2, 3)))] * 2)
    hand.round()
    before = hand.weights.copy()
    hand.local["lr"] = 0.0
    hand.round()
    np.testing.assert_array_equal(hand.weights, before)
    assert np.abs(hand.state["momentum"]).min() > 0


def test_a_pull_that_oversteps_is_said():
    x, y = blobs(n=4)
    context = client_context(linear(torch.zeros(4, 5).numpy(), torch.zeros(4).numpy()), x, y, batch_size=2, lr=1.0)
    with pytest.raises(ArgumentError, match="lower mu"):
        FedNova(mu=3.0).client(context)
