"""The contract of a model: ``features(x) -> (B, num_features)``, a module ``head``, and logits = head(features(x)).

A plain `torch.nn.Module` without that split trains and is scored as well. It only cannot serve an algorithm that looks
at features or exchanges the head, and says so before training starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import torch
from torch import Tensor, nn

from fedrela.errors import ArgumentError


class Classifier(nn.Module):
    """A body that makes features, and a linear head on them.

    Parameters
    ----------
    body
        Maps a batch to features of shape (B, num_features).
    num_features, num_classes
        Sizes of the head.
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
    """Any module as a model: it trains and is scored, but has no features and no head."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of a batch."""
        logits: Tensor = self.module(x)
        return logits

    def features(self, x: Tensor) -> Tensor:
        """Raise: there is no such split."""
        self._refuse()

    @property
    def head(self) -> nn.Module:
        """Raise: there is no such split."""
        self._refuse()

    @property
    def num_features(self) -> int:
        """Raise: there is no such split."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ArgumentError(_no_split("this algorithm", self.module))


def has_split(module: nn.Module) -> bool:
    """Whether a module says which part of it makes features and which is the head."""
    if isinstance(module, Plain):
        return False
    return callable(getattr(module, "features", None)) and isinstance(getattr(module, "head", None), nn.Module)


def need_split(module: nn.Module, algorithm: str) -> None:
    """Raise one line that names the algorithm where it needs features and the model has none."""
    if not has_split(module):
        raise ArgumentError(_no_split(algorithm, module.module if isinstance(module, Plain) else module))


def num_features(module: nn.Module) -> int:
    """Return the number of features of a model with a split."""
    need_split(module, "num_features")
    width = getattr(module, "num_features", None) or getattr(module.head, "in_features", None)
    if not isinstance(width, int):
        raise ArgumentError(f"{type(module).__name__}: num_features is missing; set it to the width of features(x)")
    return width


def adapt(module: nn.Module, input_shape: Sequence[int], num_classes: int) -> nn.Module:
    """Return a user's module as a model: itself where it has the split, wrapped in `Plain` where not.

    Two samples of zeros go through it in evaluation mode, so that a wrong shape is found before training.
    """
    model = module if has_split(module) else Plain(module)
    modes = {part: part.training for part in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            _probe(model, _zeros(module, input_shape), num_classes)
    finally:
        for part, training in modes.items():
            part.training = training
    return model


def _zeros(module: nn.Module, input_shape: Sequence[int]) -> Tensor:
    like = next((p for p in module.parameters() if p.is_floating_point()), torch.empty(0))
    return torch.zeros(2, *input_shape, dtype=like.dtype, device=like.device)


def _probe(model: nn.Module, x: Tensor, num_classes: int) -> None:
    name = type(model.module if isinstance(model, Plain) else model).__name__
    logits = _answer(name, model, x)
    if logits.shape != (2, num_classes):
        raise ArgumentError(f"{name}: logits of shape (batch, {num_classes}) are needed, two samples gave {_s(logits)}")
    if isinstance(model, Plain):
        return
    width = num_features(model)
    features = _answer(f"{name}.features", model.features, x)
    if features.shape != (2, width):
        raise ArgumentError(f"{name}: features of shape (batch, {width}) are needed, two samples gave {_s(features)}")
    again = _answer(f"{name}.head", model.head, features)
    if again.shape != logits.shape or not torch.allclose(again, logits, rtol=1e-4, atol=1e-5, equal_nan=True):
        raise ArgumentError(
            f"{name}: its output is not head(features(x)); make it so, or wrap it in fedrela.models.Plain to use it "
            "without features"
        )


def _answer(name: str, part: object, x: Tensor) -> Tensor:
    try:
        out = part(x) if callable(part) else None
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise ArgumentError(f"{name}: fails on a batch of shape {_s(x)}: {reason}") from error
    if not isinstance(out, Tensor):
        raise ArgumentError(f"{name}: one tensor is needed as its answer, got {type(out).__name__}")
    return out


def _s(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def _no_split(need: str, module: nn.Module) -> str:
    return (
        f"{need}: needs the features of a model apart from its head, and {type(module).__name__} does not say which "
        "are its features(x) and its head; give it both (see fedrela.models.contract) or choose another algorithm"
    )
