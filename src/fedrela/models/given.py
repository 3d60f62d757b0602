"""A user's own module as a model of a run, and the device that runs are on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from fedrela.models.contract import adapt

Model = nn.Module | Callable[[tuple[int, ...], int], nn.Module]


@dataclass(frozen=True)
class Given:
    """Gives copies of a user's module, which itself stays as it is."""

    module: nn.Module

    def __call__(self) -> nn.Module:
        """Return a copy."""
        return copy.deepcopy(self.module)


def given(model: Model, input_shape: tuple[int, ...], classes: int) -> Given:
    """Return what makes copies of a module, or of what a function of input shape and number of classes makes."""
    module = model if isinstance(model, nn.Module) else model(input_shape, classes)
    return Given(adapt(module, input_shape, classes))


def device_of(name: str) -> str:
    """Return the device that a word stands for; ``"auto"`` takes CUDA or MPS where there is one.

    >>> device_of("cpu")
    'cpu'
    """
    if name != "auto":
        return name
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def dtype_of(name: str) -> torch.dtype:
    """Return the dtype of a name."""
    dtype: torch.dtype = getattr(torch, name)
    return dtype
