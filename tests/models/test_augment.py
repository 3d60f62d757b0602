"""Augmentation: crops, moves and grey levels against Pillow, weak and strong views."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps

from fedrela.errors import ArgumentError
from fedrela.models import augment
from fedrela.models.augment import (
    OPERATIONS,
    POLICY,
    affine,
    autoaugment,
    crop_and_flip,
    cropped,
    cutout,
    strong,
    usual_pad,
    weak,
)
from helpers.batteries import count, examples

SHAPES = st.tuples(st.integers(0, 6), st.sampled_from([1, 2, 3]), st.integers(1, 12), st.integers(1, 12))
VIEWED = st.tuples(st.integers(0, 12), st.sampled_from([1, 3]), st.integers(1, 33), st.integers(1, 33))
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


def crop_of(image, draws):
    """A picture cropped and mirrored by three draws."""
    pad = usual_pad(image.height, image.width)
    top, left = (int(u * (2 * pad + 1)) for u in draws[:2])
    crop = ImageOps.expand(image, pad).crop((left, top, left + image.width, top + image.height))
    return ImageOps.mirror(crop) if draws[2] < 0.5 else crop


def stretch(image):
    """AutoContrast in integers, where Pillow's own is off by one now and then."""
    values = sample(image).numpy().astype(int)
    for channel in values:
        low, high = channel.min(), channel.max()
        if high > low:
            channel[:] = 255 * (channel - low) // (high - low)
    return picture(torch.from_numpy(values.astype(np.uint8)))


def changed(image, name, level, sign):
    """One operation at one level, with the paper's ranges written out."""
    grey = 128 if image.mode == "L" else (128,) * 3

    def moved(*matrix):
        return image.transform(image.size, Image.Transform.AFFINE, matrix, fillcolor=grey)

    shear, shift, factor = sign * 0.3 * level / 9, sign * 150 / 331 * level / 9, 1 + sign * 0.1 * level
    return {
        "ShearX": lambda: moved(1, shear, 0, 0, 1, 0),
        "ShearY": lambda: moved(1, 0, 0, shear, 1, 0),
        "TranslateX": lambda: moved(1, 0, shift * image.width, 0, 1, 0),
        "TranslateY": lambda: moved(1, 0, 0, 0, 1, shift * image.height),
        "Rotate": lambda: image.rotate(sign * 30 * level / 9, fillcolor=grey),
        "AutoContrast": lambda: stretch(image),
        "Invert": lambda: ImageOps.invert(image),
        "Equalize": lambda: ImageOps.equalize(image),
        "Solarize": lambda: ImageOps.solarize(image, 256 - 256 * level / 9),
        "Posterize": lambda: ImageOps.posterize(image, round(8 - 4 * level / 9)),
        "Contrast": lambda: ImageEnhance.Contrast(image).enhance(factor),
        "Color": lambda: ImageEnhance.Color(image).enhance(factor),
        "Brightness": lambda: ImageEnhance.Brightness(image).enhance(factor),
        "Sharpness": lambda: ImageEnhance.Sharpness(image).enhance(factor),
    }[name]()


def policy_of(image, draws):
    row = POLICY[int(draws[0] * 25)]
    for (name, chance, level), happens, sign in ((row[:3], *draws[1:3]), (row[3:], *draws[3:5])):
        if happens < chance:
            image = changed(image, name, level, -1 if sign < 0.5 else 1)
    return image


