"""Fed-GraB: balance the positive and negative gradients of each class by a feedback controller.

Xiao et al., Fed-GraB: federated long-tailed learning with self-adjusting gradient balancer, NeurIPS 2023.

    loss = (1 / B) sum over samples and classes of BCE(z, one-hot)
    its gradient in z_bc is multiplied by f(u_c) where c is the label and by f(-u_c) elsewhere,
    f(v) = (10 / 9) / (1 / 9 + exp(-v / 2)),  f(0) = 1
    u_c <- u_c + 10 (e - e') + 0.01 e + 0.1 (e - 2 e' + e''),  e = -(P_c - N_c)
    P_c, N_c: sums of the |multiplied gradients| of positives and negatives so far

A class may be skipped in a step: starting at the most frequent one, with probability 0.1^(k / (C - 1)) where k is the
number of classes skipped so far; its gradient is then neither multiplied nor counted.

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

from fedrela.algorithms.base import Algorithm, ArraySpec, Batch, ClientContext, Sizes
from fedrela.options import Options, option

STATE = ("u", "error", "former", "positive", "negative")


@dataclass(frozen=True)
class FedGrabParams(Options):
    """Where the official code departs from the paper, the paper is the default."""

    head: str = option("trained", "the classifier: trained, or frozen as in the code", choices=("trained", "frozen"))
    tail: str = option("norms", "balance classes with short classifier rows, or all (code)", choices=("norms", "all"))
    order: str = option("frequency", "skip classes by local frequency, or by id (code)", choices=("frequency", "id"))


def gain(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return f(v) = (10 / 9) / (1 / 9 + exp(-v / 2)), between 0 and 10.

    >>> gain(np.array([0.0])).round(6).tolist()
    [1.0]
    """
    with np.errstate(over="ignore"):
        return np.asarray((10 / 9) / (1 / 9 + np.exp(-v / 2)))


class Balancer:
    """The controllers, one per class."""

    def __init__(self, classes: int) -> None:
        self.state, self.active = {name: np.zeros(classes) for name in STATE}, np.ones(classes, bool)

    def step(self) -> NDArray[np.float64]:
        """Feed the current errors to the controllers and return their outputs u."""
        s = self.state
        e = np.where(self.active, s["negative"] - s["positive"], 0.0)
        s["u"] = s["u"] + 10 * (e - s["error"]) + 0.01 * e + 0.1 * (e - 2 * s["error"] + s["former"])
        s["former"], s["error"] = s["error"], e
        return s["u"]

    def count(self, gradient: NDArray[np.float64], labels: NDArray[np.int64], skipped: NDArray[np.bool_]) -> None:
        """Add the multiplied gradients (B, C) of a batch, except those of skipped classes."""
        positive = np.eye(gradient.shape[1], dtype=bool)[labels]
        size = np.where(skipped, 0.0, np.abs(gradient))
        self.state["positive"] = self.state["positive"] + (size * positive).sum(axis=0)
        self.state["negative"] = self.state["negative"] + (size * ~positive).sum(axis=0)


def skipped_classes(order: NDArray[np.int64], draw: Callable[[], float]) -> NDArray[np.bool_]:
    """Return which classes are skipped in a step, deciding in this order."""
    skipped, k = np.zeros(order.size, bool), 0
    for c in order.tolist():
        probability = 0.1 ** (k / max(order.size - 1, 1))
        if probability == 1 or draw() < probability:
            skipped[c] = True
            k += 1
    return skipped


class FedGrab(Algorithm):
    """Balances positive and negative gradients of each class by feedback."""

    name = "fedgrab"
    label = "Fed-GraB"
    paper = "Xiao et al., 2023"
    cost = 1.1
    Params = FedGrabParams
    own_loss = True
    needs_split = True

    def module(self, model: nn.Module, classes: int, seed: int) -> nn.Module:
        """Return the model, with its head frozen if configured so."""
        head: Any = model.head
        if self.params.head == "frozen":
            head.requires_grad_(False)
        return model

    def keeps(self, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return the controllers."""
        return {name: ArraySpec((sizes.classes,), "float64") for name in STATE}

    def client(self, context: ClientContext) -> None:
        """Train with multiplied gradients."""
        classes = context.counts.size
        balancer = Balancer(classes)
        balancer.state |= context.state
        balancer.active = self._tail(context.model.module, classes)
        order = np.argsort(-context.counts, kind="stable") if self.params.order == "frequency" else np.arange(classes)
        draw = context.stream("passed over").random

        def loss(batch: Batch) -> Tensor:
            return balanced_bce(batch.forward(), batch.y, balancer, skipped_classes(order, draw))

        context.train(loss=loss)
        context.state.update(balancer.state)

    def _tail(self, module: nn.Module, classes: int) -> NDArray[np.bool_]:
        head: Any = getattr(module, "head", None)
        if self.params.tail == "all" or not isinstance(head, nn.Linear):
            return np.ones(classes, bool)
        norms = head.weight.detach().norm(dim=1).cpu().numpy()
        return np.asarray(norms <= norms.mean())


def balanced_bce(logits: Tensor, labels: Tensor, balancer: Balancer, skipped: NDArray[np.bool_]) -> Tensor:
    """Return the sum of BCE over classes, mean over samples, whose gradient in the logits is multiplied."""
    u = balancer.step()
    up, down = (np.where(skipped | ~balancer.active, 1.0, gain(v)) for v in (u, -u))
    hot = one_hot(labels, logits.shape[1]).to(logits)
    gains = torch.where(hot > 0, torch.from_numpy(up).to(logits), torch.from_numpy(down).to(logits))
    loss = binary_cross_entropy_with_logits(logits, hot, reduction="sum") / len(logits)
    gradient = gains * (torch.sigmoid(logits) - hot).detach() / len(logits)
    balancer.count(gradient.double().cpu().numpy(), labels.cpu().numpy(), skipped)
    surrogate = (gradient * logits).sum()  # its gradient in the logits is the multiplied one
    return surrogate + (loss - surrogate).detach()
