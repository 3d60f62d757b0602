"""FedROD: the balanced softmax of the generic model, and a personal head that does not touch it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fedrod import FedRod
from fedrela.engine.evaluation import evaluate_locally
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from fedrela.losses import balanced_softmax
from fedrela.models import build
from goldens.frames_and_losses import load
from helpers.contexts import batches, blobs, client_context
from helpers.engine_federations import CLASSES, COLUMNS, Made, normed
from helpers.one_step import one_step, whose_logits_are
from helpers.through_engine import rounds_of, weights_of

X, Y = blobs(n=45)
COUNTS = np.bincount(Y, minlength=CLASSES)


def model_of(seed=0):
    return FedRod().module(build("mlp", (COLUMNS,), CLASSES, seed=seed, hidden=[8]), CLASSES, seed)


def trained(module, y=Y, counts=COUNTS, floor=1.0, **local):
    context = client_context(module, X, y, **({"batch_size": 8, "epochs": 2} | local))
    context.counts = counts
    FedRod(floor=floor).client(context)
    return context


def generic(context):
    return b"".join(a.tobytes() for name, a in context.model.read().items() if not name.startswith("personal_head"))


@pytest.mark.parametrize(("case", "floor"), [("full", 0.0), ("absent", 0.0), ("absent", 1.0)])
def test_the_official_step_of_balanced_softmax(request, case, floor):
    golden = load("balanced_softmax", request.config.getoption("--goldens"))
    logits, y = golden["logits"], golden[f"{case}_y"]
    algorithm = FedRod(floor=floor)
    module = algorithm.module(whose_logits_are(logits), logits.shape[1], 0)
    moved, _ = one_step(algorithm, module, y, golden[f"{case}_counts"])
    expected = golden[f"{case}_fedetf_floor1_grad" if floor else f"{case}_grad"]
    np.testing.assert_allclose(moved["head.weight"].T, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("clip", [0.0, 0.1])
def test_both_heads_are_trained_as_by_hand_to_the_bit(clip):
    """Two optimisers; the personal one is plain SGD, on what was computed before either step."""
    context = trained(model_of(), momentum=0.9, weight_decay=1e-3, clip=clip)
    hand = model_of()
    shared = [p for name, p in hand.named_parameters() if not name.startswith("personal_head")]
    mine = list(hand.personal_head.parameters())
    optimisers = [
        torch.optim.SGD(shared, lr=0.1, momentum=0.9, weight_decay=1e-3, foreach=False),
        torch.optim.SGD(mine, lr=0.1, foreach=False),
    ]
    for x, y in batches(context, X, Y):
        hand.zero_grad()
        f = hand.features(x)
        logits = hand.head(f)
        personal = cross_entropy(logits.detach() + hand.personal_head(f.detach()), y)
        balanced_softmax(logits, y, COUNTS, floor=1.0).backward()
        personal.backward()
        for group, optimiser in zip((shared, mine), optimisers, strict=True):
            if clip:
                torch.nn.utils.clip_grad_norm_(group, clip, foreach=False)
            optimiser.step()
    found = context.model.read()
    for name, parameter in hand.named_parameters():
        if clip:  # the norm of one vector and of many have other last bits
            np.testing.assert_allclose(found[name], parameter.detach().numpy(), atol=1e-6)
        else:
            assert found[name].tobytes() == parameter.detach().numpy().tobytes(), name


@pytest.mark.parametrize("clip", [0.0, 0.1])
def test_the_personal_loss_has_no_gradient_on_body_and_generic_head(clip):
    found = []
    for factor in (0.0, 1.0, 50.0):
        module = model_of()
        with torch.no_grad():
            module.personal_head.weight.mul_(factor)
        found.append(trained(module, momentum=0.9, clip=clip))
    assert len({generic(context) for context in found}) == 1
    assert len({context.model.read()["personal_head.weight"].tobytes() for context in found}) == 3


def test_an_empty_personal_head_answers_as_the_generic_one():
    module, x = model_of(), torch.from_numpy(X)
    logits = FedRod().logits(module, x, {})
    assert not FedRod().local_logits(module, x, {}).equal(logits)
    with torch.no_grad():
        for parameter in module.personal_head.parameters():
            parameter.zero_()
    assert FedRod().local_logits(module, x, {}).equal(logits)


@pytest.mark.parametrize(("floor", "still"), [(0.0, True), (1.0, False)])
def test_a_client_of_one_class_moves_the_generic_model_only_where_counts_are_raised(floor, still):
    one = np.full(len(Y), 2)
    module = model_of()
    before = client_context(model_of(), X, one)
    context = trained(module, one, np.array([0, 0, len(Y), 0]), floor, momentum=0.9)
    assert (generic(context) == generic(before)) == still
    names = "personal_head.weight", "personal_head.bias"
    assert all(context.model.read()[name].tobytes() != before.model.read()[name].tobytes() for name in names)


@pytest.mark.parametrize("relabelled", [True, False])
def test_what_is_shared_is_fedavg_with_the_balanced_softmax_to_the_bit(relabelled):
    train = {"participation": 0.6, "clip": 1.0}
    baseline = weights_of(FedAvg(), relabelled=relabelled, train=train | {"loss": "balanced_softmax"}, make=normed)
    found = weights_of(FedRod(floor=0.0), relabelled=relabelled, train=train, make=normed)
    assert found.tobytes() == baseline.tobytes()
    assert weights_of(FedAvg(), relabelled=relabelled, train=train, make=normed).tobytes() != baseline.tobytes()


@pytest.mark.parametrize("relabelled", [True, False])
def test_with_equal_counts_what_is_shared_is_fedavg(relabelled):
    """Counts are equal where all of them are raised to one number."""
    found = weights_of(FedRod(floor=1000.0), relabelled=relabelled)
    np.testing.assert_allclose(found, weights_of(FedAvg(), relabelled=relabelled), atol=1e-6, rtol=0)


def test_the_personal_head_stays_at_home_and_goes_on():
    with SerialExecutor() as executor:
        run = Made(FedRod()).begin(executor)
        assert not [entry.name for entry in run.arrays.layout.entries if "personal" in entry.name]
        next_round(run)
        heads = {client: run.memory["client_state"].row(client)["private"].copy() for client in range(run.clients)}
        assert len({head.tobytes() for head in heads.values()}) == run.clients
        local = evaluate_locally(run)
        run.state.has_state[:] = False
        assert evaluate_locally(run) != local
        run.close()
    first, second = rounds_of(FedRod(), 2, relabelled=False)
    assert all(
        second.client_states[c]["private"].tobytes() != first.client_states[c]["private"].tobytes()
        for c in first.client_states
    )
