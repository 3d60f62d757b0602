"""FedDyn: bend each client's objective so that its minimum agrees with everybody's.

Acar et al., Federated learning based on dynamic regularization, ICLR 2021.

    y_i <- SGD on  loss(y) + alpha_i <y, h_i - x> + (alpha_i / 2) ||y||^2      alpha_i = alpha n_mean / n_i
    h_i <- h_i + (y_i - x)                                                      so h_i estimates -gradient / alpha_i
    h   <- h + (1 / K) sum_i (y_i - x)                                          h = mean of h_i over all K clients
    x   <- mean_i y_i + h                                                       over the clients of the round

The gradient with its linear part is clipped before the quadratic part is added as weight decay. x is a point to train
from, not a model to use: scored, and asked for posteriors, is mean_i y_i of the last round, which goes down beside x.
Buffers of BatchNorm, averaged with n_i, belong to it. The method is made for SGD without momentum.

What leaves the client: weights, number of samples; that number before the first round from all clients, which makes
n_mean. What it receives beside the weights: n_mean and mean_i y_i, as large as the weights.
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
    """The official script: alpha 0.01 (0.1 and 0.001 were tried too), gradients clipped at norm 10."""

    alpha: float = param(0.01, "alpha", "strength of the regularisation", above=0)
    clip: float = param(10.0, "", "in place of [train] clip: largest norm of gradient and linear part; 0: any", low=0)
    scaling: str = param(
        "samples", "alpha_i", "alpha n_mean / n_i as the code, or alpha as the paper", choices=("samples", "none")
    )
    scored: str = param(
        "average", "", "the mean of the clients' models as the code, or the one that is trained from as the paper",
        choices=("average", "cloud"),
    )  # fmt: skip


class FedDyn(Algorithm):
    """Dynamic regularisation."""

    name = "feddyn"
    paper = "Acar et al., 2021"
    Params = FedDynParams
    uploads = ("weights",)
    reduces_to = "fedprox with mu = alpha_i at a client's first turn"

    def keeps(self, sizes: Sizes) -> Fields:
        """Return h_i."""
        return {"h": Field((sizes.trained,), sizes.dtype)}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return h = 0, the model to score, and n_mean, which is not known yet."""
        weights = [p.detach().cpu().numpy().ravel() for p in model.parameters() if p.requires_grad]
        return {"h": np.zeros(sizes.trained), "average": np.concatenate(weights), "mean_samples": np.zeros(())}

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the one question, how many samples each client has: every answer says so beside its arrays."""
        return (Exchange("samples", "all", every=0),) if self.params.scaling == "samples" else ()

    def absorb(self, exchange: str, turn: ServerTurn) -> None:
        """Keep the mean number of samples."""
        turn.state["mean_samples"] = np.array(np.mean([upload.samples for upload in turn.uploads]))

    def broadcast(self, state: Arrays) -> Arrays:
        """Return n_mean, and the model to score where it is not the one that is trained from."""
        names = ("mean_samples", "average") if self.params.scored == "average" else ("mean_samples",)
        return {name: state[name] for name in names}

    def client(self, turn: ClientTurn) -> Arrays:
        """Minimise the bent objective."""
        y = turn.model.weights
        x = y.clone()
        h = torch.tensor(turn.state["h"]).to(y) if turn.state else torch.zeros_like(y)
        mean = float(turn.received["mean_samples"]) or len(turn.samples)  # 0 where nobody was asked or answered
        alpha, slope = self.params.alpha * mean / len(turn.samples), h - x

        def bend(gradient: Tensor, _: Tensor) -> None:
            gradient.add_(slope, alpha=alpha)

        train(turn, correct=bend, clip=self.params.clip, weight_decay=turn.local.weight_decay + alpha)
        turn.state["h"] = (h + (y - x)).cpu().numpy()
        return {}

    def server(self, turn: ServerTurn) -> NDArray[Any]:
        """Average the clients, add the mean of all h_i."""
        place, uploads = slice(turn.trained), turn.uploads
        new = total(uploads, "weights", shares(uploads))
        average = total(uploads, "weights", equal_shares(uploads), place)
        turn.state["h"] = turn.state["h"] + len(uploads) / turn.clients * (average - turn.weights[place])
        turn.state["average"] = average.astype(turn.weights.dtype)
        new[place] = average + turn.state["h"]
        return new

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the logits of the mean of the clients' models."""
        return call_with(module, received["average"], x) if "average" in received else module(x)
