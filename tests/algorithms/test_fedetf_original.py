"""The original FedETF: its own step, and what is scored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.fedetf_original import FedEtfOriginal
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.errors import ArgumentError
from fedrela.models import Classifier, build
from goldens.frames_and_losses import load
from helpers.contexts import blobs, client_context
from helpers.engine_federations import CLASSES, COLUMNS, Made
from helpers.one_step import one_step
from helpers.through_engine import rounds_of

X, Y = blobs(n=24)
COUNTS = np.bincount(Y, minlength=CLASSES)


def model_of(algorithm=None, seed=0):
    return (algorithm or FedEtfOriginal()).module(
        build("mlp", (COLUMNS,), CLASSES, seed=seed, hidden=[8]), CLASSES, seed
    )


@pytest.mark.parametrize("zeros", [False, True])
def test_the_official_step(request, zeros):
    """Counts of 1 in the golden are those that were 0."""
    golden = load("fedetf_original", request.config.getoption("--goldens"))
    z, counts = golden["z"], golden["sample_per_class"].astype(np.int64)
    if zeros:
        counts = np.where(counts == 1, 0, counts)
        assert (counts == 0).any()
    module = FedEtfOriginal().module(Classifier(nn.Identity(), len(z), 10), 10, 0)
    with torch.no_grad():
        module.head.etf.copy_(torch.from_numpy(golden["proto"]))
        module.head.projection.weight.copy_(torch.from_numpy(z.T))
        module.head.projection.bias.zero_()
    moved, _ = one_step(FedEtfOriginal(), module, golden["y"].astype(int), counts)
    np.testing.assert_allclose(moved["head.projection.weight"].T, golden["grad_z"], atol=1e-6, rtol=0)
    assert moved["head.scale"] == pytest.approx(float(golden["grad_scaling"]), abs=1e-6)


def test_s_and_the_length_of_the_projection_do_not_matter_to_the_score():
    module, x = model_of(), torch.from_numpy(X)
    logits = FedEtfOriginal().logits(module, x, {})
    with torch.no_grad():
        module.head.scale.fill_(30.0)
        for parameter in module.head.projection.parameters():
            parameter.mul_(7.0)
    torch.testing.assert_close(FedEtfOriginal().logits(module, x, {}), logits, atol=1e-6, rtol=0)
    assert logits.abs().max() <= 1 + 1e-6


def trained(counts, **params):
    algorithm = FedEtfOriginal(**params)
    context = client_context(model_of(algorithm), X, Y, stored=True, batch_size=8, momentum=0.9, weight_decay=1e-3)
    context.counts = counts
    algorithm.client(context)
    return context.model


def test_with_equal_counts_the_loss_is_cross_entropy():
    hand = model_of()
    optimiser = torch.optim.SGD(hand.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    for start in (0, 8, 16):
        optimiser.zero_grad()
        x, y = torch.from_numpy(X[start : start + 8]), torch.from_numpy(Y[start : start + 8])
        cross_entropy(hand(x), y).backward()
        optimiser.step()
    expected = {name: parameter.detach().numpy() for name, parameter in hand.named_parameters()}
    for found in (trained(np.full(CLASSES, 7)), trained(COUNTS, floor=1000.0)):
        for name, array in found.read().items():
            np.testing.assert_allclose(array, expected[name], atol=1e-6, rtol=0)
    assert np.abs(trained(np.array([90, 1, 1, 1])).collect() - found.collect()).max() > 1e-3


def test_s_is_trained_and_shared_and_the_etf_is_not():
    with SerialExecutor() as executor:
        run = Made(FedEtfOriginal(scale=10.0)).begin(executor)
        names = [entry.name for entry in run.arrays.layout.entries]
        etf = run.runner.model.module.head.etf
        at = next(entry.offset for entry in run.arrays.layout.entries if entry.name == "head.scale")
        assert run.state.weights[at] == 10
        run.close()
    assert [name for name in names if name.startswith("head.")] == [
        "head.scale", "head.projection.weight", "head.projection.bias",
    ]  # fmt: skip
    gram = (etf.T @ etf).numpy()
    np.testing.assert_allclose(gram[~np.eye(CLASSES, dtype=bool)], -1 / (CLASSES - 1), atol=1e-6)
    after = rounds_of(FedEtfOriginal(scale=10.0), 4)
    assert len({each.weights[at] for each in after} | {np.float32(10)}) == 5
    assert after[-1].record.accuracy["overall"] > 0.5


def test_a_client_of_one_class_is_told_from_the_others_by_the_floor():
    one = np.zeros(CLASSES, int)
    one[2] = len(Y)
    found = []
    for floor in (0.0, 1.0):
        algorithm = FedEtfOriginal(floor=floor)
        context = client_context(model_of(algorithm), X, np.full(len(Y), 2), batch_size=8)
        context.counts, start = one, context.model.collect()
        algorithm.client(context)
        found.append(np.array_equal(context.model.collect(), start))
    assert found == [True, False]


def test_the_cosines_are_collected_and_not_s_times_them():
    context = client_context(model_of(FedEtfOriginal(scale=10.0)), X, Y, batch_size=len(Y))
    expected = FedEtfOriginal().logits(context.model.module, torch.from_numpy(X), {}).detach().numpy()
    context.scores = np.zeros((len(Y), CLASSES), "f4")
    FedEtfOriginal().client(context)
    np.testing.assert_allclose(context.scores, expected, atol=1e-6)


def test_a_projection_of_any_width_that_has_room():
    assert model_of(FedEtfOriginal(projection=64)).head.etf.shape == (64, CLASSES)
    message = r"^simplex ETF: expected at least as many features as classes, got 3 features for 4 classes; use a wider"
    with pytest.raises(ArgumentError, match=message):
        model_of(FedEtfOriginal(projection=3))
