"""FedYoYo against its official numbers and its invariants."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedrela.algorithms.context import ServerContext
from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fedyoyo import FedYoyo, distillation, effective_sums, keep_where_it_jumps, two_views
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from fedrela.models.inputs import Scaling
from fedrela.records import Upload
from goldens.class_gradients import load
from helpers.contexts import client_context, linear
from helpers.engine_federations import Made, image_problem

GOLDEN = load("fedyoyo")


@pytest.mark.parametrize("size", [64, 8])
def test_effective_sums_are_the_official_ones(size):
    features, labels = torch.tensor(GOLDEN["features"]), torch.tensor(GOLDEN["y"]).long()
    batches = [np.arange(24)[at : at + size] for at in range(0, 24, size)]
    found = effective_sums(features, labels, batches, 5)
    assert found == pytest.approx(GOLDEN[f"eff_bs{size}"], rel=1e-4)


def test_two_samples_in_one_batch_give_a_million_one_gives_one_none_gives_none():
    features, labels = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 1.0]]), torch.tensor([0, 0, 1])
    assert effective_sums(features, labels, [np.arange(3)], 3) == pytest.approx([1e6, 1.0, 0.0])


def test_the_rule_for_jumps_is_the_official_one():
    found = keep_where_it_jumps(GOLDEN["thr_prev"].astype(float), GOLDEN["thr_cur"].astype(float))
    assert found == pytest.approx(GOLDEN["thr_out"])


@pytest.mark.parametrize("round", [1, 50])
def test_one_local_epoch_is_the_official_one(round):
    step = {name.split("_", 2)[2]: array for name, array in GOLDEN.items() if name.startswith(f"step_r{round}_")}
    pairs = np.stack([step["weak"], step["strong"]], axis=1)
    module = linear(step["W0"], step["b0"])
    context = client_context(
        module, pairs, step["y"], stored=True, view=lambda raw, rng: torch.cat([raw[:, 0], raw[:, 1]]),
        lr=0.1, batch_size=8, epochs=1,
    )  # fmt: skip
    context.round, context.counts = round, GOLDEN["counts"].astype(np.int64)
    context.received = {"prior": step["prior"].astype(float)}
    FedYoyo(prior_mix="recursive").client(context)
    assert module.weight.detach().numpy() == pytest.approx(step["W1"], abs=1e-6)
    assert module.bias.detach().numpy() == pytest.approx(step["b1"], abs=1e-6)


def absorbed(algorithm, state, sums):
    context = ServerContext(1, 1, 9, 2, [Upload(0, 1, 5, {"sums": np.array(sums)})], np.zeros(1), 1, 0.1, state, None)
    algorithm.absorb("effective", context)
    return context.state


def test_the_prior_sums_to_one_and_follows_slowly():
    algorithm = FedYoyo()
    state = absorbed(algorithm, {"sums": np.zeros(3), "prior": np.ones(3) / 3}, [9.0, 3.0, 1e6])
    assert state["sums"].tolist() == [10.0, 4.0, 7.0]  # what cannot be is replaced by the mean of the others
    again = absorbed(algorithm, state, [19.0, 3.0, 6.0])
    assert again["sums"] == pytest.approx([0.9 * 10 + 0.1 * 20, 4.0, 7.0])
    for found in (state, again):
        assert found["prior"].sum() == pytest.approx(1)
        assert (found["prior"] > 0).all()


@pytest.mark.parametrize(("mix", "share"), [("once", 0.9), ("recursive", 0.9**3)])
def test_how_the_prior_is_mixed(mix, share, monkeypatch):
    """With logits of zero the loss shows the prior: CE(log q^tau) for each batch."""
    seen = []
    monkeypatch.setattr(
        "fedrela.algorithms.fedyoyo.cross_entropy", lambda z, y: seen.append(z.detach()) or cross_entropy(z, y)
    )
    module = linear(np.zeros((2, 3), "f4"), np.zeros(2, "f4"))
    context = client_context(module, np.zeros((6, 3), "f4"), np.array([0, 0, 0, 0, 0, 1]), batch_size=2, lr=1e-9)
    context.received = {"prior": np.array([0.5, 0.5])}
    FedYoyo(prior_mix=mix, views="none", lam=0.0, tau=1.0).client(context)
    q, own = seen[-1][0].exp().double().numpy(), np.array([5, 1]) / 6
    assert len(seen) == 3
    assert q == pytest.approx(share * 0.5 + (1 - share) * own, abs=1e-6)


def test_distillation_is_over_samples_that_the_weak_view_gets_right():
    weak, strong = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([[0.0, 1.0], [3.0, 0.0]])
    labels = torch.tensor([0, 1])
    alone = distillation(weak[:1], strong[:1], labels[:1], 1.5)
    assert distillation(weak, strong, labels, 1.5).item() == pytest.approx(alone.item())
    assert distillation(weak, strong, torch.tensor([1, 1]), 1.5).item() == 0


def test_with_both_weights_off_and_no_views_it_is_fedavg():
    weights = []
    for algorithm in (FedYoyo(tau=0.0, lam=0.0, views="none"), FedAvg()):
        run = Made(algorithm=algorithm, problem=image_problem()).begin(SerialExecutor())
        for _ in range(3):
            next_round(run)
        weights.append(run.state.weights)
        run.close()
    assert weights[0] == pytest.approx(weights[1], abs=1e-6)


def test_two_views_of_every_image():
    raw = torch.from_numpy(np.random.default_rng(0).integers(0, 255, (5, 3, 16, 16)).astype(np.uint8))
    views = two_views(raw, np.random.default_rng(1))
    assert views.shape == (10, 3, 16, 16)
    assert not torch.equal(views[:5], views[5:])


@pytest.mark.parametrize("white", [16, 255])
def test_the_source_states_which_value_is_white(white):
    images = np.full((6, 1, 8, 8), 9, np.uint8)
    context = client_context(linear(np.zeros((2, 64), "f4"), np.zeros(2, "f4")), images, np.arange(6) % 2)
    context.samples.scaling = Scaling((8.0,), (4.0,), pixel_max=white)
    view = FedYoyo().prepare(context).view
    found = view(context.samples.raw(slice(None)), np.random.default_rng(3))
    expected = two_views(torch.from_numpy(images), np.random.default_rng(3), white=white)
    assert found.equal(expected)
    assert int(found.max()) <= white
