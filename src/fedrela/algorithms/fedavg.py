"""FedAvg: average the clients' models, weighted by their numbers of samples.

McMahan et al., Communication-efficient learning of deep networks from decentralized data, AISTATS 2017.

    y_i   <- SGD on client i's loss from x
    x_avg  = sum_i (n_i / n) y_i                               over the clients of the round
    x     <- x_avg

The server may instead take D = x_avg - x as a gradient:

    momentum (FedAvgM, Hsu et al., 2019):   v <- beta v + (1 - beta) D,   x <- x + eta v
    adam (FedAdam, Reddi et al., 2021):     m <- beta m + (1 - beta) D,   v <- beta2 v + (1 - beta2) D^2,
                                            x <- x + eta m / (sqrt(v) + eps),   v starts at eps^2

Hsu et al. write D for (1 - beta) D; their eta is eta / (1 - beta) here. Buffers of BatchNorm are always averaged.

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.algorithms.base import Algorithm, ServerContext, Sizes
from fedrela.options import Options, option

RATES = {"average": 1.0, "momentum": 1.0, "adam": 0.01}


@dataclass(frozen=True)
class FedAvgParams(Options):
    """What the server does with the average."""

    server: str = option("average", "takes the average, or steps towards it", choices=tuple(RATES))
    server_lr: float = option(0.0, "step of the server; 0: 1, or 0.01 with adam", symbol="eta", ge=0)
    beta: float = option(0.9, "momentum of the server", symbol="beta_1", ge=0, lt=1)
    beta2: float = option(0.99, "adam: decay of the second moment", symbol="beta_2", ge=0, lt=1)
    eps: float = option(1e-3, "adam: added to the root", symbol="tau", gt=0)

    def unused(self) -> dict[str, str]:
        """Return the options of other servers."""
        others = {"average": ("beta", "beta2", "eps"), "momentum": ("beta2", "eps"), "adam": ()}[self.server]
        return dict.fromkeys(others, f"server {self.server!r} does not use it")


class FedAvg(Algorithm):
    """Averages the clients' models by their numbers of samples."""

    name = "fedavg"
    label = "FedAvg"
    paper = "McMahan et al., 2017"
    Params = FedAvgParams
    reduces_to = "itself with server = momentum, beta = 0"

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return the server's moments, if it has any."""
        moments = {"m": np.zeros(sizes.trained), "v": np.zeros(sizes.trained)}
        if self.params.server == "adam":
            moments["v"] += self.params.eps**2
        return {name: moments[name] for name in {"average": "", "momentum": "v", "adam": "mv"}[self.params.server]}

    def server(self, context: ServerContext) -> NDArray[Any]:
        """Average, and step along the change."""
        new, params, state = context.average(), self.params, context.state
        eta = params.server_lr or RATES[params.server]
        if params.server == "average" and eta == 1:
            return new
        x = context.x
        step = new[: context.trained] - x
        if params.server == "adam":
            state["v"] = params.beta2 * state["v"] + (1 - params.beta2) * step**2
            state["m"] = params.beta * state["m"] + (1 - params.beta) * step
            step = state["m"] / (np.sqrt(state["v"]) + params.eps)
        elif params.server == "momentum":
            state["v"] = params.beta * state["v"] + (1 - params.beta) * step
            step = state["v"]
        new[: context.trained] = x + eta * step
        return new
