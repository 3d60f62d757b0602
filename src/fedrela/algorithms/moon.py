"""MOON: keep a client's features near the global model's and away from its own former ones.

Li et al., Model-contrastive federated learning, CVPR 2021.

    loss = CE(f(x), y) + mu con,   con = mean_b [ log sum_j exp(s_j / T) - s_0 / T ]
    s_0 = cos(z, z_global),  s_1 = cos(z, z_previous)       z: features of the model in training; the others are frozen

Features are those before the head; with ``projection = 256`` in ``[model]`` they are the paper's projection. At a
client's first turn the previous model is the global one, or there is none: both make no gradient.

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fedrela.algorithms.base import Algorithm, Field, Fields, Sizes
from fedrela.algorithms.local import open_loss, train
from fedrela.algorithms.params import Params, param
from fedrela.algorithms.samples import Batch
from fedrela.algorithms.turns import Arrays, ClientTurn
from fedrela.losses import contrastive


@dataclass(frozen=True)
class MoonParams(Params):
    """The official code: mu 1 and temperature 0.5; the paper uses mu 5 on CIFAR-10."""

    mu: float = param(1.0, "mu", "weight of the contrastive term", low=0)
    temperature: float = param(0.5, "tau", "temperature", above=0)
    first: str = param(
        "global", "z_prev", "at a client's first turn: the global model as the paper, or none as the code",
        choices=("global", "none"),
    )  # fmt: skip


class Moon(Algorithm):
    """FedAvg with a contrastive term on features."""

    name = "moon"
    paper = "Li et al., 2021"
    Params = MoonParams
    uploads = ("weights",)
    reduces_to = "fedavg at mu = 0, and at every client's first turn"
    needs_split = True

    def keeps(self, sizes: Sizes) -> Fields:
        """Return the client's last model, buffers included."""
        return {"previous": Field((sizes.shared,))}

    def client(self, turn: ClientTurn) -> Arrays:
        """Minimise cross-entropy and contrast."""
        if self.params.mu == 0:
            train(turn)
        else:
            self._train(turn)
        turn.state["previous"] = turn.share.shared.read(turn.model)
        return {}

    def _train(self, turn: ClientTurn) -> None:
        rivals = [turn.model.vector.clone()]
        if turn.state:
            turn.share.shared.write(turn.model, turn.state["previous"])
            rivals.append(turn.model.vector.clone())
            turn.model.vector.copy_(rivals[0])
        elif self.params.first == "global":
            rivals.append(rivals[0])
        known = None if turn.samples.view is not None else [_all_features(turn, rival) for rival in rivals]
        mu, temperature, loss = self.params.mu, self.params.temperature, open_loss(turn)

        def objective(batch: Batch) -> Tensor:
            if known is None:
                frozen = torch.stack([_features(turn, rival, batch.x) for rival in rivals])
            else:
                frozen = torch.stack([z[batch.at] for z in known])
            z = batch.features()
            con = contrastive(z, frozen[0], frozen[1:], temperature)
            value: Tensor = loss(batch.head(z), batch.y) + mu * con
            return value

        train(turn, loss=objective)


def _features(turn: ClientTurn, vector: Tensor, x: Tensor) -> Tensor:
    """Return the features of a frozen model, in evaluation mode."""
    module: Any = turn.model.module
    module.eval()
    with turn.model.holding(vector):
        z: Tensor = module.features(x)
    module.train()
    return z


def _all_features(turn: ClientTurn, vector: Tensor) -> Tensor:
    """Return them for all samples of the client: without augmentation they are the same in every epoch."""
    order = range(0, len(turn.samples), 256)
    return torch.cat([_features(turn, vector, turn.samples.scaled(slice(start, start + 256))) for start in order])
