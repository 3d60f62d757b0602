"""FedLoGe: three heads per batch, one frame, and realignment."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms import fedloge
from fedrela.algorithms.fedloge import FedLoge, realign_locally
from fedrela.engine.evaluation import evaluate_locally
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.executors.worker import dumps, loads
from fedrela.engine.round import next_round
from fedrela.errors import ArgumentError
from fedrela.metrics import score
from fedrela.metrics.groups import evaluation_groups
from fedrela.models import Classifier, build
from fedrela.models.heads import FixedHead, sparse_etf
from goldens.frames_and_losses import load
from helpers.collected import official_model, posteriors
from helpers.contexts import batches, blobs, client_context
from helpers.engine_federations import CLASSES, COLUMNS, Made, doubled
from helpers.through_engine import rounds_of

X, Y = blobs(n=45)


def quick(**params):
    return FedLoge(**({"frame_steps": 20} | params))


def model_of(algorithm=None, width=8, seed=0, make=None):
    model = make() if make else build("mlp", (COLUMNS,), CLASSES, seed=seed, hidden=[width])
    return (algorithm or quick()).module(model, CLASSES, seed)


def copied(parameter, values):
    with torch.no_grad():
        parameter.copy_(torch.from_numpy(values))


@pytest.mark.parametrize("bias", ["zero", "official"])
def test_three_optimisers_to_the_bit_and_the_frame_stays(bias):
    algorithm = quick(frame_bias=bias)
    context = client_context(model_of(algorithm), X, Y, epochs=2, batch_size=8, momentum=0.5, weight_decay=1e-3)
    module = context.model.module
    before = module.head.matrix.clone(), module.head.bias.clone()
    algorithm.client(context)
    hand = model_of(algorithm)
    parts = (hand.body, hand.auxiliary_head, hand.local_head)
    options = {"lr": 0.1, "momentum": 0.5, "weight_decay": 1e-3, "foreach": False}
    optimisers = [torch.optim.SGD(part.parameters(), **options) for part in parts]
    for x, y in batches(context, X, Y):
        f = hand.features(x)  # before any of the three steps
        for logits, optimiser in zip(
            (hand.head(f), hand.auxiliary_head(f.detach()), hand.local_head(f.detach())), optimisers, strict=True
        ):
            optimiser.zero_grad()
            cross_entropy(logits, y).backward()
            optimiser.step()
    found = context.model.read()
    assert all(found[name].tobytes() == p.detach().numpy().tobytes() for name, p in hand.named_parameters())
    assert module.head.matrix.equal(before[0])
    assert module.head.bias.equal(before[1])
    assert before[1].any() == (bias == "official")


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_the_heads_beside_have_no_gradient_on_the_body(clip):
    bodies, heads = set(), set()
    for factor in (1.0, 30.0):
        module = model_of()
        with torch.no_grad():
            module.auxiliary_head.weight.mul_(factor)
            module.local_head.weight.mul_(-factor)
        context = client_context(module, X, Y, epochs=2, batch_size=8, momentum=0.5, clip=clip)
        quick().client(context)
        found = context.model.read()
        bodies.add(b"".join(a.tobytes() for name, a in found.items() if name.startswith("body.")))
        heads.add(found["auxiliary_head.weight"].tobytes())
    assert (len(bodies), len(heads)) == (1, 2)


def test_the_official_realignment(request):
    golden = load("fedloge_realign", request.config.getoption("--goldens"))
    algorithm = FedLoge(frame_steps=0, beta=0.0)
    module = algorithm.module(Classifier(nn.Identity(), 12, 10), 10, 0)
    copied(module.auxiliary_head.weight, golden["W_aux"])
    copied(module.auxiliary_head.bias, golden["b_aux"])
    copied(module.local_head.weight, golden["l_head_W"])
    aligned = fedloge.realign(module.auxiliary_head.weight, 1.7).detach()
    np.testing.assert_allclose(aligned, golden["W_realigned"], atol=1e-6, rtol=0)
    np.testing.assert_allclose(aligned.norm(dim=1), 1.7, atol=1e-6)
    rescaled = realign_locally(module.auxiliary_head.weight, module.local_head.weight).detach()
    np.testing.assert_allclose(rescaled, golden["W_local_norm_transfer"], atol=1e-6, rtol=0)
    groups = evaluation_groups([5000, 3237, 2096, 1357, 878, 568, 368, 238, 154, 100])
    x, y = torch.from_numpy(golden["X"]), golden["labels"].astype(int)
    found = score(algorithm.logits(module, x, {}).detach().numpy(), y, groups)
    assert found.overall == pytest.approx(float(golden["acc"]), abs=1e-9)
    for ours, theirs in {"head": "head", "medium": "middle", "tail": "tail"}.items():
        assert found.groups[ours] == pytest.approx(float(golden[theirs]), abs=1e-9)
    raw = score(module.auxiliary_head(x).detach().numpy(), y)
    assert raw.overall == pytest.approx(float(golden["acc_before"]), abs=1e-9)


def test_the_official_collection_of_posteriors(request):
    golden = load("fedrela_collect_q", request.config.getoption("--goldens"))
    algorithm = quick(scored="frame")
    module = algorithm.module(official_model(golden), 4, 0)
    module.head = FixedHead(torch.from_numpy(golden["lin_w"].T.copy()), torch.from_numpy(golden["lin_b"]))
    Q = posteriors(algorithm, module, golden)
    np.testing.assert_allclose(Q[golden["loge_order"]], golden["loge_preds"], atol=1e-6, rtol=0)


def test_realignment_of_rows_that_have_the_norm_changes_nothing():
    module, x = model_of(), torch.from_numpy(X)
    copied(module.auxiliary_head.weight, fedloge.realign(module.auxiliary_head.weight, 1.7).detach().numpy())
    f = module.features(x)
    torch.testing.assert_close(quick().logits(module, x, {}), module.auxiliary_head(f), atol=1e-6, rtol=0)
    assert quick(scored="frame").logits(module, x, {}).equal(module.head(f))
    unit = torch.nn.functional.normalize(module.local_head.weight.detach(), dim=1)
    copied(module.local_head.weight, unit.numpy())
    both = module.local_head(f) + module.auxiliary_head(f)
    torch.testing.assert_close(quick().local_logits(module, x, {}), both, atol=1e-5, rtol=0)


def test_frame_and_heads_at_the_start():
    wide = Classifier(nn.Linear(3, 512), 512, 10)
    module = FedLoge(frame_steps=3).module(wide, 10, 1)
    assert module.head.matrix.equal(sparse_etf(512, 10, seed=1, steps=3))
    assert (module.head.matrix == 0).sum() == 3072
    for head in (module.local_head, module.auxiliary_head):
        norms = head.weight.norm(dim=1)
        assert 0.54 < norms.min() <= norms.max() < 0.62  # about 1 / sqrt(3)
    assert not module.local_head.weight.equal(module.auxiliary_head.weight)
    official = FedLoge(frame_steps=3, frame_bias="official").module(Classifier(nn.Linear(3, 512), 512, 10), 10, 1)
    assert 0 < official.head.bias.abs().max() <= 512**-0.5
    assert official.head.matrix.equal(module.head.matrix)


def test_a_frame_is_made_once_for_each_seed_and_travels_to_workers(monkeypatch):
    algorithm, made = quick(beta=0.35), []
    monkeypatch.setattr(fedloge, "make_frame", lambda *a, **k: made.append(a) or sparse_etf(*a, **k))
    first, other = (model_of(algorithm, seed=seed).head.matrix for seed in (0, 1))
    there = loads(dumps(algorithm))
    for each in (algorithm, there):
        assert model_of(each, seed=0).head.matrix.equal(first)
        assert model_of(each, seed=1).head.matrix.equal(other)
    assert len(made) == 2
    assert not first.equal(other)
    model_of(algorithm, width=9)
    assert len(made) == 3


def test_another_run_in_the_process_finds_the_frame():
    model_of(quick(beta=0.45))
    before = fedloge.make_frame.cache_info()
    model_of(quick(beta=0.45))
    after = fedloge.make_frame.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)


def test_only_the_auxiliary_head_is_sent():
    with SerialExecutor() as executor:
        run = Made(quick(), train={"rounds": 6}).begin(executor)
        names = {entry.name for entry in run.arrays.layout.entries}
        frame = run.runner.model.module.head.matrix.clone()
        accuracy = [next_round(run).record.accuracy["overall"] for _ in range(6)][-1]
        assert run.runner.model.module.head.matrix.equal(frame)
        heads = [run.memory["client_state"].row(client)["private"].copy() for client in range(run.clients)]
        run.close()
    assert {name for name in names if "head" in name} == {"auxiliary_head.weight", "auxiliary_head.bias"}
    assert len({each.tobytes() for each in heads}) == len(heads)
    assert accuracy > 0.5  # of four classes


def test_the_local_head_goes_on_from_its_last_turn():
    rounds = rounds_of(quick(), 3, train={"participation": 0.5})
    turns = 0
    for earlier, later in pairwise(rounds):
        for client, state in earlier.client_states.items():
            same = later.client_states[client]["private"].tobytes() == state["private"].tobytes()
            assert same == (client not in later.record.chosen)
            turns += not same
    assert turns


def test_what_a_client_may_answer():
    found = {}
    for classes in ("all", "own"):
        with SerialExecutor() as executor:
            run = Made(quick(local_classes=classes), train={"lr": 1e-3}, relabel={"enabled": False}).begin(executor)
            next_round(run)
            found[classes] = evaluate_locally(run)["clients"]
            run.close()
    assert all(own >= every for own, every in zip(found["own"], found["all"], strict=True))
    assert found["own"] != found["all"]
    algorithm = quick(local_classes="own")
    context = client_context(model_of(algorithm), X, Y, batch_size=8)
    context.counts = np.array([9, 0, 5, 0])
    algorithm.client(context)
    module, x = context.model.module.eval(), torch.from_numpy(X)
    own, every = (quick(local_classes=each).local_logits(module, x, {}) for each in ("own", "all"))
    assert own[:, [0, 2]].equal(every[:, [0, 2]])
    assert (own[:, [1, 3]] < -1e9).all()


@pytest.mark.parametrize("scored", ["global", "frame"])
def test_what_is_scored_is_collected(scored):
    algorithm = quick(scored=scored)
    context = client_context(model_of(algorithm), X, Y, batch_size=len(Y))
    expected = algorithm.logits(context.model.module, torch.from_numpy(X), {}).detach().numpy()
    context.scores = np.zeros((len(Y), CLASSES), "f4")
    algorithm.client(context)
    np.testing.assert_allclose(context.scores, expected, atol=1e-6)


def test_collecting_changes_no_bit():
    found = set()
    for scores in (None, np.zeros((len(Y), CLASSES), "f4")):
        context = client_context(model_of(), X, Y, batch_size=8)
        context.scores = scores
        quick().client(context)
        found.add(context.model.layout.sha256(context.model.collect()))
    assert len(found) == 1


def test_double_precision_and_a_client_of_one_class():
    module = model_of(make=doubled, algorithm=quick(beta=0.2))
    context = client_context(module, X.astype("f8"), np.full(len(Y), 1), batch_size=8)
    context.counts = np.array([0, len(Y), 0, 0])
    quick().client(context)
    assert context.model.vector.isfinite().all()
    assert context.model.vector.dtype == torch.float64


def test_models_that_do_not_fit():
    message = "^simplex ETF: expected at least as many features as classes, got 3 features for 4 classes; use a wider"
    with pytest.raises(ArgumentError, match=message):
        model_of(width=3)
    taken = build("mlp", (COLUMNS,), CLASSES, seed=0, hidden=[8])
    taken.local_head = nn.Identity()
    with pytest.raises(
        ArgumentError, match=r"^Classifier: its attribute 'local_head' is reserved for a head; rename it$"
    ):
        quick().module(taken, CLASSES, 0)
