"""One flat vector: views that stay views, exact names and shapes, digests, and nothing carried between clients."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.errors import ArgumentError
from fedrela.models import MODELS, FlatModel, build
from helpers.batteries import examples
from helpers.contexts import digest

X, Y = torch.linspace(-1, 1, 6 * 64).view(6, 1, 8, 8), torch.arange(6) % 3


def tiny(name: str = "resnet8") -> nn.Module:
    return build(name, (1, 8, 8), 3, **({"width": 2} if name == "resnet8" else {}))


def values(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().ravel() for p in model.parameters()])


def backward(model: nn.Module) -> None:
    cross_entropy(model(X), Y).backward()


@pytest.mark.parametrize("name", ["logistic", "mlp", "cnn_small", "resnet8"])
def test_flattening_changes_no_value(name):
    plain, flat = tiny(name), FlatModel(tiny(name))
    for (a, p), (b, q) in zip(plain.state_dict().items(), flat.module.state_dict().items(), strict=True):
        assert a == b
        assert torch.equal(p, q)
    assert torch.equal(plain(X), flat.module(X))
    backward(plain)
    flat.zero_grad()
    backward(flat.module)
    for p, q in zip(plain.parameters(), flat.module.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"simple_cnn", "convnet", "resnet50"}))
def test_order_and_sizes(name):
    module = build(name, (1, 8, 8), 3, **({"width": 2} if "resnet" in name else {}))
    flat = FlatModel(module)
    entries = flat.layout.entries
    assert [entry.offset for entry in entries] == np.cumsum([0, *(entry.size for entry in entries)]).tolist()[:-1]
    kinds = [entry.kind for entry in entries]
    assert kinds == sorted(kinds, key=["parameter", "frozen", "buffer"].index)
    assert [entry.name for entry in entries if entry.kind == "parameter"] == [n for n, _ in module.named_parameters()]
    assert flat.layout.trained == len(flat.weights) == len(flat.gradient) == sum(p.numel() for p in module.parameters())
    assert not any("num_batches_tracked" in entry.name for entry in entries)
    assert flat.layout == FlatModel(module).layout


def test_values_live_in_the_vector():
    flat = FlatModel(tiny())
    backward(flat.module)
    before = flat.vector.clone()
    with torch.no_grad():
        for parameter in flat.module.parameters():
            parameter.add_(1)
    assert torch.equal(flat.weights, before[: flat.layout.trained] + 1)
    running = flat.read()["body.1.running_mean"]
    backward(flat.module)  # BatchNorm writes its statistics in place
    assert not np.array_equal(flat.read()["body.1.running_mean"], running)
    flat.vector.zero_()
    assert all(not p.any() for p in flat.module.parameters())


OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd, foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "sgd, fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
}


@pytest.mark.parametrize("make", OPTIMISERS.values(), ids=OPTIMISERS)
def test_any_optimiser_keeps_the_views(make):
    flat, plain = FlatModel(tiny("mlp")), tiny("mlp")
    ours, theirs = make(flat.module.parameters()), make(plain.parameters())
    for step in range(3):
        flat.zero_grad() if step != 1 else ours.zero_grad(set_to_none=False)
        theirs.zero_grad()
        backward(flat.module)
        backward(plain)
        assert flat.attached()
        assert torch.equal(flat.gradient, torch.cat([p.grad.ravel() for p in plain.parameters()]))
        ours.step()
        theirs.step()
    assert torch.equal(flat.weights, values(plain))


@pytest.mark.parametrize("make", OPTIMISERS.values(), ids=OPTIMISERS)
def test_one_parameter_for_a_whole_model(make):
    flat, plain = FlatModel(tiny("mlp")), tiny("mlp")
    whole = nn.Parameter(flat.weights)
    whole.grad = flat.gradient
    ours, theirs = make([whole]), make(plain.parameters())
    for _ in range(3):
        flat.zero_grad()
        theirs.zero_grad()
        backward(flat.module)
        backward(plain)
        ours.step()
        theirs.step()
    torch.testing.assert_close(flat.weights, values(plain))
    assert flat.attached()


def test_gradients_add_up_and_lost_views_are_noticed():
    flat = FlatModel(tiny("mlp"))
    backward(flat.module)
    once = flat.gradient.clone()
    backward(flat.module)
    torch.testing.assert_close(flat.gradient, 2 * once)
    flat.zero_grad()
    assert not flat.gradient.any()
    assert flat.attached()
    flat.module.zero_grad(set_to_none=True)
    assert not flat.attached()


def test_read_copies_every_array():
    flat = FlatModel(tiny())
    arrays = flat.read()
    assert list(arrays) == [entry.name for entry in flat.layout.entries]
    arrays["head.bias"] += 1  # a copy: the model does not change
    assert not np.array_equal(arrays["head.bias"], flat.read()["head.bias"])


def test_load_and_collect():
    flat = FlatModel(tiny("mlp"))
    start = flat.collect()
    start.flags.writeable = False  # a mapped broadcast is read-only
    flat.vector.add_(1)
    after = flat.collect()
    np.testing.assert_array_equal(after, start + 1)
    flat.load(start)
    np.testing.assert_array_equal(flat.collect(), start)
    flat.load(torch.from_numpy(after))
    np.testing.assert_array_equal(flat.collect(), after)
    for wrong in (start[:-1], start.astype(np.float64), torch.zeros(3), start[None]):
        with pytest.raises(ArgumentError, match=r"^vector: expected float32 of shape \(\d+,\), got"):
            flat.load(wrong)


def test_nothing_is_carried_from_one_client_to_the_next():
    """With momentum=None BatchNorm averages by its integer counter; a turn must not depend on the turns before."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.BatchNorm1d(3, momentum=None))
    flat = FlatModel(model)
    start = flat.collect()
    backward(model)
    first = flat.collect()
    flat.load(start)
    backward(model)
    np.testing.assert_array_equal(flat.collect(), first)
    assert model[2].num_batches_tracked == 1


