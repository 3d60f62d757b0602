"""Samples as batches: scaled once or batch by batch, the bits are the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedrela.algorithms import local as samples_file
from fedrela.algorithms.local import Samples
from fedrela.models.inputs import Scaling
from helpers.batteries import examples

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
