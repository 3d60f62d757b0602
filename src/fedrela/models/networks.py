"""The networks of the federated literature: MLP, convolutional networks and ResNets, as bodies without their heads.

A body maps a batch to features; `fedrela.models.build` puts a linear head on it. The convolutional networks have no
batch normalisation. The small-image ResNets (He et al., 2016) have a 3x3 stem without pooling; width doubles and side
halves from stage to stage, and a shortcut that changes shape is a 1x1 convolution with normalisation. They end in a
global average, so images of 32x32 and 64x64 both fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from fedrela.arguments import check_choice, check_integer
from fedrela.errors import ArgumentError
from fedrela.models.contract import check_sizes, image_shape

Body = tuple[nn.Module, int]  # the module that makes the features, and their number
Norm = Callable[[int], nn.Module]
NORMS: dict[str, Norm] = {"batch": nn.BatchNorm2d, "group": partial(nn.GroupNorm, 2)}  # 2 groups, as in FedDyn
LARGEST_MAP = 8  # side of the last feature map of cnn_small


def logistic(input_shape: Sequence[int]) -> Body:
    """Return the body of logistic regression: the flattened input."""
    return nn.Flatten(), math.prod(input_shape)


def mlp(input_shape: Sequence[int], hidden: Sequence[int] = (200,)) -> Body:
    """Return linear layers of the `hidden` widths, each followed by a ReLU.

    >>> mlp((1, 8, 8), hidden=[32, 16])[1]
    16
    """
    return _dense([], math.prod(input_shape), check_sizes("hidden", hidden))


def cnn(input_shape: Sequence[int]) -> Body:
    """Return the CNN of McMahan et al. (2017): 5x5 convolutions of 32 and 64 channels with pooling, 512 units."""
    return _two_stages("cnn", input_shape, (32, 64), [512], smallest=4, padding=2)


def simple_cnn(input_shape: Sequence[int]) -> Body:
    """Return the LeNet-like network of NIID-Bench: 6 and 16 channels, 120 and 84 units."""
    return _two_stages("simple_cnn", input_shape, (6, 16), [120, 84])


def convnet(input_shape: Sequence[int]) -> Body:
    """Return the network of CLIMB: 64 and 64 channels, 384 and 192 units."""
    return _two_stages("convnet", input_shape, (64, 64), [384, 192])


def cnn_small(input_shape: Sequence[int]) -> Body:
    """Return the small strided CNN of the benchmarks.

    One channel: 5x5 convolutions of 16 and 32 channels, 64 units. More channels: 3x3 convolutions of 32, 64 and 64
    channels, 128 units. Each convolution halves the image; large images get further ones of the last width.
    """
    channels, height, width = image_shape("cnn_small", input_shape)
    kernel, widths, units = (5, [16, 32], 64) if channels == 1 else (3, [32, 64, 64], 128)
    stages: list[nn.Module] = []
    while widths or max(height, width) > LARGEST_MAP:
        outputs = widths.pop(0) if widths else channels
        stages += [nn.Conv2d(channels, outputs, kernel, stride=2, padding=kernel // 2), nn.ReLU()]
        channels, height, width = outputs, (height + 1) // 2, (width + 1) // 2
    return _dense(stages, channels * height * width, [units])


def _two_stages(
    name: str, shape: Sequence[int], widths: tuple[int, int], units: list[int], smallest: int = 16, padding: int = 0
) -> Body:
    """Return two 5x5 convolutions with pooling and dense layers; without padding, 16 pixels shrink to one."""
    channels, height, width = image_shape(name, shape, smallest)
    stages: list[nn.Module] = []
    for outputs in widths:
        stages += [nn.Conv2d(channels, outputs, 5, padding=padding), nn.MaxPool2d(2), nn.ReLU()]  # order: same values
        channels, height, width = outputs, (height - 4 + 2 * padding) // 2, (width - 4 + 2 * padding) // 2
    return _dense(stages, channels * height * width, units)


def _dense(stages: list[nn.Module], width: int, units: Sequence[int]) -> Body:
    layers = [*stages, Flatten() if stages else nn.Flatten()]
    for size in units:
        layers += [nn.Linear(width, size), nn.ReLU()]
        width = size
    return (ChannelsLast if stages else nn.Sequential)(*layers), width


def small_image(name: str, blocks: tuple[int, ...], width: int) -> Callable[..., Body]:
    """Return the function that builds the ResNet with these blocks per stage and this width of the first stage."""
    default = width

    def body(input_shape: Sequence[int], width: int = default, norm: str = "batch") -> Body:
        channels = image_shape(name, input_shape)[0]
        normalize = _norm(norm, check_integer("width", width))
        stem = [_conv(channels, width, 3), normalize(width), nn.ReLU()]
        stages = _stages(blocks, width, width, partial(_basic, norm=normalize))
        return ChannelsLast(*stem, *stages, GlobalAverage()), width * 2 ** (len(blocks) - 1)

    body.__doc__ = f"Return the body of {name}; `width` is that of the first stage, `norm` is batch or group."
    return body


resnet8 = small_image("resnet8", (1, 1, 1), 64)
resnet18 = small_image("resnet18", (2, 2, 2, 2), 64)
resnet20 = small_image("resnet20", (3, 3, 3), 16)
resnet32 = small_image("resnet32", (5, 5, 5), 16)
resnet34 = small_image("resnet34", (3, 4, 6, 3), 64)


def resnet50(input_shape: Sequence[int], norm: str = "batch") -> Body:
    """Return the body of ResNet-50 for images of ImageNet's size, with the stride in the 3x3 convolution."""
    channels = image_shape("resnet50", input_shape)[0]
    normalize = _norm(norm, 64)
    stem = [_conv(channels, 64, 7, stride=2), normalize(64), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)]
    stages = _stages((3, 4, 6, 3), 64, 256, partial(_bottleneck, norm=normalize))
    return ChannelsLast(*stem, *stages, GlobalAverage()), 2048


