"""FedDyn: bend each client's objective so that its minimum agrees with everybody's.

Acar et al., Federated learning based on dynamic regularization, ICLR 2021.

    y_i <- SGD on  loss(y) + alpha_i <y, h_i - x> + (alpha_i / 2) ||y||^2      alpha_i = alpha n_mean / n_i
    h_i <- h_i + (y_i - x)
    h   <- h + (1 / K) sum_i (y_i - x)                                          h = mean of h_i over all clients
    x   <- mean_i y_i + h                                                       over the clients of the round

The gradient with its linear part is clipped before the quadratic part is added as weight decay. Scored is the mean of
y_i, which goes down beside x; buffers of BatchNorm are averaged.

What leaves the client: weights, number of samples. What it receives beside the weights: that mean, and n_mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrela.algorithms.average import equal_shares, shares, total
from fedrela.algorithms.base import Algorithm, Exchange, Field, Fields, Sizes
from fedrela.algorithms.local import train
from fedrela.algorithms.params import Params, param
from fedrela.algorithms.turns import Arrays, ClientTurn, ServerTurn
from fedrela.models.share import call_with


@dataclass(frozen=True)
class FedDynParams(Params):
    """The official script: alpha 0.01, gradients clipped at norm 10."""

    alpha: float = param(0.01, "alpha", "strength of the regularisation", above=0)
    clip: float = param(10.0, "", "largest norm of a gradient with the linear part; 0: any", low=0)
    scaling: str = param(
        "samples", "alpha_i", "alpha n_mean / n_i as the code, or alpha as the paper", choices=("samples", "none")
    )
    scored: str = param(
        "average", "", "the mean of the clients' models, or the model that is trained from",
        choices=("average", "cloud"),
    )  # fmt: skip


class FedDyn(Algorithm):
    """Dynamic regularisation."""

    name = "feddyn"
    paper = "Acar et al., 2021"
    Params = FedDynParams
    uploads = ("weights",)
    reduces_to = "fedprox with mu = alpha at a client's first turn"

    def keeps(self, sizes: Sizes) -> Fields:
        """Return h_i."""
        return {"h": Field((sizes.trained,))}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return h = 0, the model to score, and the mean number of samples, not yet known."""
        weights = [p.detach().cpu().numpy().ravel() for p in model.parameters() if p.requires_grad]
        return {
            "h": np.zeros(sizes.trained),
            "average": np.concatenate(weights).astype(np.float32),
            "mean_samples": np.zeros((), np.float64),
        }

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the one question, how many samples each client has."""
        return (Exchange("samples", "all", every=0),)

    def absorb(self, exchange: str, turn: ServerTurn) -> None:
        """Keep the mean number of samples."""
        turn.state["mean_samples"] = np.array(np.mean([upload.samples for upload in turn.uploads]))

    def broadcast(self, state: Arrays) -> Arrays:
        """Return the mean number of samples, and the model to score where it is not the one that is trained from."""
        names = ("mean_samples", "average") if self.params.scored == "average" else ("mean_samples",)
        return {name: state[name] for name in names}

    def client(self, turn: ClientTurn) -> Arrays:
        """Minimise the bent objective."""
        y = turn.model.weights
        x = y.clone()
        h = torch.tensor(turn.state["h"]).to(y) if turn.state else torch.zeros_like(y)
        alpha = self.params.alpha
        if self.params.scaling == "samples":
            alpha *= float(turn.received["mean_samples"]) / len(turn.samples)

        def bend(gradient: Tensor, _: Tensor) -> None:
            gradient.add_(h - x, alpha=alpha)

        train(turn, correct=bend, clip=self.params.clip, weight_decay=turn.local.weight_decay + alpha)
        turn.state["h"] = (h + (y - x)).cpu().numpy()
        return {}

    def server(self, turn: ServerTurn) -> NDArray[Any]:
        """Average the clients, add the mean of all h_i."""
        place, uploads = slice(turn.trained), turn.uploads
        new = total(uploads, "weights", shares(uploads))
        average = total(uploads, "weights", equal_shares(uploads), place)
        turn.state["h"] = turn.state["h"] + len(uploads) / turn.clients * (average - turn.weights[place])
        turn.state["average"] = average.astype(np.float32)
        new[place] = average + turn.state["h"]
        return new

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the logits of the mean of the clients' models."""
        return call_with(module, received["average"], x) if "average" in received else module(x)
