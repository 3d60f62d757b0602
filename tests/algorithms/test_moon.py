"""MOON: the official step, three models by hand, and when it is FedAvg."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cosine_similarity, cross_entropy

from fedrela.algorithms import moon
from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.moon import Moon
from fedrela.models import build
from goldens.frames_and_losses import MOON, load
from helpers.contexts import batches, blobs, client_context
from helpers.engine_federations import CLASSES, COLUMNS, doubled, image_problem, normed, tiny_mlp
from helpers.through_engine import rounds_of, weights_of

PROJECTED = partial(build, "mlp", (COLUMNS,), CLASSES, seed=7, hidden=[6], projection=5)


class Given(nn.Module):
    """Features and logits as parameters, the same whatever comes in."""

    class Head(nn.Module):
        def __init__(self, logits):
            super().__init__()
            self.logits = nn.Parameter(torch.tensor(logits))

        def forward(self, features):
            return self.logits + 0 * features.detach().sum()

    def __init__(self, z, logits):
        super().__init__()
        self.z, self.head = nn.Parameter(torch.tensor(z)), self.Head(logits)

    def features(self, x):
        return self.z + 0 * x.sum()

    def forward(self, x):
        return self.head(self.features(x))


def step_from(golden, z_start):
    """Return a context whose model starts at `z_start`, with the golden's targets."""
    target = golden["target"].astype(int)
    module = Given(z_start, golden["logits"])
    return client_context(module, np.zeros((8, 1), "f4"), target, stored=True, lr=1.0, batch_size=8)


@pytest.mark.parametrize("name", [name for name in MOON if "2prev" not in name])
def test_the_official_step(request, monkeypatch, name):
    """The frozen models are handed over as they were recorded, since there they are no states of one module."""
    golden = load(name, request.config.getoption("--goldens"))
    context = step_from(golden, golden["z_local"])
    before = context.model.read()
    vectors = [step_from(golden, z).model.vector for z in (golden["z_global"], *golden["z_prev"])]
    monkeypatch.setattr(moon, "_frozen", lambda _: vectors)
    context.state = {"previous": vectors[1].numpy()} if len(vectors) > 1 else {}
    Moon(mu=float(golden["mu"]), temperature=float(golden["temperature"])).client(context)
    after = context.model.read()
    for place, key in (("z", "grad_total_wrt_z_local"), ("head.logits", "grad_total_wrt_logits")):
        np.testing.assert_allclose(before[place] - after[place], golden[key], atol=1.1e-6, rtol=0)


def three_models(context, previous, x, y, mu, temperature):
    """MOON's training in plain torch: the model in training mode, copies of two others in evaluation mode."""
    student, teacher, former = (normed(5) for _ in range(3))
    for model, source in ((student, context.model.module), (teacher, context.model.module), (former, previous)):
        model.load_state_dict(source.state_dict())
    teacher.eval()
    former.eval()
    optimiser = torch.optim.SGD(student.parameters(), lr=context.local.lr, momentum=context.local.momentum)
    for inputs, labels in batches(context, x, y):
        z = student.features(inputs)
        with torch.no_grad():
            others = teacher.features(inputs), former.features(inputs)
        scores = torch.stack([cosine_similarity(z, other, dim=-1) for other in others], dim=1) / temperature
        con = cross_entropy(scores, torch.zeros(len(z), dtype=torch.long))
        optimiser.zero_grad()
        (cross_entropy(student.head(z), labels) + mu * con).backward()
        optimiser.step()
    return {name: array.numpy() for name, array in student.state_dict().items() if array.is_floating_point()}


def a_client_that_has_been_here(view=None):
    """Return the context of a client that trained before on other samples, and the model it had then."""
    torch.manual_seed(3)
    x, y = blobs(n=22)
    local = {"lr": 0.1, "momentum": 0.9, "epochs": 3, "batch_size": 8}
    former = client_context(normed(5), *blobs(n=30, seed=8), **local)
    Moon().client(former)
    context = client_context(normed(5), x, y, view=view, **local)
    context.state = dict(former.state)
    return context, former.model.module, x, y


