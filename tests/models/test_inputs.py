"""Scaling: exact measurement in bounded memory, the same bits in any batch, a record that JSON keeps."""

from __future__ import annotations

import pickle
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedrela.errors import ArgumentError, DataError
from fedrela.models import inputs
from fedrela.models.inputs import Scaling
from helpers.batteries import examples

SHAPES = st.tuples(st.integers(1, 12), st.integers(1, 4), st.integers(1, 9), st.integers(1, 9))


def pixels(shape, seed=0, top=256):
    return np.random.default_rng(seed).integers(0, top, shape, dtype=np.uint8)


def measured(images):
    """Mean and variance of each channel as fractions, one pixel after the other."""
    found = []
    for channel in range(images.shape[1]):
        values = [int(v) for v in images[:, channel].ravel()]
        mean = Fraction(sum(values), len(values))
        found.append((mean, Fraction(sum((v - mean) ** 2 for v in values), len(values))))
    return found


@given(SHAPES, st.integers(0, 99), st.sampled_from([1, 2, 17, 256]), st.integers(1, 200))
@examples(60, 2000)
def test_fit_is_exact_whatever_the_chunk(shape, seed, top, chunk):
    images = pixels(shape, seed, top)
    with mock.patch.object(inputs, "CHUNK", chunk):
        scaling = Scaling.fit(images)
    assert scaling == Scaling.fit(images)
    for (mean, variance), m, s in zip(measured(images), scaling.mean, scaling.std, strict=True):
        assert m == float(mean)
        assert s == (np.sqrt(float(variance)) if variance else 1.0)


@given(SHAPES, st.integers(0, 99), st.data())
@examples(40, 1000)
def test_fit_of_an_index_is_the_fit_of_those_samples(shape, seed, data):
    images = pixels(shape, seed)
    index = data.draw(st.lists(st.integers(0, shape[0] - 1), min_size=1, max_size=20))
    with mock.patch.object(inputs, "CHUNK", 50):
        assert Scaling.fit(images, index) == Scaling.fit(images[index])


class Recorded:
    """A large stored array that says which samples are read, and how many at once."""

    ndim, dtype, shape = 4, np.dtype(np.uint8), (1000, 2, 5, 5)

    def __init__(self):
        self.images, self.read = pixels(self.shape), []

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        self.read.append(np.arange(self.shape[0])[key])
        return self.images[key]


@pytest.mark.parametrize("index", [None, np.random.default_rng(1).permutation(1000)[:400]])
@pytest.mark.parametrize(("chunk", "images"), [(50 * 30, 30), (50 * 31 - 1, 30), (7, 1)])
def test_every_sample_is_read_once_and_few_at_a_time(index, chunk, images, monkeypatch):
    stored = Recorded()
    monkeypatch.setattr(inputs, "CHUNK", chunk)
    Scaling.fit(stored, index)
    assert max(map(len, stored.read)) == images
    assert np.array_equal(np.concatenate(stored.read), np.arange(1000) if index is None else np.sort(index))


def test_a_memory_mapped_file_is_measured(tmp_path):
    images = pixels((50, 3, 6, 6))
    np.save(tmp_path / "x.npy", images)
    assert Scaling.fit(np.load(tmp_path / "x.npy", mmap_mode="r")) == Scaling.fit(images)


def test_channels_last_seen_as_channels_first_is_measured():
    images = pixels((20, 6, 5, 3)).transpose(0, 3, 1, 2)
    assert Scaling.fit(images) == Scaling.fit(np.ascontiguousarray(images))


def test_sums_beyond_float_precision_stay_exact():
    images = np.full((2000, 1, 64, 64), 255, np.uint8)
    images[0, 0, 0, 0] = 254
    count = images.size
    scaling = Scaling.fit(images)
    assert scaling.mean == ((255 * count - 1) / count,)
    assert scaling.std == (np.sqrt((count - 1) / count**2),)


def test_a_channel_of_one_value_is_only_centred():
    images = pixels((5, 2, 4, 4))
    images[:, 1] = 7
    scaling = Scaling.fit(images)
    assert (scaling.mean[1], scaling.std[1]) == (7.0, 1.0)
    assert not scaling.apply(torch.from_numpy(images))[:, 1].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(shape=SHAPES, seed=st.integers(0, 99))
@examples(40, 1000)
def test_apply_is_the_equation_and_keeps_its_input(dtype, shape, seed):
    images = pixels(shape, seed)
    scaling = Scaling.fit(images)
    batch = torch.from_numpy(images.copy())
    result = scaling.apply(batch, dtype)
    kind = np.float32 if dtype == torch.float32 else np.float64
    mean, std = (np.array(values, kind)[:, None, None] for values in (scaling.mean, scaling.std))
    assert result.dtype == dtype
    assert np.array_equal(result.numpy(), (images.astype(kind) - mean) / std)
    assert np.array_equal(batch.numpy(), images)


