"""Models: one contract (`fedrela.models.contract`), one explicit table (`MODELS`), one way to build one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from fedrela.arguments import check_choice, check_integer
from fedrela.errors import ArgumentError
from fedrela.models import cnn, mlp, resnet
from fedrela.models.arrays import FlatModel
from fedrela.models.checks import sizes
from fedrela.models.contract import Classifier, Plain, adapt, has_split, need_split, num_features
from fedrela.models.repeatable import seeded
from fedrela.text import unknown

__all__ = [
    "MODELS", "Classifier", "FlatModel", "Plain", "adapt", "build", "has_split", "model_options", "need_split",
    "num_features",
]  # fmt: skip

# name -> function of the input shape and the model's own options, which returns the body and its number of features
MODELS: dict[str, Callable[..., mlp.Body]] = {
    "cnn": cnn.cnn,
    "cnn_small": cnn.cnn_small,
    "convnet": cnn.convnet,
    "logistic": mlp.logistic,
    "mlp": mlp.mlp,
    "resnet18": resnet.resnet18,
    "resnet20": resnet.resnet20,
    "resnet32": resnet.resnet32,
    "resnet34": resnet.resnet34,
    "resnet50": resnet.resnet50,
    "resnet8": resnet.resnet8,
    "simple_cnn": cnn.simple_cnn,
}


def build(
    name: str,
    input_shape: Sequence[int],
    num_classes: int,
    *,
    seed: int = 0,
    projection: int = 0,
    dtype: torch.dtype = torch.float32,
    **options: Any,
) -> Classifier:
    """Build the model called `name`, initialised as torch does it, from `seed` alone.

    Parameters
    ----------
    name
        One of `MODELS`.
    input_shape
        Of one sample: (channels, height, width) of an image, or (columns,) of a table.
    num_classes
        Number of logits, at least 2.
    seed
        Of the initial values; torch's own generator is neither used nor changed.
    projection
        With a width, MOON's projection (two linear layers, a ReLU between) follows the body, and the head sits on it.
    dtype
        ``torch.float32`` or ``torch.float64``.
    options
        The model's own, see `model_options`; one it does not have is an error.

    Examples
    --------
    >>> model = build("mlp", (64,), 10, hidden=[32])
    >>> model.num_features, sum(p.numel() for p in model.parameters())
    (32, 2410)
    >>> build("mlp", (64,), 10, hiden=[32])
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: hiden: unknown option; nearest: hidden
    """
    make = MODELS[check_choice("model", name, MODELS)]
    for option in options:
        if option not in model_options(name):
            raise ArgumentError(unknown("option", option, model_options(name), name), argument=option)
    shape, classes = sizes("input_shape", input_shape), check_integer("num_classes", num_classes, 2)
    if dtype not in (torch.float32, torch.float64):
        raise ArgumentError(f"expected torch.float32 or torch.float64, got {dtype}", argument="dtype")
    with seeded(check_integer("seed", seed, 0), "model"):
        body, width = make(shape, **options)
        if check_integer("projection", projection, 0):
            body = nn.Sequential(body, nn.Linear(width, width), nn.ReLU(), nn.Linear(width, projection))
            width = projection
        return Classifier(body, width, classes).to(dtype)


def model_options(name: str) -> list[str]:
    """Return the options that a model has of its own.

    >>> model_options("mlp"), model_options("resnet8"), model_options("logistic")
    (['hidden'], ['width', 'norm'], [])
    """
    return list(inspect.signature(MODELS[check_choice("model", name, MODELS)]).parameters)[1:]
