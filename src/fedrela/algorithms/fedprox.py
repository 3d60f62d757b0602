"""FedProx: hold each client near the global model.

Li et al., Federated optimization in heterogeneous networks, MLSys 2020.

    y_i <- SGD on  loss(y) + (mu / 2) ||y - x||^2        the pull  mu (y - x)  enters gradient and momentum
    x   <- sum_i (n_i / n) y_i

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedrela.algorithms.base import Algorithm, ClientContext
from fedrela.options import Options, option


@dataclass(frozen=True)
class FedProxParams(Options):
    """The official code defaults to mu = 0 and tries 0.001 to 1."""

    mu: float = option(0.01, "weight of the proximal term", symbol="mu", ge=0)


class FedProx(Algorithm):
    """Holds each client near the global model by a proximal term."""

    name = "fedprox"
    label = "FedProx"
    paper = "Li et al., 2020"
    cost = 1.1
    Params = FedProxParams
    reduces_to = "fedavg at mu = 0"

    def client(self, context: ClientContext) -> None:
        """Minimise loss(y) + (mu / 2) ||y - x||^2."""
        x, mu = context.model.weights.clone(), self.params.mu
        context.train(correct=lambda gradient, y: gradient.add_(y - x, alpha=mu))
