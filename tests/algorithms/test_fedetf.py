"""FedETF with dot regression: the official steps and scores, its three ways to normalise, and its fixed head."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from fedrela.algorithms.fedetf import FedEtf
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from fedrela.errors import ArgumentError
from fedrela.models import Classifier, build
from fedrela.models.heads import EtfHead
from goldens.frames_and_losses import load
from helpers.collected import official_model, posteriors
from helpers.contexts import blobs, client_context
from helpers.engine_federations import CLASSES, COLUMNS, Made, doubled
from helpers.one_step import one_step, whose_features_are
from helpers.through_engine import rounds_of

MODES = ("aggregated", "none", "official")
BN = {"head.norm.weight", "head.norm.bias", "head.norm.running_mean", "head.norm.running_var"}


def etf_model(mode, features, M):
    algorithm = FedEtf(bn_mode=mode)
    module = algorithm.module(whose_features_are(features, M.shape[1]), M.shape[1], 0)
    module.head.etf.copy_(torch.from_numpy(M))
    return algorithm, module


def golden_case(request, case):
    arrays = load("etf_dot_regression", request.config.getoption("--goldens"))
    golden = {key.removeprefix(f"{case}_"): value for key, value in arrays.items() if key.startswith(case)}
    return golden or pytest.skip("only among the full goldens")


WITH_BN = [(case, mode) for case in ("d16_c10", "d512_c100") for mode in ("aggregated", "official")]


@pytest.mark.parametrize(("case", "mode"), [*WITH_BN, ("d32_c10_b1", "none")])
def test_the_official_step(request, case, mode):
    """In training the official BN is as any other; a batch of one sample goes without."""
    golden = golden_case(request, case)
    algorithm, module = etf_model(mode, golden["x"], golden["M"])
    moved, context = one_step(algorithm, module, golden["y"].astype(int), np.ones(len(golden["M"].T), int))
    np.testing.assert_allclose(moved["body.weight"].T, golden["grad_x"], atol=1e-6, rtol=0)
    found = context.model.read()
    if mode == "aggregated":
        np.testing.assert_allclose(found["head.norm.running_mean"], golden["bn_running_mean"], atol=1e-6, rtol=0)
        np.testing.assert_allclose(found["head.norm.running_var"], golden["bn_running_var"], atol=1e-6, rtol=0)
        assert np.abs(moved["head.norm.bias"]).max() > 0
    else:  # thrown away, or none at all
        assert not any(moved[name].any() for name in BN & set(moved))


def test_the_official_collection_of_posteriors(request):
    golden = load("fedrela_collect_q", request.config.getoption("--goldens"))
    algorithm = FedEtf(bn_mode="official")
    module = algorithm.module(official_model(golden), 4, 0)
    module.head.etf.copy_(torch.from_numpy(golden["M"]))
    Q = posteriors(algorithm, module, golden)
    np.testing.assert_allclose(Q[golden["etf_order"]], golden["etf_preds"], atol=1e-6, rtol=0)


@pytest.mark.parametrize("mode", MODES)
def test_a_fresh_bn_leaves_the_direction_as_it_is(mode):
    f = np.random.default_rng(0).normal(2, 3, (30, 16)).astype("f4")
    algorithm, module = etf_model(mode, f, FedEtf().module(whose_features_are(f, 5), 5, 3).head.etf.numpy())
    module.train(mode == "official")  # where the official code has the head in the mode that the body is not in
    expected = normalize(torch.from_numpy(f), dim=1) @ module.head.etf
    torch.testing.assert_close(algorithm.logits(module, torch.eye(30), {}), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("n", [1, 2, 100, 101, 250])
def test_the_official_test_normalises_batches_of_a_hundred_by_themselves(n):
    """The official test has the net in evaluation mode and the head in training mode."""
    f = np.random.default_rng(n).normal(2, 3, (n, 16)).astype("f4")
    algorithm, module = etf_model("official", f, FedEtf().module(whose_features_are(f, 5), 5, 3).head.etf.numpy())
    head = EtfHead(module.head.etf).train()
    with torch.no_grad():
        expected = torch.cat([head(torch.from_numpy(f[at : at + 100])) for at in range(0, n, 100)])
        found = algorithm.logits(module.eval(), torch.eye(n), {})
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert not module.head.norm.running_mean.any()


@pytest.mark.parametrize("mode", MODES)
def test_only_the_official_score_depends_on_the_order_of_the_test_set(mode):
    rng, C = np.random.default_rng(1), 10
    M = FedEtf().module(whose_features_are(np.zeros((1, 32), "f4"), C), C, 0).head.etf.numpy()
    y = np.repeat(np.arange(C), 100)
    f = (10 * M.T[y] + rng.normal(size=(y.size, 32))).astype("f4")
    accuracy = []
    for order in (rng.permutation(y.size), np.arange(y.size)):
        algorithm, module = etf_model(mode, f[order], M)
        logits = algorithm.logits(module.eval(), torch.eye(y.size), {})
        accuracy.append((logits.argmax(dim=1).numpy() == y[order]).mean())
    mixed, sorted_by_class = accuracy
    assert mixed > 0.9
    assert (sorted_by_class < 0.4) if mode == "official" else (sorted_by_class == mixed)


@pytest.mark.parametrize("mode", MODES)
def test_through_the_engine(mode):
    with SerialExecutor() as executor:
        run = Made(FedEtf(bn_mode=mode), train={"rounds": 6}).begin(executor)
        module = run.runner.model.module
        etf = module.head.etf.clone()
        gram = (etf.T @ etf).numpy()
        np.testing.assert_allclose(gram[~np.eye(CLASSES, dtype=bool)], -1 / (CLASSES - 1), atol=1e-6)
        first = {name: value.copy() for name, value in run.arrays.layout.split(run.state.weights).items()}
        accuracy = [next_round(run).record.accuracy["overall"] for _ in range(6)][-1]
        last = run.arrays.layout.split(run.state.weights)
        assert module.head.etf.equal(etf)
        run.close()
    assert {name for name in last if name.startswith("head.")} == (BN if mode == "aggregated" else set())
    assert all(not np.array_equal(last[name], first[name]) for name in last)
    assert accuracy > 0.5  # of four classes


def test_what_official_clients_keep_of_their_bn_is_what_they_started_with():
    for after in rounds_of(FedEtf(bn_mode="official"), 2):
        width = len(after.client_states[0]["private"]) // 4
        fresh = np.repeat(np.array([1, 0, 0, 1], "f4"), width)
        assert len(after.client_states) == 5
        assert all(state["private"].tobytes() == fresh.tobytes() for state in after.client_states.values())


def test_a_last_batch_of_one_sample_is_left_out_where_there_is_a_bn():
    x, y = blobs(n=9)
    for mode, steps in (("aggregated", 1), ("official", 1), ("none", 2)):
        algorithm = FedEtf(bn_mode=mode)
        context = client_context(algorithm.module(mlp(8), CLASSES, 0), x, y, batch_size=8)
        algorithm.client(context)
        assert context.steps == steps


@pytest.mark.parametrize("mode", MODES)
def test_a_client_of_one_class_and_double_precision(mode):
    x, y = blobs(dtype="f8")
    algorithm = FedEtf(bn_mode=mode)
    module = algorithm.module(doubled(), CLASSES, 0)
    assert module.head.etf.dtype == torch.float64
    context = client_context(module, x, np.full(len(y), 2), batch_size=8, epochs=30)
    algorithm.client(context)
    logits = algorithm.logits(module.eval(), torch.from_numpy(x), {})
    assert logits.isfinite().all()
    if mode != "official":
        assert (logits.argmax(dim=1) == 2).all()


def test_the_cosines_are_collected():
    x, y = blobs(n=8)
    algorithm = FedEtf(bn_mode="none")
    context = client_context(algorithm.module(mlp(8), CLASSES, 0), x, y, batch_size=8)
    expected = algorithm.logits(context.model.module, torch.from_numpy(x), {}).detach().numpy()
    context.scores = np.zeros((8, CLASSES), "f4")
    algorithm.client(context)
    np.testing.assert_allclose(context.scores, expected, atol=1e-6)


def mlp(width):
    return build("mlp", (COLUMNS,), CLASSES, seed=7, hidden=[width])


class ByOtherNames(nn.Module):
    """A user's model that knows its head under two names, and its width by its head only."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(COLUMNS, 8), nn.Linear(8, CLASSES)
        self.fc = self.head

    def features(self, x):
        return torch.relu(self.body(x))

    def forward(self, x):
        return self.fc(self.features(x))


