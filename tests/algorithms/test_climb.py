"""CLIMB: the official dual steps, rounds and losses, both cores, and when it is its core."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch.nn.functional import cross_entropy

from fedrela.algorithms.climb import Climb, client_weights, dual_step, not_below_zero
from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fedprox import FedProx
from fedrela.losses import LOSSES
from fedrela.records import Upload
from goldens.whole_rounds import joined, load
from helpers.batteries import examples
from helpers.contexts import blobs, linear
from helpers.engine_federations import doubled, normed, table_problem, tiny_mlp
from helpers.rounds_by_hand import Bowl, ByHand, bowls, first_logit
from helpers.through_engine import equal_clients, rounds_of, weights_of

W, B = np.random.default_rng(1).normal(size=(4, 5)), np.zeros(4)


@pytest.fixture
def folder(request):
    return request.config.getoption("--goldens")


def test_the_official_dual_steps(folder):
    golden = load("climb_dual_default_lr1_eps1", folder)
    rates, lam = {"lr": float(golden["lambda_lr"]), "eps": float(golden["epsilon"])}, np.zeros(6)
    for losses, used, after in zip(
        golden["client_losses"], golden["weights_used"], golden["lambda_traj"][1:], strict=True
    ):
        np.testing.assert_allclose(client_weights(lam), used, atol=2.6e-5, rtol=0)
        lam = dual_step(lam, losses, **rates)
        np.testing.assert_allclose(lam, after, atol=2.6e-5, rtol=0)


def test_the_server_takes_them_in_the_official_order(folder):
    """The weights of an outer round come from lam before its losses, which act in the next one."""
    golden = load("climb_dual_default_lr1_eps1", folder)
    hand = ByHand(Climb(weights="as_run"), linear(W, B), [blobs()] * 6, lr=0.1)
    for losses, used, lam in zip(
        golden["client_losses"], golden["weights_used"], golden["lambda_traj"][:-1], strict=True
    ):
        answers = [Upload(i, 1, 23, {"loss": np.array(float(F))}) for i, F in enumerate(losses)]
        hand.algorithm.absorb("loss", hand.server_context(answers))
        np.testing.assert_allclose(hand.state["lam"], lam, atol=2.6e-5, rtol=0)
        np.testing.assert_allclose(hand.state["weights"], used, atol=2.6e-5, rtol=0)
        sent = [float(hand.algorithm.message(hand.state, client)["weight"][0]) for client in range(6)]
        np.testing.assert_array_equal(sent, hand.state["weights"])


class Fixed(Climb):
    """The core alone: no exchange, so that the weights stay as they are set."""

    def exchanges(self):
        return ()


def test_the_official_rounds_of_the_fedavg_core(folder):
    golden = load("climb_primal_fedavg", folder)
    hand = ByHand(
        Fixed(core="fedavg", lr_global=float(golden["global_lr"])),
        linear(golden["weight_rounds"][0], golden["bias_rounds"][0]),
        [joined(x, y) for x, y in zip(golden["X"], golden["Y"], strict=True)], batch_size=5,
        epochs=int(golden["local_epoch"]), lr=float(golden["local_lr"]), weight_decay=float(golden["weight_decay"]),
    )  # fmt: skip
    hand.state["weights"] = golden["client_weights"].astype(float)
    for round in range(1, 4):
        hand.round()
        np.testing.assert_allclose(hand.named()["weight"], golden["weight_rounds"][round], atol=6.3e-7, rtol=0)
        np.testing.assert_allclose(hand.named()["bias"], golden["bias_rounds"][round], atol=6.3e-7, rtol=0)


def test_the_official_loss_and_the_intended_one(folder):
    golden = load("climb_client_loss_sum_of_batch_means", folder)
    part = golden["X"], golden["Y"].astype(int)
    found = {}
    for losses in ("as_run", "intended"):
        hand = ByHand(Climb(losses=losses), linear(golden["W"], golden["b"]), [part], lr=0.1)
        found[losses] = float(hand.algorithm.answer("loss", hand.context(0))["loss"])
    assert found["as_run"] == pytest.approx(float(golden["official_value"]), abs=2e-6)
    assert found["intended"] == pytest.approx(5 * float(golden["mean_loss"]), abs=2e-6)


@pytest.mark.parametrize(("n", "scale"), [(15, 5), (20, 5), (600, 2), (12, 1)])
def test_both_losses_are_one_where_the_scale_divides_the_samples(n, scale):
    found = []
    for losses in ("as_run", "intended"):
        hand = ByHand(Climb(losses=losses, loss_scale=scale), linear(W, B), [blobs(n=n, dtype="f8")], lr=0.1)
        found.append(float(hand.algorithm.answer("loss", hand.context(0))["loss"]))
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_fewer_samples_than_batches_are_batches_of_one():
    x, y = blobs(n=3, dtype="f8")
    hand = ByHand(Climb(losses="as_run"), linear(W, B), [(x, y)], lr=0.1)
    each = cross_entropy(linear(W, B)(torch.from_numpy(x)), torch.from_numpy(y), reduction="sum").item()
    assert float(hand.algorithm.answer("loss", hand.context(0))["loss"]) == pytest.approx(each, rel=1e-12)


LAM = arrays(float, st.integers(1, 30), elements=st.floats(0, 100))


@examples(60, 3000)
@given(st.data(), LAM, st.floats(0, 5), st.floats(0, 5), st.floats(0.1, 100))
def test_duals_and_weights(data, lam, lr, eps, cap):
    F = data.draw(arrays(float, lam.size, elements=st.floats(0, 50)))
    new = dual_step(lam, F, lr=lr, eps=eps, cap=cap)
    assert ((new >= 0) & (new <= cap)).all()
    np.testing.assert_allclose(dual_step(lam, F + 7.0, lr=lr, eps=eps, cap=cap), new, atol=1e-9)
    raw = client_weights(lam)
    assert raw.sum() == pytest.approx(lam.size, abs=1e-4)
    weights = not_below_zero(raw)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(lam.size, rel=1e-9)
    np.testing.assert_array_equal(weights == 0, raw <= 0)
    if raw.min() >= 0:
        np.testing.assert_array_equal(weights, raw)


def test_equal_losses_let_the_duals_fade():
    lam = np.array([0.5, 0.2, 0.0])
    for _ in range(3):
        new = dual_step(lam, [2.0, 2.0, 2.0], lr=0.6, eps=0.4)
        np.testing.assert_allclose(new, np.maximum(lam - 0.4 * 0.6 / 3, 0), atol=1e-12)
        lam = new
    assert dual_step(np.zeros(3), [2.0, 1.0, 0.0], lr=1.0, eps=1.0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("relabelled", [True, False])
@pytest.mark.parametrize("core", ["fedavg", "fedpd"])
def test_within_eps_it_is_its_core_to_the_bit(core, relabelled):
    parts = {"make": normed, "relabelled": relabelled, "train": {"participation": 0.6}}
    loose, still, tight = (
        weights_of(Climb(core=core, primal_steps=1, **duals), **parts)
        for duals in ({"eps": 1e6}, {"lambda_lr": 0.0}, {"eps": 0.0, "lambda_lr": 5.0})
    )
    assert loose.tobytes() == still.tobytes()
    assert np.abs(tight - still).max() > 1e-3
    assert tight[0].tobytes() == still[0].tobytes()  # the first losses act in the second outer round


@pytest.mark.parametrize("relabelled", [True, False])
def test_the_fedavg_core_of_equal_clients_is_fedavg(relabelled):
    parts = {"problem": equal_clients(), "make": normed, "relabelled": relabelled}
    found = weights_of(Climb(core="fedavg", lambda_lr=0.0), **parts)
    np.testing.assert_allclose(found, weights_of(FedAvg(), **parts), atol=1e-6)


@pytest.mark.parametrize("relabelled", [True, False])
def test_the_first_round_of_the_fedpd_core_is_fedprox(relabelled):
    parts = {"problem": equal_clients(), "make": normed, "relabelled": relabelled, "rounds": 2}
    found, prox = weights_of(Climb(eta=4.0, clip=0), **parts), weights_of(FedProx(mu=0.25), **parts)
    np.testing.assert_allclose(found[0], prox[0], atol=1e-6)
    assert np.abs(found[1] - prox[1]).max() > 1e-4


@pytest.mark.parametrize("clip", [0.0, 0.3])
def test_the_fedpd_core_in_plain_torch(clip):
    """Two rounds of two clients with weights 1.5 and 0.5: loss, dual, proximal term, clip, then weight decay."""
    parts, local = [blobs(n=n, seed=n, dtype="f8") for n in (9, 20)], {"lr": 0.1, "batch_size": 8, "epochs": 2}
    params = {"eta": 3.0, "dual_rate": 0.7, "clip": clip, "lr_global": 0.8}
    hand = ByHand(Fixed(**params), linear(W, B), parts, weight_decay=0.02, momentum=0.5, **local)
    hand.state["weights"] = np.array([1.5, 0.5])
    x, nu = np.concatenate([W.ravel(), B]), np.zeros((2, 24))
    for _ in range(2):
        reports = []
        for i, w in enumerate((1.5, 0.5)):
            y = _fedpd_client(x, nu[i], w, parts[i], params)
            nu[i] += 0.7 * (y - x) / 3.0
            reports.append(3.0 * nu[i])
        hand.round()
        x = x + 0.8 * np.mean(reports, axis=0)
        np.testing.assert_allclose(hand.weights, x, atol=1e-12)
        np.testing.assert_allclose(np.stack([state["dual"] for state in hand.client_states]), nu, atol=1e-12)


def _fedpd_client(x, nu, w, part, params):
    model = linear(x[:20].reshape(4, 5), x[20:])
    start, dual = torch.from_numpy(x.copy()), torch.from_numpy(nu.copy())
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5, weight_decay=0.02)
    order = np.arange(len(part[1]))
    for _ in range(2):
        for at in (order[k : k + 8] for k in range(0, len(order), 8)):
            y = torch.nn.utils.parameters_to_vector(model.parameters())
            loss = w * cross_entropy(model(torch.from_numpy(part[0][at])), torch.from_numpy(part[1][at]))
            optimiser.zero_grad()
            (loss + dual @ y + ((y - start) ** 2).sum() / (2 * params["eta"])).backward()
            if params["clip"]:
                torch.nn.utils.clip_grad_norm_(model.parameters(), params["clip"])
            optimiser.step()
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy()


@pytest.mark.parametrize("core", ["fedavg", "fedpd"])
def test_outer_rounds_through_the_engine(core):
    """Losses of all clients at the model before every second round; in between nothing changes."""
    found = rounds_of(
        Climb(core=core, primal_steps=2, eps=0.05, lambda_lr=3.0), 6, False, train={"participation": 0.4}
    )  # fmt: skip
    lam = np.zeros(5)
    for round in range(0, 6, 2):
        before = None if round == 0 else found[round - 1].weights
        for after in found[round : round + 2]:
            np.testing.assert_allclose(after.server["losses"], _losses(before), rtol=1e-5)
            np.testing.assert_allclose(after.server["lam"], lam, rtol=1e-9)
            np.testing.assert_allclose(after.server["weights"], not_below_zero(client_weights(lam)), rtol=1e-9)
        lam = dual_step(lam, found[round].server["losses"], lr=3.0, eps=0.05)
    assert lam.max() > 0.1


def _losses(weights):
    """Five times each client's mean loss under these weights, or before the first round."""
    problem = table_problem()
    model = tiny_mlp(problem)()
    if weights is not None:
        torch.nn.utils.vector_to_parameters(torch.from_numpy(weights), model.parameters())
    x, y = torch.from_numpy(problem.x_train), torch.from_numpy(problem.y_train)
    return [5 * cross_entropy(model(x[shard.train]), y[shard.train]).item() for shard in problem.shards]