class ChannelsLast(nn.Sequential):
    """Layers that process float32 images in the channels-last memory format, in which convolutions are faster."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the last layer."""
        if x.dtype == torch.float32 and x.shape[1] == 1 and x.is_contiguous():
            x = x.view(len(x), *x.shape[2:], 1).permute(0, 3, 1, 2)  # one channel: nothing to copy
        elif x.dtype == torch.float32:
            x = x.to(memory_format=torch.channels_last)
        for layer in self:
            x = layer(x)
        return x


class Flatten(nn.Module):
    """`torch.nn.Flatten`, but gradients have the memory format of the layers before it."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, values) of (B, channels, height, width)."""
        rows: Tensor = _Rows.apply(x)  # type: ignore[no-untyped-call]  # torch declares no types there
        return rows


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.shape, ctx.last = x.shape, x.is_contiguous(memory_format=torch.channels_last)
        return x.flatten(1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        images = gradient.reshape(ctx.shape)
        return images.contiguous(memory_format=torch.channels_last) if ctx.last else images


class Residual(nn.Module):
    """The ReLU of the sum of a path and a shortcut."""

    def __init__(self, path: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.path = path
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        return torch.relu(self.path(x) + self.shortcut(x))


class GlobalAverage(nn.Module):
    """The mean over all pixels of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, channels) of (B, channels, height, width)."""
        return x.mean((2, 3))


def _stages(blocks: tuple[int, ...], inputs: int, width: int, block: Callable[..., Residual]) -> list[Residual]:
    """Return all blocks; `width` is the first stage's output, and the first block of a later stage halves the side."""
    stages = []
    for stage, count in enumerate(blocks):
        outputs = width * 2**stage
        for i in range(count):
            stages.append(block(inputs, outputs, 2 if stage and i == 0 else 1))
            inputs = outputs
    return stages


def _basic(inputs: int, outputs: int, stride: int, norm: Norm) -> Residual:
    path = nn.Sequential(
        _conv(inputs, outputs, 3, stride), norm(outputs), nn.ReLU(), _conv(outputs, outputs, 3), norm(outputs)
    )
    return Residual(path, _shortcut(inputs, outputs, stride, norm))


def _bottleneck(inputs: int, outputs: int, stride: int, norm: Norm) -> Residual:
    narrow = outputs // 4
    path = nn.Sequential(
        _conv(inputs, narrow, 1), norm(narrow), nn.ReLU(),
        _conv(narrow, narrow, 3, stride), norm(narrow), nn.ReLU(),
        _conv(narrow, outputs, 1), norm(outputs),
    )  # fmt: skip
    return Residual(path, _shortcut(inputs, outputs, stride, norm))


def _shortcut(inputs: int, outputs: int, stride: int, norm: Norm) -> nn.Module:
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(_conv(inputs, outputs, 1, stride), norm(outputs))


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Module:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def _norm(name: str, width: int) -> Norm:
    if check_choice("norm", name, NORMS) == "group" and width % 2:
        raise ArgumentError(f"expected an even number for norm = 'group' (two groups), got {width}", argument="width")
    return NORMS[name]
