"""SGD on one vector equals torch's SGD over separate parameters, bit for bit."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from fedrela.errors import ArgumentError
from fedrela.models import FlatModel, build
from fedrela.models.sgd import LANES, Sgd
from helpers.batteries import examples

SETTINGS = [(0.0, 0.0), (0.0, 1e-3), (0.9, 0.0), (0.9, 1e-5), (0.5, 0.1)]


def vectors(sizes: list[int], steps: int, dtype: torch.dtype, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(steps + 1, sum(sizes), generator=generator, dtype=dtype)
    return drawn[0], drawn[1:]


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=6),
    st.sampled_from(SETTINGS),
    st.sampled_from([torch.float32, torch.float64]),
    st.integers(0, 50),
)
@examples(60, 3000)
def test_equals_torch_over_separate_parameters(sizes, setting, dtype, seed):
    momentum, weight_decay = setting
    start, gradients = vectors(sizes, 5, dtype, seed)
    parts = [torch.nn.Parameter(part.clone()) for part in start.split(sizes)]
    theirs = torch.optim.SGD(parts, lr=0.05, momentum=momentum, weight_decay=weight_decay, foreach=False)
    weights, gradient = start.clone(), torch.empty_like(start)
    ours = Sgd(weights, gradient, lr=0.05, momentum=momentum, weight_decay=weight_decay)
    for step, values in enumerate(gradients):
        gradient.copy_(values)
        for part, own in zip(parts, values.split(sizes), strict=True):
            part.grad = own.clone()
        ours.lr = theirs.param_groups[0]["lr"] = 0.05 / (1 + step)
        ours.step()
        theirs.step()
        assert torch.equal(gradient, values)
    assert torch.equal(weights, torch.cat([part.detach() for part in parts]))


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("length", [1, LANES - 1, LANES, LANES + 1, 10 * LANES + 7])
def test_lengths_around_the_kernel_s_lanes(length, is_padded):
    start, gradients = vectors([length], 8, torch.float32, seed=length)
    part = torch.nn.Parameter(start.clone())
    theirs = torch.optim.SGD([part], lr=0.1, momentum=0.9, weight_decay=1e-2, foreach=False)
    padded = torch.zeros(2, -(-length // LANES) * LANES)
    weights, gradient = padded[0, :length].copy_(start), padded[1, :length]
    ours = Sgd(weights, gradient, lr=0.1, momentum=0.9, weight_decay=1e-2, padded=tuple(padded) if is_padded else None)
    for values in gradients:
        gradient.copy_(values)
        part.grad = values.clone()
        ours.step()
        theirs.step()
    assert torch.equal(weights, part.detach())
    assert not padded[:, length:].any()


@pytest.mark.parametrize(("momentum", "weight_decay"), SETTINGS)
def test_a_model_trains_to_the_same_bits(momentum, weight_decay):
    x, y = torch.linspace(-2, 2, 16 * 64).view(16, 1, 8, 8), torch.arange(16) % 3
    flat, plain = (build("resnet8", (1, 8, 8), 3, width=4) for _ in range(2))
    flat = FlatModel(flat)
    ours = Sgd(flat.weights, flat.gradient, lr=0.1, momentum=momentum, weight_decay=weight_decay)
    theirs = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=momentum, weight_decay=weight_decay, foreach=False)
    for _ in range(4):
        flat.zero_grad()
        theirs.zero_grad()
        cross_entropy(flat.module(x), y).backward()
        cross_entropy(plain(x), y).backward()
        ours.step()
        theirs.step()
    for (name, a), b in zip(flat.module.state_dict().items(), plain.state_dict().values(), strict=True):
        assert torch.equal(a, b), name


def test_frozen_parameters_and_buffers_do_not_move():
    model = build("resnet8", (1, 8, 8), 3, width=2)
    for parameter in model.head.parameters():
        parameter.requires_grad_(False)
    flat = FlatModel(model)
    before = flat.read()
    flat.gradient.fill_(1.0)
    Sgd(flat.weights, flat.gradient, lr=0.1, momentum=0.9, weight_decay=0.5).step()
    after = flat.read()
    for entry in flat.layout.entries:
        assert (before[entry.name] == after[entry.name]).all() == (entry.kind != "parameter"), entry.name


@pytest.mark.parametrize("wrong", [{"lr": -1}, {"lr": 0.1, "momentum": 1.0}, {"lr": 0.1, "weight_decay": float("inf")}])
def test_wrong_arguments(wrong):
    with pytest.raises(ArgumentError, match=f"^{list(wrong)[-1]}: expected a number >= 0"):
        Sgd(torch.zeros(2), torch.zeros(2), **wrong)
