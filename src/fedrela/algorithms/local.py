"""Local training: a client's samples, the batches they become, and the one training loop.

Per batch: loss, gradient, correction, clipping, step, after-step. An algorithm sets those it needs; a penalty on the
weights is a correction by its gradient. Everything before the step also enters the momentum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.modules.batchnorm import _BatchNorm

from fedrela.errors import ArgumentError
from fedrela.models.flat_model import FlatModel
from fedrela.models.inputs import Scaling
from fedrela.models.runtime import lower_precision
from fedrela.models.sgd import Sgd

View = Callable[[Tensor, np.random.Generator], Tensor]
Streams = Callable[[str], np.random.Generator]
Correction = Callable[[Tensor, Tensor], object]
AfterStep = Callable[[Tensor], object]

READY_BYTES = 64 * 2**20  # up to this size, samples are scaled once per epoch instead of once per batch
STEP_OPTIONS = ("lr", "momentum", "weight_decay")


@dataclass(frozen=True)
class Local:
    """How a client trains in this round."""

    lr: float
    epochs: int = 1
    batch_size: int = 32
    momentum: float = 0.0
    weight_decay: float = 0.0
    clip: float = 0.0
    loss: str = "cross_entropy"
    precision: str = "float32"


@dataclass
class Batch:
    """One mini-batch.

    Attributes
    ----------
    module
        The model in training.
    x
        Its scaled input; if samples have several views, first one view of all samples, then the next.
    y
        The current labels.
    at
        Positions of these samples among the client's.
    scores
        Logits of these samples, if the loss stored them here; `forward` and `head` do.
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
        """Return the logits of the model's head for these features."""
        split: Any = self.module
        self.scores = split.head(features)
        return self.scores


Loss = Callable[[Batch], Tensor]


@dataclass
class Samples:
    """What a client trains on.

    Attributes
    ----------
    inputs
        Stored samples of one or more clients, raw, on the CPU or on the model's device.
    index
        This client's rows of `inputs`.
    labels
        Their current labels.
    scaling
        How stored samples become inputs of the model.
    device
        Where the model is.
    view
        Applied to each raw batch before scaling, such as random crops; None for nothing.
    dtype
        Dtype of the model.
    """

    inputs: Tensor
    index: NDArray[np.int64]
    labels: NDArray[np.int64]
    scaling: Scaling
    device: torch.device
    view: View | None = None
    dtype: torch.dtype = torch.float32

    @classmethod
    def ready(cls, inputs: Tensor, labels: NDArray[np.int64], device: torch.device, dtype: torch.dtype) -> Samples:
        """Return samples that are inputs of the model already and need no scaling."""
        return cls(inputs, np.arange(len(labels)), labels, Scaling(), device, dtype=dtype)

    def __len__(self) -> int:
        return len(self.index)

    def raw(self, at: NDArray[np.int64] | slice) -> Tensor:
        """Return samples as they are stored, on the model's device."""
        index = torch.from_numpy(self.index[at]).to(self.inputs.device)
        return self.inputs.index_select(0, index).to(self.device)  # faster than indexing by brackets

    def scaled(self, at: NDArray[np.int64] | slice) -> Tensor:
        """Return samples as inputs of the model, without views."""
        return self.as_input(self.raw(at))

    def as_input(self, raw: Tensor) -> Tensor:
        """Return stored samples as inputs of the model."""
        return self.scaling.apply(raw.to(self.device), self.dtype)

    def epoch(
        self, module: nn.Module, order: NDArray[np.int64], size: int, rng: np.random.Generator | None
    ) -> Iterator[Batch]:
        """Yield the batches of one epoch; the last one may be smaller."""
        labels = _split(torch.from_numpy(self.labels[order]).to(self.device), size)
        ready = self._ready(order)
        inputs = None if ready is None else _split(ready, size)
        for number, start in enumerate(range(0, len(order), size)):
            at = order[start : start + size]
            if inputs is not None:
                x = inputs[number]
            elif self.view is not None and rng is not None:
                x = self.as_input(self.view(self.raw(at), rng))
            else:
                x = self.scaled(at)
            yield Batch(module, x, labels[number], at)

    def _ready(self, order: NDArray[np.int64]) -> Tensor | None:
        """Return all samples in this order, if they need no view and fit into `READY_BYTES`."""
        if self.view is not None or len(order) * math.prod(self.inputs.shape[1:]) * 4 > READY_BYTES:
            return None
        return self.scaled(order)


