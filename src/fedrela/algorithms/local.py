"""The one training loop.

Per batch: loss, gradient, correction, clipping, step, after-step. An algorithm fills the slots it needs; a penalty on
the weights is a correction by its gradient. Whatever enters before the step enters the momentum as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from fedrela.algorithms.context import ClientContext
from fedrela.algorithms.samples import Batch
from fedrela.errors import ArgumentError
from fedrela.losses import LOSSES
from fedrela.models.arrays import FlatModel
from fedrela.models.sgd import Sgd

Loss = Callable[[Batch], Tensor]
Correction = Callable[[Tensor, Tensor], None]
AfterStep = Callable[[Tensor], None]

STEP_OPTIONS = ("lr", "momentum", "weight_decay")


@dataclass(frozen=True)
class Group:
    """A part of the model with an optimiser of its own; what is None is as for the rest.

    Attributes
    ----------
    part
        Name of the module.
    lr, momentum, weight_decay
        Of its steps.
    """

    part: str
    lr: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None


def train(
    context: ClientContext,
    *,
    loss: Loss | None = None,
    correct: Correction | None = None,
    after_step: AfterStep | None = None,
    groups: Sequence[Group] = (),
    momentum: float | None = None,
    weight_decay: float | None = None,
    clip: float | None = None,
) -> None:
    """Train ``turn.model`` on ``turn.samples`` for the epochs of ``turn.local``, and count the steps.

    Parameters
    ----------
    turn
        The client's turn.
    loss
        A scalar of a batch; without it the loss named in the configuration. Several heads on detached features are
        one sum, since their gradients do not meet.
    correct
        Called with all gradients and all trained weights after the backward pass: changes the gradients in place.
    after_step
        Called with all trained weights after each step: changes them in place.
    groups
        Parts with optimisers of their own.
    momentum, weight_decay, clip
        Instead of the configuration's. Weight decay is added after the clipping, and each optimiser's part of the
        gradient is clipped by itself.
    """
    model, local = context.model, context.local
    loss = loss or configured_loss(context)
    limit = local.clip if clip is None else clip
    steppers = _steppers(context, groups, momentum, weight_decay)
    order, view = context.stream("order"), context.stream("view")
    smallest = 2 if any(isinstance(part, _BatchNorm) for part in model.module.modules()) else 1
    model.module.train()
    for epoch in range(local.epochs):
        kept = context.scores if epoch == local.epochs - 1 else None
        for batch in context.samples.epoch(
            model.module, order.permutation(len(context.samples)), local.batch_size, view
        ):
            if len(batch.x) < smallest:
                continue
            _step(model, batch, loss, correct, after_step, steppers, limit)
            context.steps += 1
            if kept is not None and batch.scores is not None and len(batch.scores) == len(batch.at):
                kept[batch.at] = batch.scores.detach().cpu().numpy()
    if not model.attached():
        raise ArgumentError(
            f"{type(model.module).__name__}: its gradients were replaced in training; keep them in place"
        )


def _step(
    model: FlatModel,
    batch: Batch,
    loss: Loss,
    correct: Correction | None,
    after_step: AfterStep | None,
    steppers: Sequence[Sgd],
    limit: float,
) -> None:
    model.zero_grad()
    torch.autograd.backward(loss(batch))
    if correct is not None:
        with torch.no_grad():
            correct(model.gradient, model.weights)
    for stepper in steppers:
        if limit:
            clip_norm(stepper.gradient, limit)
        stepper.step()
    if after_step is not None:
        with torch.no_grad():
            after_step(model.weights)


def open_loss(context: ClientContext) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the loss named in the configuration, of logits and labels, with the counts of the labels in force."""
    function, counts = LOSSES[context.local.loss], torch.from_numpy(context.counts).to(context.model.vector)
    return lambda logits, labels: function(logits, labels, counts)


def configured_loss(context: ClientContext) -> Loss:
    """Return the loss named in the configuration, of a batch."""
    function = open_loss(context)
    return lambda batch: function(batch.forward(), batch.y)


def clip_norm(gradient: Tensor, limit: float) -> None:
    """Scale a gradient down to norm `limit` where it is longer, as torch's ``clip_grad_norm_`` does.

    >>> gradient = torch.tensor([3.0, 4.0])
    >>> clip_norm(gradient, 1.0)
    >>> round(gradient.norm().item(), 4)
    1.0
    """
    gradient.mul_((limit / (torch.linalg.vector_norm(gradient) + 1e-6)).clamp(max=1.0))


def _steppers(
    context: ClientContext, groups: Sequence[Group], momentum: float | None, weight_decay: float | None
) -> list[Sgd]:
    """Return the optimiser of the model, then those of the groups."""
    model, local = context.model, context.local
    places = [_place(model, group.part) for group in groups]
    end = model.layout.trained
    ordered = sorted((place.start, place.stop) for place in places)
    if any(stop != start for (_, stop), (start, _) in pairwise([*ordered, (end, end)])):
        raise ArgumentError("groups: parts with steps of their own must be the last trained arrays of the model")
    rest = Group("", local.lr, _first(momentum, local.momentum), _first(weight_decay, local.weight_decay))
    steppers = []
    for group, place in zip((rest, *groups), (slice(0, ordered[0][0] if ordered else end), *places), strict=True):
        chosen = {name: _first(getattr(group, name), getattr(rest, name)) for name in STEP_OPTIONS}
        steppers.append(Sgd(model.weights[place], model.gradient[place], **chosen))
    return steppers


def _first(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _place(model: FlatModel, part: str) -> slice:
    """Return where the trained arrays of a module lie."""
    chosen = [e for e in model.layout.entries if e.kind == "parameter" and e.name.startswith(f"{part}.")]
    if not chosen:
        raise ArgumentError(f"groups: the model has no trained part {part!r}")
    return slice(chosen[0].place.start, chosen[-1].place.stop)  # a module's parameters lie together
