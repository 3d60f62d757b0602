"""The training loop against torch's own optimisers and plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import cross_entropy
from torch.overrides import TorchFunctionMode

from fedrela.algorithms import local as samples_file
from fedrela.algorithms.local import Group, Samples, clip_norm, on_logits
from fedrela.errors import ArgumentError
from fedrela.losses import LOSSES
from fedrela.models.inputs import Scaling
from helpers.batteries import examples
from helpers.contexts import batches, bits, blobs, client_context, two_parts


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 1e-3])
def test_equals_torchs_optimiser_to_the_bit(momentum, weight_decay):
    x, y = blobs(n=45)
    context = client_context(two_parts(), x, y, epochs=3, batch_size=8, momentum=momentum, weight_decay=weight_decay)
    context.train()
    plain = two_parts()
    optimiser = torch.optim.SGD(
        plain.parameters(), lr=0.1, momentum=momentum, weight_decay=weight_decay, foreach=False
    )  # fmt: skip
    for some, labels in batches(context, x, y):
        optimiser.zero_grad()
        cross_entropy(plain(some), labels).backward()
        optimiser.step()
    assert bits(context.model.module) == bits(plain)
    assert context.steps == 3 * 6


@examples(80, 3000)
@given(st.integers(1, 300), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.integers(0, 99))
def test_clipping_is_torchs(size, scale, limit, seed):
    values = torch.from_numpy(np.random.default_rng(seed).normal(0, scale, size).astype("f4"))
    plain = nn.Parameter(torch.zeros(size))
    plain.grad = values.clone()
    torch.nn.utils.clip_grad_norm_([plain], limit)
    clip_norm(values, limit)
    torch.testing.assert_close(values, plain.grad, rtol=1e-6, atol=0)
    assert values.norm() <= limit * 1.00001


def test_a_short_gradient_is_not_touched():
    values = torch.tensor([3.0, -4.0])
    clip_norm(values, 5.1)
    assert values.tolist() == [3.0, -4.0]


def test_weight_decay_comes_after_clipping():
    x, y = blobs(n=8)
    context = client_context(two_parts(), x, y, batch_size=8, weight_decay=0.5, clip=1e-3)
    before = context.model.weights.clone()
    context.train()
    plain = two_parts()
    ((some, labels),) = batches(context, x, y)
    cross_entropy(plain(some), labels).backward()
    torch.nn.utils.clip_grad_norm_(plain.parameters(), 1e-3)
    gradient = torch.cat([p.grad.reshape(-1) for p in plain.parameters()])
    torch.testing.assert_close(context.model.weights, before - 0.1 * (gradient + 0.5 * before))
    decay = (before - context.model.weights) / 0.1
    assert decay.norm() > 100 * gradient.norm()


def test_clipping_of_the_configuration_and_its_override():
    x, y = blobs()
    found = {}
    for name, local, own in (("off", 0.0, None), ("plan", 0.01, None), ("own", 0.0, 0.01), ("none", 0.01, 0.0)):
        context = client_context(two_parts(), x, y, clip=local)
        context.train(local=None if own is None else replace(context.local, clip=own))
        found[name] = bits(context.model.module)
    assert found["plan"] == found["own"] != found["off"] == found["none"]


def test_correction_sees_gradient_and_weights_before_the_step():
    x, y = blobs(n=16)
    seen = []

    def correct(gradient, weights):
        seen.append((gradient.clone(), weights.clone()))
        gradient.add_(weights, alpha=0.5)

    context = client_context(two_parts(), x, y, batch_size=8, momentum=0.9)
    context.train(correct=correct)
    decayed = client_context(two_parts(), x, y, batch_size=8, momentum=0.9, weight_decay=0.5)
    decayed.train()
    assert len(seen) == context.steps == 2
    torch.testing.assert_close(context.model.weights, decayed.model.weights)  # it enters the momentum as decay does


def test_after_each_step_the_weights_may_be_changed():
    x, y = blobs(n=24)
    context = client_context(two_parts(), x, y, batch_size=8)
    norms = []

    def after(weights):
        weights.clamp_(-0.05, 0.05)
        norms.append(weights.abs().max().item())

    context.train(after_step=after)
    assert len(norms) == 3
    assert max(norms) == context.model.weights.abs().max() == pytest.approx(0.05)


def normed() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Linear(6, 4))


def test_one_sample_before_batch_norm_is_no_step():
    x, y = blobs(n=9)
    context = client_context(normed(), x, y, stored=True, batch_size=4, epochs=2, momentum=0.9)
    context.train()
    without = client_context(normed(), x[:8], y[:8], stored=True, batch_size=4, epochs=2, momentum=0.9)
    without.train()
    assert context.steps == without.steps == 4
    assert context.model.vector.equal(without.model.vector)


def test_one_sample_without_batch_norm_is_a_step():
    x, y = blobs(n=9)
    context = client_context(two_parts(), x, y, batch_size=4)
    context.train()
    assert context.steps == 3


@pytest.mark.parametrize(("module", "n"), [(normed, 1), (two_parts, 0)])
def test_a_client_without_a_step_changes_nothing(module, n):
    x, y = blobs(n=n)
    context = client_context(module(), x, y)
    before = context.model.vector.clone()
    context.train()
    assert context.steps == 0
    assert context.model.vector.equal(before)


def test_steps_add_up_over_stages():
    x, y = blobs(n=24)
    context = client_context(two_parts(), x, y, batch_size=8)
    context.train()
    context.train()
    assert context.steps == 6


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_of_the_configuration_sees_the_counts(name):
    x, y = blobs()
    context = client_context(two_parts(), x, y, loss=name)
    context.train()
    plain = client_context(two_parts(), x, y)
    counts = torch.from_numpy(np.bincount(y, minlength=4)).float()
    plain.train(loss=lambda batch: LOSSES[name](batch.forward(), batch.y, counts))
    assert context.model.vector.equal(plain.model.vector)


def test_logits_of_the_last_epoch_are_left_where_they_are_wanted():
    x, y = blobs(n=21)
    context = client_context(two_parts(), x, y, epochs=2, batch_size=8, momentum=0.9)
    context.scores = np.full((21, 4), np.nan, np.float32)
    seen = {}

    def loss(batch):
        value = cross_entropy(batch.forward(), batch.y)
        seen.update(zip(batch.at.tolist(), batch.scores.detach().numpy().copy(), strict=True))
        return value

    context.train(loss=loss)
    assert np.stack([seen[i] for i in range(21)]).tobytes() == context.scores.tobytes()


def test_a_loss_with_several_views_or_without_logits_leaves_none():
    x, y = blobs(n=16)
    for leave in (lambda batch: torch.cat([batch.forward()] * 2), lambda batch: None):
        context = client_context(two_parts(), x, y)
        context.scores = np.full((16, 4), np.nan, np.float32)

        def loss(batch, leave=leave):
            batch.scores = leave(batch)
            return cross_entropy(batch.module(batch.x), batch.y)

        context.train(loss=loss)
        assert np.isnan(context.scores).all()


def test_gradients_that_were_replaced_are_noticed():
    x, y = blobs()
    context = client_context(two_parts(), x, y)

    def loss(batch):
        batch.module.zero_grad(set_to_none=True)
        return cross_entropy(batch.forward(), batch.y)

    with pytest.raises(ArgumentError, match="keep them in place"):
        context.train(loss=loss)


def test_the_module_is_in_training_mode():
    x, y = blobs()
    context = client_context(normed(), x, y)
    context.model.module.eval()
    modes = set()
    default = on_logits(context.loss())

    def loss(batch):
        modes.add(batch.module.training)
        return default(batch)

    context.train(loss=loss)
    assert modes == {True}


def test_the_order_is_the_turns_own():
    x, y = blobs()
    turns = [client_context(two_parts(), x, y, batch_size=4) for _ in range(3)]
    turns[2].round = 2
    for context in turns:
        context.train()
    assert turns[0].model.vector.equal(turns[1].model.vector)
    assert not turns[0].model.vector.equal(turns[2].model.vector)


def test_groups_are_optimisers_of_their_own_to_the_bit():
    x, y = blobs(n=45)
    context = client_context(two_parts(), x, y, epochs=2, batch_size=8, momentum=0.9, weight_decay=1e-3)
    context.train(groups=[Group("1", lr=0.3, momentum=0.5, weight_decay=0.0)])
    plain = two_parts()
    optimisers = [
        torch.optim.SGD(plain[0].parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3, foreach=False),
        torch.optim.SGD(plain[1].parameters(), lr=0.3, momentum=0.5, foreach=False),
    ]
    for some, labels in batches(context, x, y):
        plain.zero_grad()
        cross_entropy(plain(some), labels).backward()
        for optimiser in optimisers:
            optimiser.step()
    assert bits(context.model.module) == bits(plain)


def test_what_a_group_leaves_open_is_as_for_the_rest():
    x, y = blobs()
    found = []
    own = {"momentum": 0.5, "weight_decay": 0.01}
    for plan, groups, instead in ((own, [], {}), ({"momentum": 0.9}, [], own), ({"momentum": 0.9}, [Group("1")], own)):
        context = client_context(two_parts(), x, y, epochs=2, batch_size=8, **plan)
        context.train(groups=groups, local=replace(context.local, **instead))
        found.append(bits(context.model.module))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["0"], "must be the last trained arrays"),
        (["1", "1"], "must be the last trained arrays"),
        (["0", "2"], "must be the last trained arrays"),
        (["3"], "no trained module '3'"),
    ],
)
def test_groups_that_cannot_be(groups, message):
    x, y = blobs()
    module = nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 5))
    with pytest.raises(ArgumentError, match=message):
        client_context(module, x, y).train(groups=[Group(part) for part in groups])


CPU = torch.device("cpu")
MODULE = nn.Identity()


def some(n=11, seed=0, **options):
    rng = np.random.default_rng(seed)
    images = torch.from_numpy(rng.integers(0, 256, (2 * n, 2, 3, 4), dtype=np.uint8))
    index = rng.permutation(2 * n)[:n]
    return Samples(images, index, rng.integers(0, 4, n), Scaling((100.0, 90.0), (50.0, 60.0)), CPU, **options)


def epoch(samples, order, size):
    return list(samples.epoch(MODULE, order, size, np.random.default_rng(0)))


@examples(40, 1000)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 99))
def test_ready_or_not_the_bits_are_the_same(n, size, seed):
    samples = some(n, seed)
    order = np.random.default_rng(seed).permutation(n)
    ready = epoch(samples, order, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples_file, "READY_BYTES", 0)
        each = epoch(samples, order, size)
    assert len(ready) == len(each) == -(-n // size)
    for one, other in zip(ready, each, strict=True):
        assert one.x.numpy().tobytes() == other.x.numpy().tobytes()
        assert one.y.tolist() == other.y.tolist() == samples.labels[one.at].tolist()
        assert one.at.tolist() == other.at.tolist()
    assert np.concatenate([batch.at for batch in ready]).tolist() == order.tolist()


def test_scaled_is_what_the_scaling_says():
    samples = some()
    raw = samples.inputs[torch.from_numpy(samples.index)]
    assert samples.raw(slice(None)).equal(raw)
    assert samples.scaled(slice(None)).equal(samples.scaling.apply(raw))


def test_a_view_is_called_for_every_batch_with_raw_samples_and_the_streams_numbers():
    seen = []

    def view(raw, rng):
        seen.append((raw.dtype, len(raw), rng.random()))
        return 255 - raw

    samples = some(n=10, view=view)
    batches = epoch(samples, np.arange(10), 4)
    assert [(dtype, n) for dtype, n, _ in seen] == [(torch.uint8, 4), (torch.uint8, 4), (torch.uint8, 2)]
    assert [number for *_, number in seen] == np.random.default_rng(0).random(3).tolist()
    inverted = samples.scaling.apply(255 - samples.raw(slice(None)))
    assert torch.cat([batch.x for batch in batches]).equal(inverted)


def test_a_view_may_make_several_of_each():
    samples = some(n=6, view=lambda raw, rng: torch.cat([raw, raw]))
    (batch,) = epoch(samples, np.arange(6), 6)
    assert (len(batch.x), len(batch.y), len(batch.at)) == (12, 6, 6)


def test_the_models_precision():
    samples = some(dtype=torch.float64)
    (batch,) = epoch(samples, np.arange(11), 11)
    assert batch.x.dtype == torch.float64
    torch.testing.assert_close(batch.x.float(), some().scaled(slice(None)))


def test_forward_leaves_the_logits():
    samples = some()
    (batch,) = epoch(samples, np.arange(11), 11)
    assert batch.scores is None
    assert batch.forward() is batch.scores


def test_nothing_gives_no_batch():
    nothing = some(n=0)
    assert len(nothing) == 0
    assert epoch(nothing, np.arange(0), 4) == []


def test_stored_samples_are_not_changed():
    samples = some()
    before = samples.inputs.clone()
    for batch in epoch(samples, np.arange(11), 4):
        batch.x.zero_()
    assert samples.inputs.equal(before)
    table = Samples(torch.ones(5, 3), np.arange(5), np.zeros(5, np.int64), Scaling(), CPU)
    for batch in epoch(table, np.arange(5), 2):
        batch.x.zero_()
    assert table.inputs.eq(1).all()


class Reads(TorchFunctionMode):
    """Notes what would make the CPU wait for a GPU, and every loss."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in {"item", "cpu", "numpy", "tolist", "__bool__", "__float__", "__int__", "nonzero"}:
            self.seen.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_nothing_is_read_inside_a_local_epoch(loss):
    x, y = blobs(n=45)
    context = client_context(two_parts(), x, y, epochs=2, batch_size=8, momentum=0.9, clip=1.0, loss=loss)
    for _ in range(2):
        context.train()  # here the passes are recorded, and compared with autograd
    context.scores = np.zeros((45, int(y.max()) + 1), np.float32)
    with Reads() as reads:
        context.train(after_step=lambda _: reads.seen.append("step"))
    assert reads.seen == ["step"] * 12 + ["cpu", "numpy"] * 6
    with Reads() as reads:
        torch.ones(1).item()
    assert reads.seen == ["item"]


def test_optimisers_are_kept_and_start_anew():
    x, y = blobs(n=45)
    results = []
    for former in (0, 1):
        context = client_context(two_parts(), x, y, batch_size=8, momentum=0.9)
        first, kept = context.model.vector.clone(), []
        for _ in range(former):
            context.train()
            kept.append(context.model.optimizers[1][0])
        context.model.load(first)
        context.train()
        assert all(optimizer is context.model.optimizers[1][0] for optimizer in kept)
        results.append(bits(context.model.module))
        context.train(local=replace(context.local, lr=0.5))
        assert context.model.optimizers[1][0].lr == 0.5
    assert results[0] == results[1]