class Smoothed(nn.Linear):
    """Keeps a float buffer that is not saved, and subtracts it."""

    def __init__(self) -> None:
        super().__init__(4, 3)
        self.register_buffer("mean", torch.zeros(4), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.mean.add_(x.mean(dim=0))
        return super().forward(x - self.mean)


def test_buffers_that_are_not_saved_are_not_carried_over_either():
    flat = FlatModel(Smoothed())
    flat.module(torch.ones(2, 4))
    assert flat.module.mean.tolist() == [1.0] * 4
    flat.load(flat.collect())
    assert flat.module.mean.tolist() == [0.0] * 4


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 4), nn.Linear(4, 4)
        self.down.weight = self.up.weight
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("steps", torch.tensor(5))
        self.register_buffer("passing", torch.ones(7), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * self.down(self.up(x))


def test_tied_frozen_and_scalar_parameters():
    flat = FlatModel(Tied())
    assert [(entry.name, entry.shape, entry.kind) for entry in flat.layout.entries] == [
        ("scale", (), "parameter"),
        ("up.weight", (4, 4), "parameter"),
        ("up.bias", (4,), "parameter"),
        ("down.bias", (4,), "parameter"),
        ("frozen", (2,), "frozen"),
        ("mean", (3,), "buffer"),
    ]
    assert flat.module.down.weight is flat.module.up.weight
    plain = Tied()
    plain.load_state_dict(flat.module.state_dict())
    for model in (flat.module, plain):
        model(torch.ones(2, 4)).sum().backward()
    assert flat.attached()
    torch.testing.assert_close(flat.module.up.weight.grad, plain.up.weight.grad)
    assert flat.module.frozen.grad is None
    assert len(flat.gradient) == 1 + 16 + 4 + 4


def test_digest_is_of_names_shapes_and_little_endian_values():
    flat = FlatModel(nn.Linear(2, 1))
    hasher = hashlib.sha256()
    for name, shape, array in (("weight", [1, 2], flat.module.weight), ("bias", [1], flat.module.bias)):
        hasher.update(f"{name} {shape} float32\n".encode())
        hasher.update(array.detach().numpy().astype("<f4").tobytes())
    assert digest(flat) == hasher.hexdigest()
    before = digest(flat)
    flat.vector[0] = torch.nextafter(flat.vector[0], torch.tensor(9.0))
    assert digest(flat) != before
    renamed = FlatModel(nn.Sequential(nn.Linear(2, 1)))
    renamed.load(flat.vector)
    assert digest(renamed) != digest(flat)


def test_double_precision():
    flat = FlatModel(build("resnet8", (1, 8, 8), 3, width=2, dtype=torch.float64))
    assert flat.layout.dtype == "float64"
    cross_entropy(flat.module(X.double()), Y).backward()
    assert flat.gradient.dtype == torch.float64
    assert flat.gradient.abs().sum() > 0
    with pytest.raises(ArgumentError, match=r"^vector: expected float64 of shape"):
        flat.load(np.zeros(flat.layout.size, np.float32))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (lambda: nn.Flatten(), "^Flatten: has no parameter to train$"),
        (lambda: nn.LazyLinear(3), "^LazyLinear: weight has no shape yet; pass one batch through the model first$"),
        (lambda: nn.Linear(2, 2).half(), r"^Linear: weight: expected torch.float32 on cpu, got torch.float16 on cpu$"),
        (
            lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()),
            r"^Sequential: 1.weight: expected torch.float32 on cpu, got torch.float64 on cpu$",
        ),
    ],
)
def test_modules_that_do_not_fit(module, message):
    with pytest.raises(ArgumentError, match=message):
        FlatModel(module())


@given(st.lists(st.integers(1, 9), max_size=3), st.integers(0, 99))
@examples(25, 300)
def test_split_gives_views_that_cover_the_vector(hidden, seed):
    flat = FlatModel(build("mlp", (3,), 2, hidden=hidden, seed=seed))
    vector = flat.collect()
    arrays = flat.layout.split(vector)
    assert all(np.shares_memory(array, vector) for array in arrays.values())
    np.testing.assert_array_equal(np.concatenate([array.ravel() for array in arrays.values()]), vector)
