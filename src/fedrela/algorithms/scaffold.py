"""SCAFFOLD: subtract the client's own drift direction, add everybody's.

Karimireddy et al., SCAFFOLD: stochastic controlled averaging for federated learning, ICML 2020.

    y_i <- y_i - lr (g_i(y_i) + c - c_i)
    c_i <- c_i - c + (x - y_i) / (lr a_i)          option II; a_i: steps, with momentum the norm of `normalizer`
    x   <- x + lr_g mean_i (y_i - x)               over the clients of the round, each the same
    c   <- c + (1 / K) sum_i (change of c_i)       K: all clients; all c start at 0

With momentum the correction enters it, so that a client moves by lr a_i times its mean gradient, and c_i stays the size
of a gradient. Control variates are of trained arrays only; buffers of BatchNorm are averaged.

What leaves the client: weights, number of samples, change of c_i (as large as the weights). What it receives beside the
weights: c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrela.algorithms.average import equal_shares, shares, total
from fedrela.algorithms.base import Algorithm, Field, Fields, Sizes
from fedrela.algorithms.local import train
from fedrela.algorithms.params import Params, param
from fedrela.algorithms.steps import normalizer
from fedrela.algorithms.turns import Arrays, ClientTurn, ServerTurn


@dataclass(frozen=True)
class ScaffoldParams(Params):
    """The paper's experiments use a global rate of 1."""

    lr_global: float = param(1.0, "eta_g", "step of the server", above=0)
    correction: str = param(
        "gradient", "c - c_i", "enters the gradient, or (NIID-Bench) the weights after each step, past the momentum",
        choices=("gradient", "after_step"),
    )  # fmt: skip
    weighting: str = param(
        "equal", "1 / |S|", "of clients: equal, or (NIID-Bench) by samples", choices=("equal", "samples")
    )


class Scaffold(Algorithm):
    """Stochastic controlled averaging."""

    name = "scaffold"
    paper = "Karimireddy et al., 2020"
    Params = ScaffoldParams
    uploads = ("weights", "control")
    reduces_to = "fedavg in its first round with equal weights, and with identical clients"

    def sends(self, sizes: Sizes) -> Fields:
        """Return the change of the control variate."""
        return {"control": Field((sizes.trained,), sizes.dtype)}

    def keeps(self, sizes: Sizes) -> Fields:
        """Return the client's own control variate c_i."""
        return {"control": Field((sizes.trained,), sizes.dtype)}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return c = 0."""
        return {"control": np.zeros(sizes.trained, sizes.dtype)}

    def broadcast(self, state: Arrays) -> Arrays:
        """Return c."""
        return {"control": state["control"]}

    def client(self, turn: ClientTurn) -> Arrays:
        """Train along g + c - c_i, then renew c_i."""
        y, lr = turn.model.weights, turn.local.lr
        x, c = y.clone(), torch.tensor(turn.received["control"]).to(y)
        mine = torch.tensor(turn.state["control"]).to(y) if turn.state else torch.zeros_like(y)
        drift = c - mine

        def correct(gradient: Tensor, _: Tensor) -> None:
            gradient.add_(drift)

        def shift(weights: Tensor) -> None:
            weights.sub_(drift, alpha=lr)

        if self.params.correction == "gradient":
            train(turn, correct=correct)
            way = lr * normalizer(turn.steps, momentum=turn.local.momentum)
        else:
            train(turn, after_step=shift)
            way = lr * turn.steps
        new = (x - y) / way - drift if way else mine  # with a rate of 0 nothing is learnt about the gradient
        turn.state["control"] = new.cpu().numpy()
        return {"control": (new - mine).cpu().numpy()}

    def server(self, turn: ServerTurn) -> NDArray[Any]:
        """Step by lr_g mean (y_i - x), and renew c."""
        p, place = shares(turn.uploads), slice(turn.trained)
        new = total(turn.uploads, "weights", p)
        mean = new[place]
        if self.params.weighting == "equal":
            mean = total(turn.uploads, "weights", equal_shares(turn.uploads), place)
        x = turn.weights[place].astype(np.float64)
        new[place] = x + self.params.lr_global * (mean - x)
        c = turn.state["control"]
        change = total(turn.uploads, "control", np.full(len(turn.uploads), 1 / turn.clients))
        turn.state["control"] = (c + change).astype(c.dtype)
        return new
