"""Models: one contract (`fedrela.models.contract`), one explicit table (`MODELS`), one way to build one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from fedrela.arguments import check_integer
from fedrela.components import find_component
from fedrela.errors import ArgumentError, FedrelaError
from fedrela.models import networks
from fedrela.models.contract import Classifier, Plain, adapt, check_sizes, has_split, need_split, num_features
from fedrela.models.flat_model import FlatModel
from fedrela.models.runtime import seeded
from fedrela.text import one_line, own_line, unknown

__all__ = [
    "MODELS", "Classifier", "FlatModel", "ModelSpec", "Plain", "adapt", "build", "find_model", "has_split",
    "model_options", "need_split", "num_features",
]  # fmt: skip


@dataclass(frozen=True)
class ModelSpec:
    """A model as the registry lists it.

    Examples
    --------
    >>> MODELS["logistic"].description, MODELS["cnn_small"].cost[1, 28, 28]
    ('logistic regression', 1.0)
    """

    make: Callable[..., networks.Body]  # of the input shape and the model's own options; returns the body and its width
    description: str  # what it is, in one line
    # Input shape -> cost of a training sample, relative to `cnn_small` on grey images of 28x28: measured on one
    # core, except that of resnet50, which is estimated from its operations.
    cost: Mapping[tuple[int, ...], float] = field(default_factory=dict)


GREY, COLOUR = (1, 28, 28), (3, 32, 32)
MODELS: dict[str, ModelSpec] = {
    "cnn": ModelSpec(networks.cnn, "CNN of McMahan et al. (2017)"),
    "cnn_small": ModelSpec(networks.cnn_small, "small strided CNN", {GREY: 1.0, COLOUR: 2.3}),
    "convnet": ModelSpec(networks.convnet, "CNN of CLIMB", {GREY: 7.8, COLOUR: 10.7}),
    "logistic": ModelSpec(networks.logistic, "logistic regression"),
    "mlp": ModelSpec(networks.mlp, "multilayer perceptron", {(1, 8, 8): 0.11}),
    "resnet18": ModelSpec(networks.resnet18, "ResNet-18 for small images", {COLOUR: 400.0}),
    "resnet20": ModelSpec(networks.resnet20, "ResNet-20 for small images"),
    "resnet32": ModelSpec(networks.resnet32, "ResNet-32 for small images"),
    "resnet34": ModelSpec(networks.resnet34, "ResNet-34 for small images", {COLOUR: 760.0}),
    "resnet50": ModelSpec(networks.resnet50, "ResNet-50 for images of ImageNet's size", {(3, 224, 224): 2_800.0}),
    "resnet8": ModelSpec(networks.resnet8, "ResNet-8 for small images", {COLOUR: 100.0}),
    "simple_cnn": ModelSpec(networks.simple_cnn, "LeNet-like CNN of NIID-Bench", {GREY: 0.9, COLOUR: 1.2}),
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
) -> nn.Module:
    """Build the model called `name`, with torch's initialisation drawn from `seed` alone.

    Parameters
    ----------
    name
        One of `MODELS`, or your own; see `find_model`.
    input_shape
        Shape of one sample: (channels, height, width) of an image, or (columns,) of a table row.
    num_classes
        Number of logits, at least 2.
    seed
        Seed of the initial values; torch's global generator is neither used nor changed.
    projection
        If not 0, MOON's projection of this width (two linear layers, a ReLU between) follows the body.
    dtype
        ``torch.float32`` or ``torch.float64``.
    options
        The model's own options, see `model_options`.

    Examples
    --------
    >>> model = build("mlp", (64,), 10, hidden=[32])
    >>> model.num_features, sum(p.numel() for p in model.parameters())
    (32, 2410)
    >>> build("resnet81", (3, 32, 32), 10)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: model: expected one of cnn, ..., got 'resnet81'; nearest: resnet8
    """
    allowed = model_options(name)
    for option in options:
        if option not in allowed:
            raise ArgumentError(unknown("option", option, allowed, f"model {name!r}"), argument=option)
    shape, classes = check_sizes("input_shape", input_shape), check_integer("num_classes", num_classes, 2)
    if dtype not in (torch.float32, torch.float64):
        raise ArgumentError(f"expected torch.float32 or torch.float64, got {dtype}", argument="dtype")
    spec = find_model(name)
    with seeded(check_integer("seed", seed, 0), "model"):
        if not isinstance(spec, ModelSpec):
            if projection:
                raise ArgumentError(f"model {name!r} is user-defined and has no projection", argument="projection")
            return _own(name, spec, shape, classes, **options).to(dtype)
        body, width = spec.make(shape, **options)
        if check_integer("projection", projection, 0):
            body = nn.Sequential(body, nn.Linear(width, width), nn.ReLU(), nn.Linear(width, projection))
            width = projection
        return Classifier(body, width, classes).to(dtype)


def _own(name: str, make: Callable[..., Any], *sizes: Any, **options: Any) -> nn.Module:
    """Return a user's own model; an error in its code becomes an `ArgumentError` with its name and line."""
    try:
        made = make(*sizes, **options)
    except FedrelaError:
        raise
    except Exception as error:  # a user's code may raise anything
        raise ArgumentError(f"model {name!r}: {one_line(error)}{own_line(error)}") from error
    if not isinstance(made, nn.Module):
        raise ArgumentError(f"model {name!r}: expected a torch.nn.Module, got {type(made).__name__}")
    return made


def model_options(name: str) -> dict[str, Any]:
    """Return a model's own options with their defaults.

    Parameters
    ----------
    name
        As for `find_model`.

    Examples
    --------
    >>> model_options("mlp"), model_options("resnet8"), model_options("logistic")
    ({'hidden': (200,)}, {'width': 64, 'norm': 'batch'}, {})
    """
    model = find_model(name)
    make, skip = (model.make, 1) if isinstance(model, ModelSpec) else (model, 2)  # input shape, number of classes
    parameters = inspect.signature(make).parameters.values()
    options = [each for each in parameters if each.kind is not each.VAR_KEYWORD][skip:]
    for option in options:
        if option.default is option.empty:
            raise ArgumentError(f"model {name!r}: its option {option.name} has no default", argument="model")
    return {option.name: option.default for option in options}


def find_model(name: object) -> ModelSpec | Callable[..., nn.Module]:
    """Return a model: one of `MODELS`, or a function or class from ``"package.module:Name"`` or a package.

    Your own takes the input shape and the number of classes; its further parameters, with defaults, are its options.

    Parameters
    ----------
    name
        Its name.

    Examples
    --------
    >>> find_model("mlp").description
    'multilayer perceptron'
    """
    expected = "a function or class that makes a torch.nn.Module"
    model: ModelSpec | Callable[..., nn.Module] = find_component(
        "models", name, MODELS, _makes_models, expected, argument="model"
    )
    return model


def _makes_models(found: object) -> bool:
    return isinstance(found, ModelSpec) or (callable(found) and not isinstance(found, nn.Module))