def test_who_did_not_answer_counts_as_the_mean():
    hand = ByHand(Climb(core="fedavg", eps=0.1), linear(W, B), [blobs()] * 3, lr=0.1)
    for answered in ((0, 2), (0, 1, 2)):
        sent = [Upload(i, 1, 23, {"loss": np.array(1.0 + 2 * i)}) for i in answered]
        hand.algorithm.absorb("loss", hand.server_context(sent))
    np.testing.assert_allclose(hand.state["lam"], dual_step(np.zeros(3), [1.0, 3.0, 5.0], lr=1.0, eps=0.1))


def test_a_hard_client_is_helped(monkeypatch):
    """Two clients in one bowl and one in another: with a limit the lone one ends up nearer to its own."""
    monkeypatch.setitem(LOSSES, "first logit", first_logit)
    parts = [bowls(1.0, b, np.zeros((2, 1))) for b in (0.0, 0.0, 3.0)]
    local = {"lr": 0.2, "batch_size": 2, "epochs": 3, "loss": "first logit"}
    ends = []
    for lambda_lr in (0.0, 0.5):
        algorithm = Climb(core="fedavg", eps=0.5, loss_scale=1, lambda_lr=lambda_lr, primal_steps=1)
        hand = ByHand(algorithm, Bowl(np.zeros(1)), parts, **local)
        for _ in range(30):
            hand.round()
        ends.append(float(hand.weights[0]))
    assert ends[0] == pytest.approx(1.0, abs=1e-3)
    # the limit F_3 - mean F <= 0.5 binds where (9 - 6 y) / 3 = 0.5
    assert ends[1] == pytest.approx(1.25, abs=0.05)


@pytest.mark.parametrize("make", [normed, doubled])
def test_duals_are_of_trained_arrays_in_the_models_precision(make):
    after = rounds_of(Climb(), 2, make=make)[-1]
    plain = rounds_of(FedAvg(), 1, make=make)[0]
    assert {state["state.dual"].shape for state in after.client_states.values()} == {(after.trained,)}
    assert after.client_states[0]["state.dual"].dtype == after.weights.dtype
    assert rounds_of(Climb(core="fedavg"), 1, make=make)[0].weights[after.trained :].tobytes() == (
        plain.weights[plain.trained :].tobytes()
    )
