"""The data-level peers: oversampling, re-weighting and SMOTE at every client."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Sizes
from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.oversample import Oversample
from fedrela.algorithms.reweight import Reweight, class_weights
from fedrela.algorithms.smote import Smote
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from fedrela.errors import ArgumentError
from fedrela.models import Classifier
from helpers.contexts import client_context
from helpers.engine_federations import Made

LABELS = np.array([0] * 12 + [1] * 5 + [3])


def turn_of(labels=LABELS, **local):
    x = np.random.default_rng(0).normal(size=(len(labels), 5)).astype("f4")
    torch.manual_seed(0)
    return client_context(Classifier(nn.Linear(5, 6), 6, 4), x, labels, **local)


@pytest.mark.parametrize(("ratio", "wanted"), [(1.0, 12), (0.5, 6)])
@pytest.mark.parametrize("kind", [Oversample, Smote])
def test_rare_classes_are_filled_up_and_absent_ones_stay_absent(kind, ratio, wanted):
    samples = kind(ratio=ratio).prepare(turn_of())
    assert np.bincount(samples.labels, minlength=4).tolist() == [12, wanted, 0, wanted]


def test_oversampling_repeats_real_samples_of_the_class():
    context = turn_of()
    samples = Oversample().prepare(context)
    assert (LABELS[samples.index] == samples.labels).all()
    assert samples.index[:18].tolist() == list(range(18))


def test_smote_makes_rows_between_two_of_the_class_and_repeats_a_lone_one():
    context = turn_of()
    real = context.samples.scaled(slice(None)).numpy()
    samples = Smote(neighbours=2).prepare(context)
    made = samples.inputs.numpy()
    assert np.array_equal(made[:18], real)
    mine = real[LABELS == 1]
    for row in made[18:25]:
        pairs = ((a, b) for a in mine for b in mine if not np.array_equal(a, b))
        assert any(np.linalg.norm(row - a) + np.linalg.norm(row - b) - np.linalg.norm(a - b) < 1e-5 for a, b in pairs)
    assert all(np.array_equal(row, real[-1]) for row in made[25:])


def test_smote_is_repeatable_and_other_in_another_round():
    first, again, later = turn_of(), turn_of(), turn_of()
    later.round = 2
    one, two, three = (Smote().prepare(context).inputs.numpy() for context in (first, again, later))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, three)


def test_smote_in_the_space_of_inputs_refuses_augmentation():
    context = turn_of()
    context.samples.view = lambda images, rng: images
    with pytest.raises(ArgumentError, match="synthetic images cannot be augmented"):
        Smote(space="inputs").prepare(context)


def test_smote_on_features_refuses_a_model_without_them_before_training():
    sizes = {"shared": 10, "trained": 10, "classes": 2, "features": 0, "clients": 3, "largest": 50}
    images, table = (Sizes(**sizes, inputs=inputs) for inputs in ((3, 8, 8), (4,)))
    for options, wrong in (({}, images), ({"space": "features"}, table)):
        with pytest.raises(ArgumentError, match=r"^smote: needs a model's features apart from its head"):
            Smote(**options).start(nn.Linear(4, 2), wrong, 1)
    assert Smote().start(nn.Linear(4, 2), table, 1) == {}


def test_smote_on_features_trains_the_head_on_made_ones_too():
    plain, made = turn_of(), turn_of()
    FedAvg().client(plain)
    Smote(space="features").client(made)
    assert not np.array_equal(plain.model.collect(), made.model.collect())
    assert np.isfinite(made.model.collect()).all()


def test_smote_on_features_trains_the_body_as_fedavg_and_the_head_on_the_mean_of_all():
    labels = np.array([0] * 60 + [1] * 3 + [3])  # about twice as many synthetic features as real ones
    plain, made = turn_of(labels, batch_size=64, lr=1.0), turn_of(labels, batch_size=64, lr=1.0)
    smote = Smote(space="features")
    features, before = made.features(), made.model.module.head.weight.detach().clone()
    synthetic, synthetic_labels = smote._synthetic_features(made)
    FedAvg().client(plain)
    smote.client(made)
    bodies = [context.model.module.body.weight for context in (plain, made)]
    assert torch.allclose(*bodies, atol=1e-6)
    rng = made.stream("made features")
    number = int(rng.poisson(len(synthetic) / len(labels) * len(labels)))
    drawn = torch.from_numpy(rng.integers(len(synthetic), size=number))
    head = turn_of(labels).model.module.head
    with torch.enable_grad():
        logits = head(torch.cat([features, synthetic[drawn]]))
        mean = cross_entropy(logits, torch.cat([torch.from_numpy(labels), synthetic_labels[drawn]]))
        (gradient,) = torch.autograd.grad(mean, [head.weight])
    assert torch.allclose(before - made.model.module.head.weight.detach(), gradient, atol=1e-6)


def test_smote_on_features_uses_the_loss_of_the_run():
    trained = {}
    for loss in ("cross_entropy", "balanced_softmax"):
        for algorithm in (FedAvg(), Smote(space="features")):
            context = turn_of(loss=loss, batch_size=18, lr=0.1)
            algorithm.client(context)
            trained[algorithm.name, loss] = context.model.collect().copy()
    made = [trained["smote", loss] - trained["fedavg", loss] for loss in ("cross_entropy", "balanced_softmax")]
    assert not np.allclose(*made, atol=1e-6), "what made features add depends on the loss, too"


def test_weights_of_classes():
    assert class_weights(torch.tensor([6.0, 2.0, 0.0])).tolist() == pytest.approx([8 / 12, 2.0, 0.0])
    assert class_weights(torch.tensor([6.0, 2.0, 0.0]), 0.0).tolist() == [1.0, 1.0, 0.0]


def test_the_weighted_loss_is_that_of_torch():
    context = turn_of(batch_size=18, lr=1.0)
    module, x, y = context.model.module, context.samples.scaled(slice(None)), torch.from_numpy(LABELS)
    weights = class_weights(torch.from_numpy(context.counts).float())
    (expected,) = torch.autograd.grad(cross_entropy(module(x), y, weight=weights), [module.head.weight])
    before = module.head.weight.detach().clone()
    Reweight().client(context)
    assert torch.allclose(before - module.head.weight.detach(), expected, atol=1e-5)


@pytest.mark.parametrize("algorithm", [Oversample(), Smote(), Reweight()], ids=lambda a: a.name)
def test_the_number_of_samples_stays_the_real_one(algorithm):
    run = Made(algorithm=algorithm).begin(SerialExecutor())
    record = next_round(run).record
    assert record.samples == [len(shard.train) for shard in run.problem.shards]
    run.close()


@pytest.mark.parametrize("algorithm", [Oversample(), Smote(), Reweight(power=0.0)], ids=lambda a: a.name)
def test_a_balanced_client_learns_as_with_fedavg(algorithm):
    labels = np.repeat(np.arange(4), 5)
    plain, own = turn_of(labels), turn_of(labels)
    FedAvg().client(plain)
    own.samples = algorithm.prepare(own)
    algorithm.client(own)
    assert own.model.collect() == pytest.approx(plain.model.collect(), abs=1e-6)
