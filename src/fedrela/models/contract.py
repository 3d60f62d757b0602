"""The contract of a model: ``features(x) -> (B, num_features)``, a module ``head``, and logits = head(features(x)).

A plain `torch.nn.Module` without that split can be trained and scored too, but an algorithm that needs features or
replaces the head refuses it before training starts. The last functions check arguments of models.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from fedrela.arguments import check_integer
from fedrela.errors import ArgumentError
from fedrela.text import shown

Model = nn.Module | Callable[[tuple[int, ...], int], nn.Module]


class Classifier(nn.Module):
    """A body that maps a batch to features of shape (B, num_features), and a linear head on them.

    Parameters
    ----------
    body
        The module that returns features.
    num_features, num_classes
        How many features and logits there are.

    Examples
    --------
    >>> model = Classifier(nn.Linear(4, 3), num_features=3, num_classes=2)
    >>> tuple(model.features(torch.zeros(5, 4)).shape), tuple(model(torch.zeros(5, 4)).shape)
    ((5, 3), (5, 2))
    """

    def __init__(self, body: nn.Module, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.body = body
        self.head: nn.Module = nn.Linear(num_features, num_classes)
        self.num_features = num_features

    def features(self, x: Tensor) -> Tensor:
        """Return the features of a batch."""
        features: Tensor = self.body(x)
        return features

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of a batch."""
        logits: Tensor = self.head(self.features(x))
        return logits


class Plain(nn.Module):
    """Any module as a model: it can be trained and scored, but has no features and no head.

    Parameters
    ----------
    module
        Returns logits.

    Examples
    --------
    >>> model = Plain(nn.Linear(4, 2))
    >>> tuple(model(torch.zeros(5, 4)).shape), has_split(model)
    ((5, 2), False)
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of a batch."""
        logits: Tensor = self.module(x)
        return logits

    def __getattr__(self, name: str) -> Any:
        if name in ("features", "head", "num_features"):
            need_split(self, "this algorithm")
        return super().__getattr__(name)


def has_split(module: nn.Module) -> bool:
    """Whether a module has separate features and head.

    Parameters
    ----------
    module
        Any module.

    Examples
    --------
    >>> has_split(Classifier(nn.Linear(4, 3), 3, 2)), has_split(nn.Linear(4, 2))
    (True, False)
    """
    if isinstance(module, Plain):
        return False
    return callable(getattr(module, "features", None)) and isinstance(getattr(module, "head", None), nn.Module)


def need_split(module: nn.Module, algorithm: str) -> None:
    """Raise an error that names the algorithm if the model does not separate features and head.

    Parameters
    ----------
    module
        The model.
    algorithm
        The algorithm's name for the message.

    Examples
    --------
    >>> need_split(nn.Linear(4, 2), "MOON")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: MOON: needs a model's features apart from its head, and Linear does not define ...
    """
    if not has_split(module):
        name = type(module.module if isinstance(module, Plain) else module).__name__
        raise ArgumentError(
            f"{algorithm}: needs a model's features apart from its head, and {name} does not define features(x) and "
            "head; add both (see fedrela.models.contract) or choose another algorithm"
        )


def num_features(module: nn.Module) -> int:
    """Return the number of features of a model with a split.

    Parameters
    ----------
    module
        The model.

    Examples
    --------
    >>> num_features(Classifier(nn.Linear(4, 3), 3, 2))
    3
    """
    need_split(module, "num_features")
    width = getattr(module, "num_features", None) or getattr(module.head, "in_features", None)
    if not isinstance(width, int):
        raise ArgumentError(f"{type(module).__name__}: num_features is missing; set it to the width of features(x)")
    return width