def _split(whole: Tensor, size: int) -> Sequence[Tensor]:
    """Return the batches of a tensor; a single one is the tensor itself, which saves small clients time."""
    return [whole] if len(whole) <= size else torch.split(whole, size)


@dataclass(frozen=True)
class Group:
    """A module of the model with its own optimiser, like a parameter group of PyTorch.

    Attributes
    ----------
    part
        Name of the module.
    lr, momentum, weight_decay
        Options of its optimiser; None for those of the rest of the model.
    """

    part: str
    lr: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None


def on_logits(function: Callable[[Tensor, Tensor], Tensor]) -> Loss:
    """Convert a loss of logits and labels to a loss of a batch."""
    return lambda batch: function(batch.forward(), batch.y)


CROSS_ENTROPY = on_logits(cross_entropy)


def train(
    model: FlatModel,
    samples: Samples,
    local: Local,
    rng: Streams,
    *,
    loss: Loss = CROSS_ENTROPY,
    correct: Correction | None = None,
    after_step: AfterStep | None = None,
    groups: Sequence[Group] = (),
    scores: NDArray[np.float32] | None = None,
) -> int:
    """Train a model by SGD and return the number of steps.

    Parameters
    ----------
    model, samples
        Trained in place, on these samples.
    local
        Epochs, batch size and options of SGD. Weight decay is added after clipping, and each optimiser's part of the
        gradient is clipped separately. Weights, gradients and steps have the model's dtype in any precision.
    rng
        Returns the random generator of a purpose: ``"order"`` of samples, ``"view"`` of augmentation.
    loss
        A scalar per batch. Several heads on detached features are one sum, since their gradients do not mix.
    correct
        Called with all gradients and all trained weights after the backward pass; changes the gradients in place.
    after_step
        Called with all trained weights after each step; changes them in place.
    groups
        Modules with their own optimisers.
    scores
        Filled with each sample's logits in the last epoch, (n, C), if the loss stores them in the batch.

    Examples
    --------
    Ten samples in batches of four, twice:

    >>> from fedrela.streams import stream
    >>> x, y = torch.zeros(10, 4), np.zeros(10, np.int64)
    >>> samples = Samples.ready(x, y, torch.device("cpu"), torch.float32)
    >>> local = Local(lr=0.1, epochs=2, batch_size=4)
    >>> train(FlatModel(nn.Linear(4, 2)), samples, local, lambda purpose: stream(1, purpose))
    6
    """
    optimizers = _optimizers(model, local, groups)
    order, view = rng("order"), None if samples.view is None else rng("view")
    smallest = 2 if any(isinstance(part, _BatchNorm) for part in model.parts) else 1
    model.train()
    steps = 0
    with torch.no_grad(), lower_precision(model.vector.device, local.precision):
        fill_gradient = model.recorder.bind(loss)
        for epoch in range(local.epochs):
            collect = scores is not None and epoch == local.epochs - 1
            collected = []  # copied after the epoch: copying makes the CPU wait for a GPU
            for batch in samples.epoch(model.module, order.permutation(len(samples)), local.batch_size, view):
                if batch.x.shape[0] < smallest:  # len() of a tensor takes longer
                    continue
                fill_gradient(batch)
                _step(model, correct, after_step, optimizers, local.clip)
                steps += 1
                if collect and batch.scores is not None and len(batch.scores) == len(batch.at):
                    collected.append((batch.at, batch.scores.detach()))
            if scores is not None:
                for at, logits in collected:
                    scores[at] = logits.float().cpu().numpy()
    if not model.attached():
        raise ArgumentError(f"{type(model.module).__name__}: training replaced its gradients; keep them in place")
    return steps


