"""Residual networks (He et al., 2016): those of the federated literature for small images, and ResNet-50.

The small-image ones have a 3x3 stem without pooling; their width doubles and their side halves from stage to stage, and
a shortcut that changes shape is a 1x1 convolution with normalisation. They end in a global average, so 32x32 and 64x64
images both fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from fedrela.arguments import check_choice, check_integer
from fedrela.errors import ArgumentError
from fedrela.models.checks import image
from fedrela.models.mlp import Body

Norm = Callable[[int], nn.Module]
NORMS: dict[str, Norm] = {"batch": nn.BatchNorm2d, "group": partial(nn.GroupNorm, 2)}  # 2 groups: as FedDyn has it


def small_image(name: str, blocks: tuple[int, ...], width: int) -> Callable[..., Body]:
    """Return the function that builds the ResNet with so many blocks a stage and that first width."""
    usual = width

    def body(input_shape: Sequence[int], width: int = usual, norm: str = "batch") -> Body:
        channels = image(name, input_shape)[0]
        normalize = _norm(norm, check_integer("width", width))
        stem = [_conv(channels, width, 3), normalize(width), nn.ReLU()]
        stages = _stages(blocks, width, width, partial(_basic, norm=normalize))
        return nn.Sequential(*stem, *stages, GlobalAverage()), width * 2 ** (len(blocks) - 1)

    body.__doc__ = f"Return the body of {name}; `width` is that of the first stage, `norm` is batch or group."
    return body


resnet8 = small_image("resnet8", (1, 1, 1), 64)
resnet18 = small_image("resnet18", (2, 2, 2, 2), 64)
resnet20 = small_image("resnet20", (3, 3, 3), 16)
resnet32 = small_image("resnet32", (5, 5, 5), 16)
resnet34 = small_image("resnet34", (3, 4, 6, 3), 64)


def resnet50(input_shape: Sequence[int], norm: str = "batch") -> Body:
    """Return the body of ResNet-50 for images of ImageNet's size, stride in the 3x3 convolution."""
    channels = image("resnet50", input_shape)[0]
    normalize = _norm(norm, 64)
    stem = [_conv(channels, 64, 7, stride=2), normalize(64), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)]
    stages = _stages((3, 4, 6, 3), 64, 256, partial(_bottleneck, norm=normalize))
    return nn.Sequential(*stem, *stages, GlobalAverage()), 2048


class Residual(nn.Module):
    """The rectified sum of a path and a shortcut."""

    def __init__(self, path: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.path = path
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's answer."""
        return torch.relu(self.path(x) + self.shortcut(x))


class GlobalAverage(nn.Module):
    """The mean over all pixels of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, channels) of (B, channels, height, width)."""
        return x.mean((2, 3))


def _stages(blocks: tuple[int, ...], inputs: int, width: int, block: Callable[..., Residual]) -> list[Residual]:
    """Return all blocks in order; `width` is the first stage's output, and the first block of a later one halves."""
    made = []
    for stage, count in enumerate(blocks):
        outputs = width * 2**stage
        for place in range(count):
            made.append(block(inputs, outputs, 2 if stage and place == 0 else 1))
            inputs = outputs
    return made


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