def adapt(module: nn.Module, input_shape: Sequence[int], num_classes: int, integers: bool = False) -> nn.Module:
    """Return a user's module as a model: itself if it has the split, else wrapped in `Plain`.

    It is called with a batch of two zero samples in evaluation mode, to detect a wrong shape before training.

    Parameters
    ----------
    module
        Your module.
    input_shape, num_classes
        Shape of one sample, and number of logits.
    integers
        Whether samples are int64, such as token ids.

    Examples
    --------
    >>> type(adapt(nn.Linear(4, 2), (4,), 2)).__name__
    'Plain'
    >>> adapt(nn.Linear(4, 2), (4,), 3)
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: Linear: expected logits of shape (batch, 3), got (2, 2) for two samples
    """
    model = module if has_split(module) else Plain(module)
    like = next((p for p in module.parameters() if p.is_floating_point()), torch.empty(0))
    with evaluation_mode(model):
        kind = torch.int64 if integers else like.dtype
        _probe(model, torch.zeros(2, *input_shape, dtype=kind, device=like.device), num_classes)
    return model


@contextlib.contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Evaluate without gradients inside, then restore the mode of every part."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in modes:
            part.training = training


def _probe(model: nn.Module, x: Tensor, num_classes: int) -> None:
    name = type(model.module if isinstance(model, Plain) else model).__name__
    logits = _output(name, model, x)
    if logits.shape != (2, num_classes):
        raise ArgumentError(
            f"{name}: expected logits of shape (batch, {num_classes}), got {_shape(logits)} for two samples"
        )
    if isinstance(model, Plain):
        return
    width = num_features(model)
    features = _output(f"{name}.features", model.features, x)
    if features.shape != (2, width):
        raise ArgumentError(
            f"{name}: expected features of shape (batch, {width}), got {_shape(features)} for two samples"
        )
    of_head = _output(f"{name}.head", model.head, features)
    if of_head.shape != logits.shape or not torch.allclose(of_head, logits, rtol=1e-4, atol=1e-5, equal_nan=True):
        raise ArgumentError(
            f"{name}: its output is not head(features(x)); change that, or wrap it in fedrela.models.Plain to use it "
            "without features"
        )


def _output(name: str, part: object, x: Tensor) -> Tensor:
    try:
        out = part(x) if callable(part) else None
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise ArgumentError(f"{name}: fails on a batch of shape {_shape(x)}: {reason}") from error
    if not isinstance(out, Tensor):
        raise ArgumentError(f"{name}: expected one tensor as its output, got {type(out).__name__}")
    return out


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def model_factory(
    model: Model, input_shape: tuple[int, ...], classes: int, integers: bool = False
) -> Callable[[], nn.Module]:
    """Return a function that copies a user's module; `model` is the module, or a function that makes it."""
    module = model if isinstance(model, nn.Module) else _made(model, input_shape, classes)
    return partial(copy.deepcopy, adapt(module, input_shape, classes, integers))


def _made(make: Callable[..., nn.Module], *sizes: Any) -> nn.Module:
    """Call a user's function or class with the two sizes, or raise if it does not take them."""
    try:
        signature = inspect.signature(make)
    except ValueError:  # some functions have none
        return make(*sizes)
    try:
        signature.bind(*sizes)
    except TypeError:
        name = getattr(make, "__name__", type(make).__name__)
        what = "expected a function or class that takes (input_shape, num_classes)"
        raise ArgumentError(f"{name}: {what}, got {name}{signature}") from None
    return make(*sizes)


def check_sizes(name: str, value: object) -> tuple[int, ...]:
    """Return a list of positive integers as a tuple, or raise."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ArgumentError(f"expected a list of integers, got {shown(value)}", argument=name)
    return tuple(check_integer(f"{name}[{i}]", size) for i, size in enumerate(value))


def image_shape(model: str, input_shape: Sequence[int], smallest: int = 1) -> tuple[int, int, int]:
    """Return an input shape as (channels, height, width), or raise if it is not an image or too small."""
    if len(input_shape) != 3:
        raise ArgumentError(
            f"{model}: expected images (channels, height, width), got samples of shape {tuple(input_shape)}; "
            "use mlp or logistic for tables"
        )
    channels, height, width = input_shape
    if min(height, width) < smallest:
        raise ArgumentError(
            f"{model}: expected images of at least {smallest} x {smallest} pixels, got {height} x {width}; "
            "use cnn_small or mlp for small ones"
        )
    return channels, height, width