def _step(
    model: FlatModel,
    correct: Correction | None,
    after_step: AfterStep | None,
    optimizers: Sequence[Sgd],
    clip: float,
) -> None:
    if correct is not None:
        correct(model.gradient, model.weights)
    for optimizer in optimizers:
        if clip:
            clip_norm(optimizer.gradient, clip)
        optimizer.step()
    if after_step is not None:
        after_step(model.weights)


def clip_norm(gradient: Tensor, limit: float) -> None:
    """Scale a gradient down to norm `limit` if it is longer, as torch's ``clip_grad_norm_`` does.

    >>> gradient = torch.tensor([3.0, 4.0])
    >>> clip_norm(gradient, 1.0)
    >>> round(gradient.norm().item(), 4)
    1.0
    """
    gradient.mul_((limit / (torch.linalg.vector_norm(gradient) + 1e-6)).clamp(max=1.0))


def _optimizers(model: FlatModel, local: Local, groups: Sequence[Group]) -> list[Sgd]:
    """Return the optimiser of the model, then those of the groups; reuse the last ones if the options are the same."""
    key = local.lr, local.momentum, local.weight_decay, *groups
    if model.optimizers is not None and model.optimizers[0] == key:
        for optimizer in model.optimizers[1]:
            optimizer.restart()
        return model.optimizers[1]
    spans = [_span(model, group.part) for group in groups]
    end = model.layout.trained
    ordered = sorted((span.start, span.stop) for span in spans)
    if any(stop != start for (_, stop), (start, _) in pairwise([*ordered, (end, end)])):
        raise ArgumentError("groups: modules with their own optimisers must be the last trained arrays of the model")
    optimizers = []
    for group, span in zip((local, *groups), (slice(0, ordered[0][0] if ordered else end), *spans), strict=True):
        own = {name: getattr(group, name) for name in STEP_OPTIONS}
        options = {name: getattr(local, name) if value is None else value for name, value in own.items()}
        padded = None if groups else model.padded
        optimizers.append(Sgd(model.weights[span], model.gradient[span], **options, padded=padded))
    model.optimizers = key, optimizers
    return optimizers


def _span(model: FlatModel, part: str) -> slice:
    """Return the position of a module's trained arrays in the vector."""
    entries = [e for e in model.layout.entries if e.kind == "parameter" and e.name.startswith(f"{part}.")]
    if not entries:
        raise ArgumentError(f"groups: the model has no trained module {part!r}")
    return slice(entries[0].span.start, entries[-1].span.stop)  # a module's parameters are contiguous


def normalizer(steps: int, *, momentum: float = 0.0, lr: float | None = None, mu: float = 0.0) -> float:
    """Return a, the L1 norm of the weights of a client's gradients in its path x - y = lr sum_k a_k g_k.

    With a constant gradient g of the loss the client moves by -lr a g. With momentum rho and a proximal term mu a step
    is m <- rho m + 1 - lr mu a, a <- a + m. In closed form, plain SGD: a = tau; momentum alone:
    a = [tau - rho (1 - rho^tau) / (1 - rho)] / (1 - rho); the proximal term alone: a = (1 - (1 - lr mu)^tau) / (lr mu).

    Parameters
    ----------
    steps
        tau, the number of local steps.
    momentum
        rho, in [0, 1).
    lr, mu
        Learning rate and weight of the proximal term; the rate is required only if `mu` is not 0.

    Examples
    --------
    >>> [round(normalizer(tau, momentum=0.9), 6) for tau in (1, 3, 6, 12)]
    [1.0, 5.61, 17.82969, 55.418658]
    >>> round(normalizer(3, momentum=0.9, lr=0.05, mu=0.01), 3)
    5.608
    """
    if steps < 0 or not 0 <= momentum < 1 or not mu >= 0:
        raise ArgumentError(f"normalizer: steps {steps}, momentum {momentum} or mu {mu} is out of range")
    if mu and lr is None:
        raise ArgumentError("normalizer: a proximal term (mu > 0) requires the learning rate")
    m, a, pull = 0.0, 0.0, (lr or 0.0) * mu
    for _ in range(steps):
        m = momentum * m + 1 - pull * a
        a += m
    return a
