"""The samples of one client for one turn: where they lie, their labels in force, and how they become batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrela.models.inputs import Scaling

View = Callable[[Tensor, np.random.Generator], Tensor]
READY_BYTES = 64 * 2**20  # samples of up to that size are scaled once a turn, and not once a batch


@dataclass
class Batch:
    """One mini-batch.

    Attributes
    ----------
    module
        The model in training.
    x
        What goes into it, scaled; where the samples have views, all views one after the other.
    y
        The labels in force.
    at
        Which of the client's samples these are.
    scores
        The logits that stand for these samples, where the loss left them here: `forward` does.
    """

    module: nn.Module
    x: Tensor
    y: Tensor
    at: NDArray[np.int64]
    scores: Tensor | None = None

    def forward(self) -> Tensor:
        """Return the logits of the model."""
        self.scores = self.module(self.x)
        return self.scores

    def features(self) -> Tensor:
        """Return the features of a model with a split."""
        split: Any = self.module
        features: Tensor = split.features(self.x)
        return features

    def head(self, features: Tensor) -> Tensor:
        """Return the logits that the model's head makes of features."""
        split: Any = self.module
        logits: Tensor = split.head(features)
        self.scores = logits
        return logits


@dataclass
class Samples:
    """What a client trains on.

    Attributes
    ----------
    inputs
        Stored samples of any number of clients, raw, on the CPU.
    index
        Which of them are this client's.
    labels
        Their labels in force.
    scaling
        How stored samples become inputs of the model.
    device
        Where the model is.
    view
        What is done to each raw batch before scaling, such as random crops; None for nothing.
    dtype
        Of the model.
    """

    inputs: Tensor
    index: NDArray[np.int64]
    labels: NDArray[np.int64]
    scaling: Scaling
    device: torch.device
    view: View | None = None
    dtype: torch.dtype = torch.float32

    def __len__(self) -> int:
        return len(self.index)

    def raw(self, at: NDArray[np.int64] | slice) -> Tensor:
        """Return samples as they are stored."""
        return self.inputs.index_select(0, torch.from_numpy(self.index[at]))  # copies rows; brackets copy bytes

    def scaled(self, at: NDArray[np.int64] | slice) -> Tensor:
        """Return samples as inputs of the model, without views."""
        return self.as_input(self.raw(at))

    def as_input(self, raw: Tensor) -> Tensor:
        """Return stored samples as inputs of the model."""
        return self.scaling.apply(raw.to(self.device), self.dtype)

    def epoch(
        self, module: nn.Module, order: NDArray[np.int64], size: int, rng: np.random.Generator
    ) -> Iterator[Batch]:
        """Yield the batches of one epoch; the last one may be smaller."""
        labels = torch.from_numpy(self.labels[order]).to(self.device)
        ready = self._ready(order)
        for start in range(0, len(order), size):
            at = order[start : start + size]
            if ready is not None:
                x = ready[start : start + size]
            elif self.view is not None:
                x = self.as_input(self.view(self.raw(at), rng))
            else:
                x = self.scaled(at)
            yield Batch(module, x, labels[start : start + size], at)

    def _ready(self, order: NDArray[np.int64]) -> Tensor | None:
        """Return all samples in this order, where they need no view and are not too many."""
        values = self.inputs[0].numel() if len(self.inputs) else 0
        if self.view is not None or len(order) * values * 4 > READY_BYTES:
            return None
        return self.scaled(order)