@pytest.mark.parametrize("mu", [1.0, 5.0])
def test_three_models_by_hand(mu):
    context, former, x, y = a_client_that_has_been_here()
    expected = three_models(context, former, x, y, mu, 0.5)
    Moon(mu=mu).client(context)
    found = context.model.read()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, atol=2e-6, err_msg=name)
    assert context.state["previous"].tobytes() == context.model.collect().tobytes()


def test_frozen_features_are_taken_anew_of_augmented_samples():
    plain, seen = a_client_that_has_been_here()[0], []

    def view(raw, rng):
        seen.append(len(raw))
        return raw

    augmented = a_client_that_has_been_here(view)[0]
    for context in (plain, augmented):
        Moon().client(context)
    np.testing.assert_allclose(augmented.model.collect(), plain.model.collect(), atol=2e-6)
    assert seen == [8, 8, 6] * 3


@pytest.mark.parametrize("relabelled", [True, False])
@pytest.mark.parametrize("make", [None, normed, PROJECTED])
def test_without_weight_it_is_fedavg_to_the_bit(make, relabelled):
    parts = {"make": make, "relabelled": relabelled, "train": {"participation": 0.6}}
    plain = weights_of(FedAvg(), **parts)
    assert weights_of(Moon(mu=0), **parts).tobytes() == plain.tobytes()
    assert np.abs(weights_of(Moon(mu=1), **parts) - plain).max() > 1e-4


@pytest.mark.parametrize("relabelled", [True, False])
def test_a_clients_first_round_is_fedavg_to_the_bit(relabelled):
    parts = {"make": normed, "relabelled": relabelled, "rounds": 2}
    plain, found = (weights_of(algorithm, **parts) for algorithm in (FedAvg(), Moon(mu=5)))
    assert found[0].tobytes() == plain[0].tobytes()
    assert found[1].tobytes() != plain[1].tobytes()


@pytest.mark.parametrize("make", [normed, doubled])
def test_a_client_that_sits_out_keeps_its_model(make):
    one, *others = rounds_of(Moon(), 4, make=make, train={"participation": 0.4})
    before = one
    for after in others:
        for client, state in before.client_states.items():
            changed = state["state.previous"].tobytes() != after.client_states[client]["state.previous"].tobytes()
            assert changed == (client in after.record.chosen)
            assert state["state.previous"].dtype == after.weights.dtype
        before = after
    assert set(one.client_states) == set(one.record.chosen)


def test_pictures_with_augmentation():
    problem = image_problem()
    parts = {"problem": problem, "make": tiny_mlp(problem), "train": {"augment": True}, "rounds": 2}
    found, plain = weights_of(Moon(), **parts), weights_of(FedAvg(), **parts)
    assert np.isfinite(found).all()
    assert found[0].tobytes() == plain[0].tobytes() != found[1].tobytes()


def test_features_that_are_all_zero_do_no_harm():
    context = a_client_that_has_been_here()[0]
    context.samples.inputs.zero_()
    context.model.module.body[1].bias.data.fill_(-1.0)
    context.model.module.body[2] = nn.Identity()
    Moon(mu=5).client(context)
    assert np.isfinite(context.model.collect()).all()


def test_logits_are_left_for_who_collects_them():
    context = a_client_that_has_been_here()[0]
    context.scores = np.full((22, 4), np.nan, np.float32)
    Moon().client(context)
    assert np.isfinite(context.scores).all()


def test_the_global_model_in_place_of_a_previous_one_has_no_pull():
    """Which is why the first round leaves the term out."""
    context, plain = a_client_that_has_been_here()[0], a_client_that_has_been_here()[0]
    context.state = {"previous": context.model.collect()}
    Moon(mu=5).client(context)
    plain.train()
    np.testing.assert_allclose(context.model.collect(), plain.model.collect(), atol=1e-5)


def test_training_without_the_term_is_another():
    context, plain = a_client_that_has_been_here()[0], a_client_that_has_been_here()[0]
    Moon().client(context)
    plain.train()
    assert np.abs(context.model.collect() - plain.model.collect()).max() > 1e-3
