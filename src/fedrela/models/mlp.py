"""Models for tables, which also take images as one long row: logistic regression and the multi-layer perceptron."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from fedrela.models.checks import sizes

Body = tuple[nn.Module, int]  # what makes the features, and how many


def logistic(input_shape: Sequence[int]) -> Body:
    """Return the body of logistic regression: the input itself."""
    return nn.Flatten(), math.prod(input_shape)


def mlp(input_shape: Sequence[int], hidden: Sequence[int] = (200,)) -> Body:
    """Return linear layers of the `hidden` widths, each followed by a ReLU.

    >>> mlp((1, 8, 8), hidden=[32, 16])[1]
    16
    """
    width = math.prod(input_shape)
    layers: list[nn.Module] = [nn.Flatten()]
    for size in sizes("hidden", hidden):
        layers += [nn.Linear(width, size), nn.ReLU()]
        width = size
    return nn.Sequential(*layers), width
