"""MOON: keep a client's features near the global model's and away from those of its previous model.

Li et al., Model-contrastive federated learning, CVPR 2021.

    y_i <- SGD on  loss(y) + mu con,   con = mean_b [ log sum_j exp(s_j / T) - s_0 / T ]
    s_0  = cos(z, z_global),  s_1 = cos(z, z_previous)      z: features of the model in training; the others are frozen
    x   <- sum_i (n_i / n) y_i

z_previous are the features of the client's model after its last round. In its first round there is none: with the
global model in its place (paper) con is log 2, without any (code) 0; neither has a gradient, so the term is left out.
Frozen models are in evaluation mode. Features are those before the head; with ``projection = 256`` in ``[model]`` they
are the paper's projection.

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fedrela.algorithms.base import Algorithm, ArraySpec, Batch, ClientContext, Sizes
from fedrela.losses import contrastive
from fedrela.options import Options, option


@dataclass(frozen=True)
class MoonParams(Options):
    """The official code: mu 1 and temperature 0.5; the paper uses mu 5 on CIFAR-10."""

    mu: float = option(1.0, "weight of the contrastive term", symbol="mu", ge=0)
    temperature: float = option(0.5, "temperature", symbol="tau", gt=0)


class Moon(Algorithm):
    """Keeps features near the global model's and away from the client's previous ones."""

    name = "moon"
    label = "MOON"
    paper = "Li et al., 2021"
    cost = 1.7
    Params = MoonParams
    reduces_to = "fedavg at mu = 0, and in every client's first round"
    needs_split = True

    def keeps(self, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return the client's last model, including buffers."""
        return {"previous": ArraySpec((sizes.shared,), sizes.dtype)}

    def client(self, context: ClientContext) -> None:
        """Minimise the loss plus the contrastive term."""
        if self.params.mu and context.state:
            self._train(context)
        else:
            context.train()
        context.state["previous"] = context.split.shared.read(context.model)

    def _train(self, context: ClientContext) -> None:
        mu, temperature, loss, frozen = self.params.mu, self.params.temperature, context.loss(), _frozen(context)
        cached = None if context.samples.view else [_all_features(context, vector) for vector in frozen]

        def objective(batch: Batch) -> Tensor:
            if cached is not None:
                others = torch.stack([z[batch.at] for z in cached])
            else:
                others = torch.stack([_features(context, vector, batch.x) for vector in frozen])
            z = batch.features()
            term: Tensor = mu * contrastive(z, others[0], others[1:], temperature)
            return loss(batch.head(z), batch.y) + term

        context.train(loss=objective)


def _frozen(context: ClientContext) -> tuple[Tensor, Tensor]:
    """Return the global model and the client's previous one, as vectors."""
    now = context.model.vector.clone()
    with context.model.holding(now):
        context.split.shared.write(context.model, context.state["previous"])
        return now, context.model.vector.clone()


def _features(context: ClientContext, vector: Tensor, x: Tensor) -> Tensor:
    """Return the features of a frozen model, in evaluation mode."""
    module: Any = context.model.module
    module.eval()
    with context.model.holding(vector):
        z: Tensor = module.features(x)
    module.train()
    return z


def _all_features(context: ClientContext, vector: Tensor) -> Tensor:
    """Return the features of all samples; without augmentation they are the same in every epoch."""
    with context.model.holding(vector):
        return context.features()
