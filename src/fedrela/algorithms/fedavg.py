"""FedAvg: average what the clients learnt, each by its number of samples.

McMahan et al., Communication-efficient learning of deep networks from decentralized data, AISTATS 2017.

    y_i   <- SGD on client i's loss from x
    x_avg  = sum_i (n_i / n) y_i                                over the clients of the round
    x     <- x_avg

The server may take the change for a gradient instead: FedAvgM (Hsu et al., 2019), v <- beta v + (1 - beta) (x - x_avg),
x <- x - lr v; FedAdam (Reddi et al., 2021), m and v of x_avg - x as in Adam, x <- x + lr m / (sqrt(v) + eps). Buffers
of BatchNorm are averaged in any case.

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.algorithms.average import shares, total
from fedrela.algorithms.base import Algorithm, Sizes
from fedrela.algorithms.params import Params, param
from fedrela.algorithms.turns import ServerTurn


@dataclass(frozen=True)
class FedAvgParams(Params):
    """What the server does with the average."""

    server: str = param("average", "", "takes it, or steps towards it", choices=("average", "momentum", "adam"))
    server_lr: float = param(1.0, "eta", "step of the server", above=0)
    beta: float = param(0.9, "beta_1", "momentum of the server", low=0, below=1)
    beta2: float = param(0.99, "beta_2", "adam: memory of squares", low=0, below=1)
    eps: float = param(1e-3, "tau", "adam: what is added to the root", above=0)


class FedAvg(Algorithm):
    """The reference: every slot of the contract as it is by default."""

    name = "fedavg"
    paper = "McMahan et al., 2017"
    Params = FedAvgParams
    uploads = ("weights",)
    reduces_to = "itself with server = average, server_lr = 1"

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return the server's moments, where it has any."""
        names = {"average": (), "momentum": ("v",), "adam": ("m", "v")}[self.params.server]
        return {name: np.zeros(sizes.trained) for name in names}

    def server(self, turn: ServerTurn) -> NDArray[Any]:
        """Average, and step by the change."""
        average, params = total(turn.uploads, "weights", shares(turn.uploads)), self.params
        if params.server == "average" and params.server_lr == 1:
            return average
        place, state = slice(turn.trained), turn.state
        x = turn.weights[place].astype(np.float64)
        change = average[place] - x
        if params.server == "momentum":
            state["v"] = params.beta * state["v"] - (1 - params.beta) * change
            change = -state["v"]
        elif params.server == "adam":
            state["m"] = params.beta * state["m"] + (1 - params.beta) * change
            state["v"] = params.beta2 * state["v"] + (1 - params.beta2) * change**2
            change = state["m"] / (np.sqrt(state["v"]) + params.eps)
        average[place] = x + params.server_lr * change
        return average
