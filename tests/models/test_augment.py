"""Operations on raw images, against literal loops and against Pillow."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps

from fedrela.errors import ArgumentError
from fedrela.models import augment
from fedrela.models.augment import affine, crop_and_flip, cropped, usual_pad
from helpers.batteries import count, examples

SHAPES = st.tuples(st.integers(0, 6), st.sampled_from([1, 2, 3]), st.integers(1, 12), st.integers(1, 12))
COLOURS = st.tuples(st.integers(1, 4), st.sampled_from([1, 3]), st.integers(1, 20), st.integers(1, 20))


def pixels(shape, seed=0, low=0, high=255):
    return torch.from_numpy(np.random.default_rng(seed).integers(low, high + 1, shape, dtype=np.uint8))


def picture(image):
    """A sample as Pillow has it."""
    return Image.fromarray(image[0].numpy() if len(image) == 1 else image.permute(1, 2, 0).numpy())


def sample(picture):
    """A picture of Pillow's as a sample."""
    values = np.array(picture)
    return torch.from_numpy(values[None] if values.ndim == 2 else values.transpose(2, 0, 1).copy())


def literal_crop(batch, draws, pad, flip):
    result = np.zeros(tuple(batch.shape), np.asarray(batch).dtype)
    images, channels, height, width = batch.shape
    for i in range(images):
        top, left = (int(u * (2 * pad + 1)) - pad for u in draws[i, :2])
        for c in range(channels):
            for y in range(height):
                for x in range(width):
                    to = width - 1 - x if flip and draws[i, 2] < 0.5 else x
                    if 0 <= y + top < height and 0 <= x + left < width:
                        result[i, c, y, to] = batch[i, c, y + top, x + left]
    return torch.from_numpy(result)


@given(SHAPES, st.integers(0, 99), st.sampled_from([None, 0, 1, 3, 15]), st.booleans())
@examples(60, 2000)
def test_crop_and_flip_is_the_literal_loop(shape, seed, pad, flip):
    batch = pixels(shape, seed, low=1)
    before = batch.clone()
    result = crop_and_flip(batch, np.random.default_rng(seed), pad=pad, flip=flip)
    draws = np.random.default_rng(seed).random((shape[0], 3))
    assert torch.equal(result, literal_crop(batch, draws, usual_pad(*shape[2:]) if pad is None else pad, flip))
    assert torch.equal(batch, before)
    assert result.dtype == torch.uint8


@pytest.mark.parametrize(("height", "width", "pad"), [(1, 1, 1), (8, 8, 1), (28, 28, 3), (32, 32, 4), (32, 17, 2)])
def test_the_usual_pad_is_an_eighth_of_the_shorter_side(height, width, pad):
    assert usual_pad(height, width) == usual_pad(width, height) == pad


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_crop_keeps_the_type(dtype):
    batch, draws = pixels((5, 3, 6, 7)), np.random.default_rng(0).random((5, 3))
    result = cropped(batch.to(dtype), draws)
    assert result.dtype == dtype
    assert torch.equal(result, cropped(batch, draws).to(dtype))


def test_a_view_that_is_not_contiguous_is_cropped_like_its_copy():
    batch, draws = pixels((5, 8, 9, 3)).permute(0, 3, 1, 2), np.random.default_rng(0).random((5, 3))
    assert torch.equal(cropped(batch, draws), cropped(batch.contiguous(), draws))


def test_a_sample_s_crop_depends_on_its_own_draws_only():
    batch, other = pixels((8, 3, 16, 16), 1), pixels((8, 3, 16, 16), 2)
    other[3] = batch[3]
    results = [crop_and_flip(b, np.random.default_rng(5)) for b in (batch, other, batch[:4])]
    assert torch.equal(results[0][3], results[1][3])
    assert torch.equal(results[0][:4], results[2])


def test_flip_does_not_change_where_the_crop_is():
    batch = pixels((40, 1, 8, 8))
    plain, turned = (crop_and_flip(batch, np.random.default_rng(0), flip=flip) for flip in (False, True))
    kept = [torch.equal(a, b) for a, b in zip(plain, turned, strict=True)]
    assert all(same or torch.equal(a.flip(2), b) for same, a, b in zip(kept, plain, turned, strict=True))
    assert 8 < sum(kept) < 32


def test_every_shift_and_both_mirrors_are_as_frequent():
    image = torch.zeros(1, 1, 9, 9, dtype=torch.uint8)
    image[..., 4, 4], image[..., 4, 5] = 1, 2
    drawn = 18 * count(400, 4000)
    result = crop_and_flip(image.expand(drawn, -1, -1, -1), np.random.default_rng(0), pad=1)
    ones, twos = (np.argwhere(result[:, 0].numpy() == value)[:, 1:] for value in (1, 2))
    places = np.column_stack([ones, twos[:, 1] - ones[:, 1]])
    _, times = np.unique(places, axis=0, return_counts=True)
    expected = drawn / 18
    assert len(times) == 18
    assert ((times - expected) ** 2 / expected).sum() < 41  # chi-square with 17 degrees of freedom, one in a thousand


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 4), (2, 1, 0, 4)])
def test_crop_is_for_images_only(shape):
    with pytest.raises(ArgumentError, match=r"^crop_and_flip: expected images "):
        crop_and_flip(torch.zeros(shape), np.random.default_rng(0))


