"""FedProx: hold each client near the model it received.

Li et al., Federated optimization in heterogeneous networks, MLSys 2020.

    y_i <- SGD on  loss(y) + (mu / 2) ||y - x||^2        the pull  mu (y - x)  enters gradient and momentum
    x   <- sum_i (n_i / n) y_i

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedrela.algorithms.base import Algorithm
from fedrela.algorithms.context import Arrays, ClientContext
from fedrela.algorithms.local import train
from fedrela.options import Options, option


@dataclass(frozen=True)
class FedProxParams(Options):
    """Strength of the pull; the official code starts from 0 and tries 0.001 to 1."""

    mu: float = option(0.01, "weight of the proximal term", symbol="mu", ge=0)


class FedProx(Algorithm):
    """FedAvg with a proximal term in the client's objective."""

    name = "fedprox"
    paper = "Li et al., 2020"
    Params = FedProxParams
    uploads = ("weights",)
    reduces_to = "fedavg at mu = 0"

    def client(self, context: ClientContext) -> Arrays:
        """Minimise loss(y) + (mu / 2) ||y - x||^2."""
        x = context.model.weights.clone()

        def pull(gradient: Tensor, y: Tensor) -> None:
            gradient.add_(y - x, alpha=self.params.mu)

        train(context, correct=pull)
        return {}