def holed(image, draws):
    """A sample with its black square, pixel by pixel."""
    height, width = image.shape[1:]
    size = max(1, min(height, width) // 2)
    top, left = int(draws[0] * height) - size // 2, int(draws[1] * width) - size // 2
    for y in range(top, top + size):
        for x in range(left, left + size):
            if 0 <= y < height and 0 <= x < width:
                image[:, y, x] = 0
    return image


@given(VIEWED, st.integers(0, 999))
@examples(40, 1000)
def test_the_weak_view_is_pillow_s(shape, seed):
    batch = pixels(shape, seed)
    before = batch.clone()
    views = weak(batch, np.random.default_rng(seed))
    for image, view, draws in zip(batch, views, np.random.default_rng(seed).random((shape[0], 4)), strict=True):
        assert torch.equal(view, sample(crop_of(picture(image), draws).rotate(30 * draws[3] - 15)))
    assert torch.equal(batch, before)
    assert (views.shape, views.dtype) == (batch.shape, torch.uint8)


@given(VIEWED, st.integers(0, 999))
@examples(40, 1000)
def test_the_strong_view_is_pillow_s(shape, seed):
    batch = pixels(shape, seed)
    before = batch.clone()
    views = strong(batch, np.random.default_rng(seed))
    for image, view, draws in zip(batch, views, np.random.default_rng(seed).random((shape[0], 10)), strict=True):
        expected = policy_of(crop_of(picture(image), draws[:3]), draws[3:8])
        assert torch.equal(view, holed(sample(expected), draws[8:]))
    assert torch.equal(batch, before)
    assert (views.shape, views.dtype) == (batch.shape, torch.uint8)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("channels", [1, 3])
def test_every_operation_at_every_level(name, channels):
    batch, operation = pixels((20, channels, 32, 32)), OPERATIONS[name]
    levels, signs = np.tile(np.arange(10), 2), np.repeat([-1, 1], 10)
    amounts = operation.start + operation.slope * levels * (signs if operation.signed else 1)
    amounts[levels == 9] = np.round(amounts[levels == 9], 9)  # 256 - 9 * (256 / 9) leaves a crumb
    result = operation.act(batch, amounts)
    for i in range(20):
        assert torch.equal(result[i], sample(changed(picture(batch[i]), name, levels[i], signs[i]))), levels[i]


@pytest.mark.parametrize(("name", "shape"), [("TranslateX", (1, 1, 2, 331)), ("TranslateY", (1, 1, 331, 2))])
def test_the_longest_shift_is_150_of_331_pixels(name, shape):
    batch, operation = pixels(shape), OPERATIONS[name]
    result = operation.act(batch, np.array([9 * operation.slope]))
    long_side = shape.index(331)
    assert torch.equal(result.narrow(long_side, 0, 181), batch.narrow(long_side, 150, 181))
    assert (result.narrow(long_side, 181, 150) == 128).all()


def test_a_grey_image_has_no_colour_to_change():
    batch = pixels((3, 1, 8, 8))
    assert torch.equal(OPERATIONS["Color"].act(batch, np.array([0.1, 1.0, 1.9])), batch)


def test_a_grey_image_is_changed_as_its_rgb_edition():
    grey, draws = pixels((60, 1, 16, 16)), np.random.default_rng(0).random((60, 5))
    assert torch.equal(autoaugment(grey.expand(-1, 3, -1, -1), draws), autoaugment(grey, draws).expand(-1, 3, -1, -1))


def test_the_policy_is_the_paper_s():
    assert len(POLICY) == 25
    used = Counter(row[k] for row in POLICY for k in (0, 3))
    assert used == {
        "Equalize": 9, "AutoContrast": 7, "Sharpness": 5, "TranslateY": 5, "Brightness": 4, "Color": 5, "Solarize": 4,
        "Invert": 3, "Contrast": 2, "TranslateX": 2, "ShearY": 2, "Posterize": 1, "Rotate": 1,
    }  # fmt: skip
    assert set(used) <= set(OPERATIONS)
    assert round(sum(row[1] + row[4] for row in POLICY), 6) == 26.5
    assert sum(row[2] + row[5] for row in POLICY) == 267


def test_a_sample_s_views_depend_on_itself_and_its_own_draws():
    batch, other = pixels((40, 3, 16, 16), 1), pixels((40, 3, 16, 16), 2)
    other[::2] = batch[::2]
    for view in (weak, strong):
        results = [view(b, np.random.default_rng(3)) for b in (batch, other, batch[:11])]
        assert torch.equal(results[0][::2], results[1][::2])
        assert torch.equal(results[0][:11], results[2])


def test_views_differ_with_the_generator_and_repeat_with_it():
    batch = pixels((20, 3, 16, 16))
    for view in (weak, strong):
        first, again, other = (view(batch, np.random.default_rng(seed)) for seed in (0, 0, 1))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)


def test_the_hole_is_16_of_32_and_black():
    batch = torch.full((count(200, 5000), 3, 32, 32), 200, dtype=torch.uint8)
    holes = (cutout(batch, np.random.default_rng(0).random((len(batch), 2))) == 0).numpy()
    assert (holes == holes[:, :1]).all()
    sizes = np.stack([holes[:, 0].any(2).sum(1), holes[:, 0].any(1).sum(1)])
    assert (holes[:, 0].sum((1, 2)) == sizes.prod(0)).all()
    assert (sizes.min(), sizes.max()) == (8, 16)
    assert (batch == 200).all()


@given(st.integers(1, 255), st.integers(0, 99))
@examples(40, 255)
def test_white_below_255_stays_in_its_range_and_loses_nothing(white, seed):
    batch = pixels((30, 1, 8, 8), seed, high=white)
    views = strong(batch, np.random.default_rng(seed), white=white)
    assert views.max() <= white
    draws = np.random.default_rng(seed).random((30, 10))
    untouched = [
        i
        for i, row in enumerate(draws)
        if row[4] >= POLICY[int(row[3] * 25)][1] and row[6] >= POLICY[int(row[3] * 25)][4]
    ]
    assert torch.equal(views[untouched], cutout(cropped(batch, draws[:, :3]), draws[:, 8:])[untouched])


def test_inverted_digits_are_16_minus_the_pixel():
    batch, draws = pixels((500, 1, 8, 8), high=16), np.random.default_rng(0).random((500, 10))
    views = strong(batch, np.random.default_rng(0), white=16, pad=0, flip=False)
    rows = (draws[:, 3] < 1 / 25) & (draws[:, 4] < 0.1) & (draws[:, 6] >= 0.2)
    assert rows.any()
    assert torch.equal(views[rows], cutout(16 - batch, draws[:, 8:])[rows])


@pytest.mark.parametrize("view", [weak, strong])
def test_what_views_need(view):
    rng = np.random.default_rng(0)
    with pytest.raises(ArgumentError, match=f"^{view.__name__}: expected images "):
        view(torch.zeros((3, 4), dtype=torch.uint8), rng)
    with pytest.raises(ArgumentError, match=f"^{view.__name__}: expected raw images of uint8, got torch.float32"):
        view(torch.zeros((3, 1, 4, 4)), rng)


def test_what_the_strong_view_needs():
    rng = np.random.default_rng(0)
    with pytest.raises(ArgumentError, match=r"^strong: expected images of 1 or 3 channels, got 2"):
        strong(pixels((3, 2, 4, 4)), rng)
    for white, words in ((0, "an integer >= 1"), (256, "at most 255"), (16.0, "an integer >= 1")):
        with pytest.raises(ArgumentError, match=f"^white: expected {words}, got "):
            strong(pixels((3, 1, 4, 4)), rng, white=white)
