"""FedNova: normalise updates, so that a client with more local steps does not pull the model further.

Wang et al., Tackling the objective inconsistency problem in heterogeneous federated optimization, NeurIPS 2020.

    y_i     <- SGD on  loss(y) + (mu / 2) ||y - x||^2                      mu = 0 by default
    a_i      = L1 norm of the weights of client i's gradients in its path  (tau_i for plain SGD, see `normalizer`)
    tau_eff  = sum_i p_i a_i                                               (sum_i p_i tau_i with a proximal term)
    x       <- x - tau_eff sum_i p_i (x - y_i) / a_i                       p_i = n_i / n over the clients of the round

With gamma > 0 the server has momentum: b <- gamma b + (that step) / lr, x <- x - lr b. Buffers of BatchNorm are
averaged with p_i: the weights p_i tau_eff / a_i sum to more than 1 if the a_i differ, and could make variances
negative.

What leaves the client: weights, number of samples, a_i and tau_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.algorithms.average import sample_weights
from fedrela.algorithms.base import Algorithm, Arrays, ArraySpec, ClientContext, ServerContext, Sizes
from fedrela.algorithms.local import normalizer
from fedrela.errors import ArgumentError
from fedrela.options import Options, option

__all__ = ["FedNova", "FedNovaParams", "normalizer", "normalizer_as_run"]  # `normalizer` is used from here


@dataclass(frozen=True)
class FedNovaParams(Options):
    """The official code defaults to mu = 0 and no server momentum."""

    mu: float = option(0.0, "weight of a proximal term", symbol="mu", ge=0)
    gmf: float = option(0.0, "momentum of the server", symbol="gamma", ge=0, lt=1)
    counting: str = option(
        "exact", "the norm, or the code's double count with momentum and mu", symbol="a_i", choices=("exact", "as_run")
    )


def normalizer_as_run(steps: int, *, momentum: float, lr: float, mu: float) -> float:
    """Return a_i as the official code counts it: twice per step if both momentum and mu are used.

    >>> round(normalizer_as_run(3, momentum=0.9, lr=0.05, mu=0.01), 2)
    8.6
    """
    if not (momentum and mu):
        return normalizer(steps, momentum=momentum, lr=lr, mu=mu)
    a = c = 0.0
    for _ in range(steps):
        c = momentum * c + 1
        a = (a + c) * (1 - lr * mu) + 1
    return a


class FedNova(Algorithm):
    """Normalises each client's update by its number of local steps."""

    name = "fednova"
    label = "FedNova"
    paper = "Wang et al., 2020"
    Params = FedNovaParams
    discloses = (("normalizer", "a_i, which follows from its steps"), ("steps", "tau_i, its number of steps"))
    uploads = ("weights", "normalizer", "steps")
    reduces_to = "fedavg with equal numbers of steps and mu = 0"

    def sends(self, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return a_i and tau_i."""
        return {"normalizer": ArraySpec((), "float64"), "steps": ArraySpec((), "int64")}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return the server's momentum, if it has one."""
        return {"momentum": np.zeros(sizes.trained)} if self.params.gmf else {}

    def client(self, context: ClientContext) -> Arrays:
        """Minimise loss(y) + (mu / 2) ||y - x||^2 and compute a_i."""
        x, mu, local = context.model.weights.clone(), self.params.mu, context.local
        context.train(correct=(lambda gradient, y: gradient.add_(y - x, alpha=mu)) if mu else None)
        count = normalizer if self.params.counting == "exact" else normalizer_as_run
        a = count(context.steps, momentum=local.momentum, lr=local.lr, mu=mu)
        if a <= 0 < context.steps:
            reason = f"expected lr * mu < 1, got {local.lr * mu:g}: the proximal step overshoots; lower mu"
            raise ArgumentError(reason, argument="mu")
        return {"normalizer": np.array(a), "steps": np.array(context.steps)}

    def server(self, context: ServerContext) -> NDArray[Any]:
        """Step by tau_eff sum_i p_i (x - y_i) / a_i, with server momentum if gamma > 0."""
        p, new, x = sample_weights(context.uploads), context.average(), context.x
        a, tau = (np.array([float(u.arrays[name]) for u in context.uploads]) for name in ("normalizer", "steps"))
        tau_eff = p @ (tau if self.params.mu else a)
        change = tau_eff * ((p / a).sum() * x - context.mean(p / a))
        if self.params.gmf and context.lr:
            context.state["momentum"] = self.params.gmf * context.state["momentum"] + change / context.lr
            change = context.lr * context.state["momentum"]
        new[: context.trained] = x - change
        return new
