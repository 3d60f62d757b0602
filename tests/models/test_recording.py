"""Recorded passes: the same bits as autograd, for every algorithm; what cannot be recorded is left to autograd."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms import ALGORITHMS
from fedrela.algorithms.climb import Climb
from fedrela.algorithms.local import CROSS_ENTROPY, Batch, on_logits
from fedrela.experiment import run
from fedrela.losses import LOSSES
from fedrela.models import build, recording
from fedrela.models.flat_model import FlatModel
from helpers.contexts import client_context

SHAPE, CLASSES, N = (1, 16, 16), 4, 6
QUICK = {
    "climb": {"primal_steps": 1},
    "creff": {"retrain_epochs": 2, "match_steps": 2, "features": 8, "repeats": 2},
    "fedloge": {"frame_steps": 20},
    "ratioloss": {"probe": 6, "probe_epochs": 1},
}
# Their losses draw numbers, or refer to the algorithm or to arrays of NumPy; MOON's from round 2 on.
UNRECORDED = {"fedgrab", "fedmix", "fedyoyo", "smote"}


@pytest.fixture(autouse=True)
def _losses_of_tests(monkeypatch):
    """Losses of this file may be recorded, and at the first batch."""
    monkeypatch.setattr(recording, "PACKAGES", {*recording.PACKAGES, __name__.partition(".")[0]})
    monkeypatch.setattr(recording, "RECORDED_AT", 1)


def batch_of(model: FlatModel, seed: int = 0, n: int = N) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(n, *SHAPE, generator=draw)
    return Batch(model.module, x, torch.randint(CLASSES, (n,), generator=draw), np.arange(n))


def flat(name: str = "mlp", **options: object) -> FlatModel:
    return FlatModel(build(name, SHAPE, CLASSES, seed=1, **options).train())


def recordings(model: FlatModel) -> list[object]:
    return [found for known in model.recorder._recordings.values() for found in known.values()]


def by_autograd(model: FlatModel, loss, batch: Batch) -> bytes:
    model.zero_grad()
    loss(batch).backward()
    return model.gradient.numpy().tobytes()


class Tied(nn.Module):
    """One matrix in two places, a parameter that nothing uses, a frozen one, and dropout."""

    __module__ = "fedrela.models.made_for_a_test"

    def __init__(self) -> None:
        super().__init__()
        self.once = nn.Linear(256, 256, bias=False)
        self.head = nn.Linear(256, CLASSES)
        self.unused = nn.Parameter(torch.ones(3))
        self.head.bias.requires_grad_(False)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.once(torch.tanh(self.once(x.flatten(1)))))))


MODELS = {
    "mlp": lambda: flat("mlp", hidden=[20, 10]),
    "logistic": lambda: flat("logistic"),
    "cnn_small": lambda: flat("cnn_small"),
    "simple_cnn": lambda: flat("simple_cnn"),
    "resnet8": lambda: flat("resnet8", width=4),
    "resnet8 with group norm": lambda: flat("resnet8", width=4, norm="group"),
    "tied": lambda: FlatModel(Tied()),
    "float64": lambda: FlatModel(build("mlp", SHAPE, CLASSES, seed=1).double()),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_replay_has_the_bits_of_autograd(name):
    torch.manual_seed(0)
    model, reference = MODELS[name](), MODELS[name]()
    reference.load(model.vector)
    fill, states = model.recorder.bind(CROSS_ENTROPY), []
    for seed in range(4):
        batch, other = batch_of(model, seed), batch_of(reference, seed)
        batch.x, other.x = batch.x.to(model.vector), other.x.to(model.vector)
        torch.manual_seed(seed)
        fill(batch)
        states.append(torch.get_rng_state())
        torch.manual_seed(seed)
        assert by_autograd(reference, CROSS_ENTROPY, other) == (model.gradient + 0).numpy().tobytes()
        assert torch.equal(states[-1], torch.get_rng_state())
        assert torch.equal(batch.scores, other.scores.detach())
        assert model.vector.equal(reference.vector)  # with the averages of BatchNorm
    assert [callable(found) for found in recordings(model)] == [True]


@pytest.mark.parametrize("name", LOSSES)
def test_tensors_of_a_loss_may_differ_from_client_to_client(name):
    model, reference = flat(), flat()
    for seed, counts in enumerate(([3.0, 2.0, 1.0, 5.0], [1.0, 7.0, 2.0, 1.0], [2.0, 2.0, 2.0, 2.0])):
        given = torch.tensor(counts)
        loss = on_logits(_with(LOSSES[name], given))
        model.recorder.bind(loss)(batch_of(model, seed))
        assert by_autograd(reference, loss, batch_of(reference, seed)) == (model.gradient + 0).numpy().tobytes()
    assert [callable(found) for found in recordings(model)] == [True]


def test_climbs_weights_of_clients_share_one_recording():
    x, labels = np.random.default_rng(0).normal(size=(16, 5)).astype("f4"), np.arange(16) % 4
    context = client_context(nn.Linear(5, 4), x, labels, batch_size=8, epochs=2)
    for weight in (0.5, 1.5, 2.5):
        context.received["weight"] = np.array([weight])
        Climb(eta=4.0).client(context)
    assert [callable(found) for found in recordings(context.model)] == [True]


def _with(function, counts):
    return lambda logits, labels: function(logits, labels, counts)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_trains_the_same(name, monkeypatch, tmp_path):
    config = {
        "data": {"source": "digits", "partition": {"kind": "dirichlet", "clients": 3, "alpha": 0.5, "min_size": 10}},
        "model": {"name": "mlp", "hidden": [12]},
        "algorithm": {"name": name, **QUICK.get(name, {})},
        "train": {"rounds": 2, "batch_size": 64, "augment": name == "fedyoyo"},
        "relabel": {"start": 2, "tau": 0.1},
        "engine": {"workers": 1},
    }
    replays, compile = [], recording.Tape.compile
    monkeypatch.setattr(recording.Tape, "compile", lambda *args: replays.append(1) or compile(*args))
    results = []
    for limit in (0, recording.MOST):
        monkeypatch.setattr(recording, "MOST", limit)
        results.append(run(config, out=tmp_path / str(limit)).weights_sha256)
        assert bool(replays) == (bool(limit) and name not in UNRECORDED)
    assert results[0] == results[1]


def test_a_loss_of_its_own_numbers_has_a_recording_of_its_own():
    model, reference = flat(), flat()
    for scale in (1.0, 2.0, True):
        loss = _scaled(scale)
        model.recorder.bind(loss)(batch_of(model))
        assert by_autograd(reference, loss, batch_of(reference)) == (model.gradient + 0).numpy().tobytes()
    assert len(recordings(model)) == 3


def _scaled(scale):
    return lambda batch: scale * cross_entropy(batch.forward(), batch.y)


def _reads_a_value(batch):
    value = cross_entropy(batch.forward(), batch.y)
    return value * 2 if value.item() > 1.2 else value


def _reads_an_array(batch):
    scale = float(batch.y.numpy().mean())
    return scale * cross_entropy(batch.forward(), batch.y)


def _selects(batch):
    logits, some = batch.forward(), batch.y > 1
    return cross_entropy(logits[some], batch.y[some])


def _uses_positions(batch):
    return cross_entropy(batch.forward(), batch.y) * float(batch.at.sum() + 1)


def _makes_a_tensor(batch):
    return cross_entropy(batch.forward(), batch.y) * torch.tensor(float(len(batch.at)))


def _changes_its_input(batch):
    batch.x.view(-1).mul_(0.5)
    return cross_entropy(batch.forward(), batch.y)


@pytest.mark.parametrize(
    "loss", [_reads_a_value, _reads_an_array, _selects, _uses_positions, _makes_a_tensor, _changes_its_input]
)
def test_a_loss_that_depends_on_more_is_left_to_autograd(loss):
    model, reference = flat(), flat()
    fill = model.recorder.bind(loss)
    for seed in range(5):
        batch, other = batch_of(model, seed), batch_of(reference, seed)
        batch.at = other.at = np.arange(seed, N + seed)
        fill(batch)
        assert by_autograd(reference, loss, other) == (model.gradient + 0).numpy().tobytes()
        assert torch.equal(batch.x, other.x)
    assert recordings(model) == [None]


def test_an_error_of_the_loss_is_its_own():
    def loss(batch):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        flat().recorder.bind(loss)(batch_of(flat()))


class Own(nn.Linear):
    """A layer that counts its calls."""

    __module__ = "somewhere"
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x.flatten(1)) * self.calls


def _hooked() -> FlatModel:
    model = flat()
    seen: list[int] = []
    model.module.register_forward_hook(lambda module, given, out: out * (seen.append(1) or len(seen)))
    return model


@pytest.mark.parametrize("make", [lambda: FlatModel(Own(256, CLASSES)), _hooked], ids=["layer", "hook"])
def test_models_that_do_more_are_left_to_autograd(make):
    model = make()
    fill = model.recorder.bind(CROSS_ENTROPY)
    found = []
    for _ in range(4):
        fill(batch_of(model))
        found.append(model.gradient.clone())
    assert not any(torch.equal(one, other) for one, other in pairwise(found))
    assert not recordings(model)


def test_a_buffer_that_was_replaced_is_noticed():
    model = flat("resnet8", width=4)
    model.recorder.bind(CROSS_ENTROPY)(batch_of(model))
    norm = next(part for part in model.module.modules() if isinstance(part, nn.BatchNorm2d))
    norm.running_mean = torch.zeros_like(norm.running_mean)
    model.recorder.bind(CROSS_ENTROPY)(batch_of(model, 1))
    assert norm.running_mean.any()


def test_a_part_that_no_longer_trains_gets_no_gradient():
    model = flat()
    model.recorder.bind(CROSS_ENTROPY)(batch_of(model))
    assert model.gradient[: 256 * 200].any()
    model.module.body.requires_grad_(False)
    for seed in range(2):
        model.recorder.bind(CROSS_ENTROPY)(batch_of(model, seed))
        assert not model.gradient[: 256 * 200 + 200].any()
        assert model.gradient[256 * 200 + 200 :].any()


def test_a_replay_that_gives_other_bits_is_dropped(monkeypatch):
    def wrong(tape, gradients, targets, scores):
        return lambda x, y: targets[0].fill_(1.0) and None

    monkeypatch.setattr(recording.Tape, "compile", wrong)
    model, reference = flat(), flat()
    model.recorder.bind(CROSS_ENTROPY)(batch_of(model))
    assert by_autograd(reference, CROSS_ENTROPY, batch_of(reference)) == (model.gradient + 0).numpy().tobytes()
    assert recordings(model) == [None]


def test_only_so_many_are_recorded(monkeypatch):
    monkeypatch.setattr(recording, "MOST", 2)
    model = flat()
    fill = model.recorder.bind(CROSS_ENTROPY)
    for n in range(1, 6):
        fill(batch_of(model, n=n))
    assert [callable(found) for found in recordings(model)] == [True, True, False, False, False]