@pytest.mark.parametrize("pad", [-1, 1.5, "4"])
def test_a_wrong_pad(pad):
    with pytest.raises(ArgumentError, match=r"^pad: "):
        crop_and_flip(pixels((2, 1, 4, 4)), np.random.default_rng(0), pad=pad)


@given(SHAPES, st.integers(0, 99), st.integers(0, 255))
@examples(60, 2000)
def test_affine_is_the_literal_loop(shape, seed, fill):
    batch, rng = pixels(shape, seed), np.random.default_rng(seed)
    matrices = rng.integers(-(2**18), 2**18, (shape[0], 6)) / 2**16
    expected = torch.full(shape, fill, dtype=torch.uint8)
    for i, (a, b, c, d, e, f) in enumerate(matrices):
        for y in range(shape[2]):
            for x in range(shape[3]):
                column = np.floor(a * (x + 0.5) + b * (y + 0.5) + c + 2**-17)
                row = np.floor(d * (x + 0.5) + e * (y + 0.5) + f + 2**-17)
                if 0 <= row < shape[2] and 0 <= column < shape[3]:
                    expected[i, :, y, x] = batch[i, :, int(row), int(column)]
    assert torch.equal(affine(batch, matrices, fill), expected)


@given(COLOURS, st.integers(0, 99))
@examples(40, 1000)
def test_moves_are_pillow_s(shape, seed):
    batch, rng = pixels(shape, seed), np.random.default_rng(seed)
    degrees, matrices = rng.uniform(-180, 180, shape[0]), rng.uniform(-1.5, 1.5, (shape[0], 6))
    turned, moved = augment.rotate(batch, degrees, 9), affine(batch, matrices)
    for i in range(shape[0]):
        image, nine = picture(batch[i]), 9 if shape[1] == 1 else (9, 9, 9)
        assert torch.equal(turned[i], sample(image.rotate(degrees[i], fillcolor=nine)))
        transformed = image.transform(image.size, Image.Transform.AFFINE, matrices[i].tolist())
        assert torch.equal(moved[i], sample(transformed))


LEVELS = {
    "brightness": (0.0, 2.0, lambda image, v: ImageEnhance.Brightness(image).enhance(v)),
    "contrast": (0.0, 2.0, lambda image, v: ImageEnhance.Contrast(image).enhance(v)),
    "colour": (0.0, 2.0, lambda image, v: ImageEnhance.Color(image).enhance(v)),
    "sharpness": (0.0, 2.0, lambda image, v: ImageEnhance.Sharpness(image).enhance(v)),
    "solarize": (0.0, 256.0, ImageOps.solarize),
    "posterize": (1.0, 8.0, lambda image, v: ImageOps.posterize(image, round(v))),
    "autocontrast": (0, 0, lambda image, _: ImageOps.autocontrast(image)),
    "equalize": (0, 0, lambda image, _: ImageOps.equalize(image)),
    "invert": (0, 0, lambda image, _: ImageOps.invert(image)),
}


@pytest.mark.parametrize("name", LEVELS)
@given(shape=COLOURS, seed=st.integers(0, 99), ends=st.tuples(st.integers(0, 255), st.integers(0, 255)))
@examples(25, 600)
def test_grey_levels_are_pillow_s_to_within_one(name, shape, seed, ends):
    low, high, theirs = LEVELS[name]
    batch = pixels(shape, seed, min(ends), max(ends))
    amounts = np.random.default_rng(seed).uniform(low, high, shape[0])
    before, operation = batch.clone(), getattr(augment, name)
    result = operation(batch, amounts) if high else operation(batch)
    expected = torch.stack([sample(theirs(picture(batch[i]), amounts[i])) for i in range(shape[0])])
    assert result.dtype == torch.uint8
    assert (result.int() - expected.int()).abs().max() <= (1 if name == "autocontrast" else 0)
    assert torch.equal(batch, before)


def test_autocontrast_is_exact_where_pillow_rounds():
    batch = torch.arange(0, 250, dtype=torch.uint8).view(1, 1, 10, 25)
    assert augment.autocontrast(batch).flatten().tolist() == [255 * v // 249 for v in range(250)]


@pytest.mark.parametrize("name", LEVELS)
def test_a_sample_s_grey_levels_depend_on_itself_only(name):
    batch, other = pixels((6, 3, 9, 9), 1), pixels((6, 3, 9, 9), 2)
    other[2] = batch[2]
    amounts, changed = np.linspace(0.3, 1.9, 6), np.linspace(1.9, 0.3, 6)
    changed[2] = amounts[2]
    rows = [(amounts,), (changed,), (amounts[2:3],)] if LEVELS[name][1] else [()] * 3
    operation = getattr(augment, name)
    results = [operation(b, *r) for b, r in zip((batch, other, batch[2:3]), rows, strict=True)]
    assert torch.equal(results[0][2], results[1][2])
    assert torch.equal(results[0][2], results[2][0])
