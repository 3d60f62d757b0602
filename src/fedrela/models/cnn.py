"""Convolutional networks without batch normalisation, each as its source has it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from fedrela.models.checks import image
from fedrela.models.mlp import Body

SMALLEST_LENET = 16  # two unpadded 5x5 convolutions, each followed by pooling, leave one pixel of it
LARGEST_MAP = 8  # side of the last feature map of cnn_small


def cnn(input_shape: Sequence[int]) -> Body:
    """Return the CNN of McMahan et al. (2017): 5x5 convolutions of 32 and 64 channels with pooling, 512 units."""
    channels, height, width = image("cnn", input_shape, smallest=4)
    stages = [*_pooled(channels, 32, padding=2), *_pooled(32, 64, padding=2)]
    return _dense(stages, 64 * (height // 4) * (width // 4), [512])


def simple_cnn(input_shape: Sequence[int]) -> Body:
    """Return the LeNet-like network of NIID-Bench: 6 and 16 channels, 120 and 84 units."""
    return _lenet("simple_cnn", input_shape, (6, 16), [120, 84])


def convnet(input_shape: Sequence[int]) -> Body:
    """Return the network of CLIMB: 64 and 64 channels, 384 and 192 units."""
    return _lenet("convnet", input_shape, (64, 64), [384, 192])


def cnn_small(input_shape: Sequence[int]) -> Body:
    """Return the small strided CNN of the benchmarks.

    One channel: 5x5 convolutions of 16 and 32 channels, 64 units. More channels: 3x3 convolutions of 32, 64 and 64
    channels, 128 units. Each convolution halves the image; large images get further ones of the last width.
    """
    channels, height, width = image("cnn_small", input_shape)
    kernel, widths, units = (5, [16, 32], 64) if channels == 1 else (3, [32, 64, 64], 128)
    stages: list[nn.Module] = []
    while widths or max(height, width) > LARGEST_MAP:
        outputs = widths.pop(0) if widths else channels
        stages += [nn.Conv2d(channels, outputs, kernel, stride=2, padding=kernel // 2), nn.ReLU()]
        channels, height, width = outputs, (height + 1) // 2, (width + 1) // 2
    return _dense(stages, channels * height * width, [units])


def _lenet(name: str, input_shape: Sequence[int], channels: tuple[int, int], units: list[int]) -> Body:
    inputs, height, width = image(name, input_shape, SMALLEST_LENET)
    stages = [*_pooled(inputs, channels[0], padding=0), *_pooled(*channels, padding=0)]
    height, width = (((side - 4) // 2 - 4) // 2 for side in (height, width))
    return _dense(stages, channels[1] * height * width, units)


def _pooled(inputs: int, outputs: int, padding: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)]


def _dense(stages: list[nn.Module], width: int, units: list[int]) -> Body:
    layers = [*stages, nn.Flatten()]
    for size in units:
        layers += [nn.Linear(width, size), nn.ReLU()]
        width = size
    return nn.Sequential(*layers), width
