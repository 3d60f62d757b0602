"""FedMix: mix each sample with averages of other clients' samples, to first order.

Yoon et al., FedMix: approximation of mixup under mean augmented federated learning, ICLR 2021.

    before round 1: every client sends the mean input and mean one-hot label of each group of its samples
    loss = (1 - lam) CE(f(u), y) + lam CE(f(u), y_bar) + lam <grad_u CE(f(u), y), x_bar>,   u = (1 - lam) x

(x_bar, y_bar) is drawn from the pool per batch. Without the last term it is NaiveMix to first order.

What leaves the client: weights, number of samples; once, averages of its raw samples and labels, which are data too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Algorithm, Arrays, ArraySpec, Batch, ClientContext, Exchange, ServerContext, Sizes
from fedrela.options import Options, option


@dataclass(frozen=True)
class FedMixParams(Options):
    """The paper tries lam from 0.05 to 0.2."""

    lam: float = option(0.1, "weight of the averages", symbol="lambda", ge=0, lt=1)
    group: int = option(0, "samples per average; 0: all of a client's", symbol="M", ge=0)
    second_order: bool = option(True, "keep the term with the gradient in the input")


class FedMix(Algorithm):
    """Mixes samples with averages of other clients' samples, to first order."""

    name = "fedmix"
    mixes_inputs = True
    label = "FedMix"
    paper = "Yoon et al., 2021"
    cost = 2.5
    discloses = (("means", "averages of its samples, and the shares of all classes in them"),)
    Params = FedMixParams
    reduces_to = "fedavg at lam = 0"
    broadcasts = ("x", "y", "groups")  # the pool
    own_loss = True

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return an empty pool, and the number of averages per client."""
        return {
            "x": np.zeros((0, *sizes.inputs), np.float32),
            "y": np.zeros((0, sizes.classes), np.float32),
            "groups": np.array(self._groups(sizes)),
        }

    def _groups(self, sizes: Sizes) -> int:
        return -(-sizes.largest // self.params.group) if self.params.group else 1

    def exchanges(self) -> tuple[Exchange, ...]:
        """Ask every client once for its averages."""
        return (Exchange("means", "all", every=0),)

    def answers(self, exchange: str, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return as many averages as the largest client has groups, and which of them are in use."""
        groups = self._groups(sizes)
        return {
            "x": ArraySpec((groups, *sizes.inputs)),
            "y": ArraySpec((groups, sizes.classes)),
            "used": ArraySpec((groups,)),
        }

    def answer(self, exchange: str, context: ClientContext) -> Arrays:
        """Average the client's samples, group by group."""
        n, C = len(context.samples), context.counts.size
        size = self.params.group or n
        order = context.stream("groups").permutation(n)
        parts = [order[at : at + size] for at in range(0, n, size)]
        rows = int(context.received["groups"])
        x = np.zeros((rows, *context.samples.inputs.shape[1:]), np.float32)
        y, used = np.zeros((rows, C), np.float32), np.zeros(rows, np.float32)
        for row, part in enumerate(parts):
            x[row] = context.samples.scaled(part).mean(dim=0).cpu().numpy()
            y[row], used[row] = np.bincount(context.samples.labels[part], minlength=C) / len(part), 1.0
        return {"x": x, "y": y, "used": used}

    def absorb(self, exchange: str, context: ServerContext) -> None:
        """Pool the averages."""
        for name in ("x", "y"):
            context.state[name] = np.concatenate([u.arrays[name][u.arrays["used"] > 0] for u in context.uploads])

    def client(self, context: ClientContext) -> None:
        """Minimise the mixed loss."""
        lam, rng = self.params.lam, context.stream("mix")
        if lam == 0:
            return context.train()
        pool_x, pool_y = (context.tensor(context.received[name]) for name in ("x", "y"))

        def loss(batch: Batch) -> Tensor:
            drawn = int(rng.integers(len(pool_x)))
            u = ((1 - lam) * batch.x).requires_grad_(self.params.second_order)
            logits = batch.module(u)
            batch.scores = logits
            own = cross_entropy(logits, batch.y)
            value: Tensor = (1 - lam) * own + lam * cross_entropy(logits, pool_y[drawn].expand_as(logits))
            if self.params.second_order:
                (slope,) = torch.autograd.grad(own, [u], create_graph=True)
                value = in_weights_alone(value + lam * (slope * pool_x[drawn]).sum(), batch.module)
            return value

        context.train(loss=loss)


def in_weights_alone(value: Tensor, module: nn.Module) -> Tensor:
    """Return the value with its gradient in the weights only, which saves a tenth of the work.

    >>> x, module = torch.ones(1, 2, requires_grad=True), nn.Linear(2, 1)
    >>> in_weights_alone(module(x).sum(), module).backward()
    >>> module.weight.grad.tolist(), x.grad
    ([[1.0, 1.0]], None)
    """
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    slopes = torch.autograd.grad(value, weights, allow_unused=True)
    surrogate = sum((w * g).sum() for w, g in zip(weights, slopes, strict=True) if g is not None)
    return surrogate + (value - surrogate).detach()
