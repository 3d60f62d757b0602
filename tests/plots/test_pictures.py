"""Samples as PNG files: what another reader finds in them is what was put in."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from fedrela.plots.samples import LARGEST, png, visible
from helpers.batteries import examples


@examples(60, 2_000)
@given(st.integers(1, 40), st.integers(1, 40), st.booleans(), st.integers(0, 2**32 - 1))
def test_another_reader_sees_the_same_picture(height, width, colour, seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3) if colour else (height, width), np.uint8)
    with Image.open(io.BytesIO(png(pixels))) as image:
        image.load()
        seen = np.asarray(image.convert("RGB" if colour else "L"))
    np.testing.assert_array_equal(seen, pixels)


@pytest.mark.parametrize(("channels", "shape"), [(1, (8, 8)), (3, (8, 8, 3)), (2, (8, 8)), (4, (8, 8))])
def test_channels(channels, shape):
    samples = np.random.default_rng(0).integers(0, 256, (2, channels, 8, 8), np.uint8)
    seen = visible(samples)
    assert [picture.shape for picture in seen] == [shape, shape]
    expected = samples[1].transpose(1, 2, 0) if channels == 3 else np.rint(samples[1].mean(axis=0))
    np.testing.assert_array_equal(seen[1], expected)


def test_dark_pictures_are_stretched_together():
    samples = np.array([[[[0, 8]]], [[[4, 16]]]], np.uint8)
    assert [picture.tolist() for picture in visible(samples)] == [[[0, 128]], [[64, 255]]]
    assert visible(np.zeros((1, 1, 2, 2), np.uint8))[0].tolist() == [[0, 0], [0, 0]]
    assert visible(np.zeros((0, 1, 2, 2), np.uint8)) == []


@pytest.mark.parametrize(("height", "width"), [(224, 224), (97, 20), (1, 500), (300, 100)])
def test_large_pictures_are_shrunk(height, width):
    picture = visible(np.full((1, 3, height, width), 200, np.uint8))[0]
    assert max(picture.shape[:2]) <= LARGEST
    assert min(picture.shape[:2]) >= 1
    assert (picture == 200).all()
    step = -(-max(height, width) // LARGEST)
    assert picture.shape[:2] == (max(height // step, 1), max(width // step, 1))