@pytest.mark.parametrize("mode", MODES)
def test_a_users_model(mode):
    with SerialExecutor() as executor:
        run = Made(FedEtf(bn_mode=mode), make=ByOtherNames).begin(executor)
        assert run.arrays.sizes.features == 8
        next_round(run)
        x = torch.from_numpy(run.problem.x_test)
        logits = FedEtf(bn_mode=mode).logits(run.runner.model.module.eval(), x, {})
        assert logits.abs().max() <= 1 + 1e-5
        run.close()


class OwnHead(Classifier):
    @property
    def head(self):
        return self.body

    @head.setter
    def head(self, value):
        pass


@pytest.mark.parametrize(
    ("make", "mode", "message"),
    [
        (partial(mlp, 3), "none", "^simplex ETF: expected at least as many features as classes, got 3 features for"),
        (partial(build, "logistic", (COLUMNS,), CLASSES, seed=0), "none", "has no parameter to train"),
        (partial(nn.Linear, COLUMNS, CLASSES), "aggregated", "^fedetf: needs a model.s features apart"),
        (partial(OwnHead, nn.Linear(COLUMNS, 8), 8, CLASSES), "aggregated", "^OwnHead: its attribute 'head' is"),
    ],
)  # fmt: skip
def test_models_that_do_not_fit(make, mode, message):
    with SerialExecutor() as executor, pytest.raises(ArgumentError, match=message) as raised:
        Made(FedEtf(bn_mode=mode), make=make).begin(executor)
    assert "\n" not in str(raised.value)