@given(SHAPES, st.integers(0, 99))
@examples(40, 1000)
def test_a_sample_has_the_same_bits_in_any_batch(shape, seed):
    images = pixels(shape, seed)
    scaling, batch = Scaling.fit(images), torch.from_numpy(images)
    together = scaling.apply(batch)
    assert torch.equal(together, torch.cat([scaling.apply(batch[i : i + 1]) for i in range(len(batch))]))
    assert torch.equal(together.flip(0), scaling.apply(batch.flip(0)))
    assert torch.equal(together, torch.stack([scaling.apply(image) for image in batch]))
    assert torch.equal(together, scaling.apply(batch.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)))


def test_scaled_training_images_have_mean_0_and_spread_1():
    images = pixels((300, 3, 8, 8), top=17)
    scaled = Scaling.fit(images).apply(torch.from_numpy(images), torch.float64)
    assert torch.allclose(scaled.mean((0, 2, 3)), torch.zeros(3, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(scaled.std((0, 2, 3), correction=0), torch.ones(3, dtype=torch.float64), atol=1e-12)


def test_float_images_scale_like_bytes_and_stay_unchanged():
    images = pixels((4, 3, 5, 5))
    scaling, batch = Scaling.fit(images), torch.from_numpy(images).float()
    before = batch.clone()
    assert torch.equal(scaling.apply(batch), scaling.apply(torch.from_numpy(images)))
    assert torch.equal(batch, before)


def test_gradients_pass_even_if_the_first_use_was_without_them():
    scaling = Scaling((3.0,), (0.1234,))
    with torch.inference_mode():
        scaling.apply(torch.zeros(1, 1, 2, 2, dtype=torch.uint8))
    batch = torch.ones(1, 1, 2, 2, requires_grad=True)
    scaling.apply(batch).sum().backward()
    assert torch.allclose(batch.grad, torch.full((1, 1, 2, 2), 1 / 0.1234))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_tables_stay_as_they_are(kind):
    table = np.random.default_rng(0).normal(size=(9, 4)).astype(kind)
    scaling = Scaling.fit(table, [1, 2])
    assert scaling == Scaling()
    result = scaling.apply(torch.from_numpy(table))
    assert result.dtype == torch.float32
    assert np.array_equal(result.numpy(), table.astype(np.float32))


def test_it_works_on_the_device_of_the_batch():
    result = Scaling((1.0, 2.0), (3.0, 4.0)).apply(torch.empty(5, 2, 3, 3, dtype=torch.uint8, device="meta"))
    assert (result.device.type, result.dtype, tuple(result.shape)) == ("meta", torch.float32, (5, 2, 3, 3))


@given(SHAPES, st.integers(0, 99))
@examples(20, 500)
def test_pickle_keeps_every_bit(shape, seed):
    scaling = Scaling.fit(pixels(shape, seed))
    assert pickle.loads(pickle.dumps(scaling)) == scaling


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        ((1.0,), ()),
        ((1.0,), (1.0, 2.0)),
        ((1.0,), (0.0,)),
        ((1.0,), (-1.0,)),
        ((float("nan"),), (1.0,)),
        ((1.0,), (float("inf"),)),
    ],
)
def test_wrong_means_and_stds(mean, std):
    with pytest.raises(ArgumentError, match=r"^scaling: [^\n]*$"):
        Scaling(mean, std)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros(3, np.float32),
        np.zeros((3, 4), np.uint8),
        np.zeros((3, 2, 2), np.uint8),
        np.zeros((0, 1, 2, 2), np.uint8),
        np.zeros((3, 1, 0, 2), np.uint8),
        np.zeros((3, 0, 2, 2), np.uint8),
        np.zeros((0, 3, 5), np.float32),
        np.zeros((3, 0, 5), np.float32),
    ],
)
def test_what_cannot_be_measured(x):
    with pytest.raises(DataError, match=r"^scaling: "):
        Scaling.fit(x)


@pytest.mark.parametrize("index", [[-1], [0, 3], [0.5], [True]])
def test_wrong_index(index):
    with pytest.raises(ArgumentError, match=r"^index: expected integers from 0 to 2"):
        Scaling.fit(np.zeros((3, 1, 2, 2), np.uint8), index)


def test_an_empty_index_has_nothing_to_measure():
    with pytest.raises(DataError, match="at least one pixel"):
        Scaling.fit(np.zeros((3, 1, 2, 2), np.uint8), [])
    with pytest.raises(DataError, match="at least one value"):
        Scaling.fit(np.zeros((3, 1, 2, 2), np.float32), [])


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (2, 1), (4,)])
def test_a_batch_of_other_channels(shape):
    with pytest.raises(ArgumentError, match=r"^scaling: expected images .* of 1 channels"):
        Scaling((1.0,), (1.0,)).apply(torch.zeros(shape, dtype=torch.uint8))
