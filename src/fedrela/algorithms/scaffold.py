"""SCAFFOLD: correct each client's drift by control variates.

Karimireddy et al., SCAFFOLD: stochastic controlled averaging for federated learning, ICML 2020.

    y_i <- y_i - lr (g_i(y_i) + c - c_i)
    c_i <- c_i - c + (x - y_i) / (lr a_i)          option II; a_i: steps, with momentum the norm of `normalizer`
    x   <- x + lr_g mean_i (y_i - x)               over the clients of the round, unweighted
    c   <- c + (1 / K) sum_i (change of c_i)       K: all clients; all c start at 0

With momentum the correction enters it, so that a client moves by lr a_i times its mean gradient, and c_i has the scale
of a gradient. Control variates cover trained arrays only; buffers of BatchNorm are averaged.

What leaves the client: weights, number of samples, change of c_i (as large as the weights). What it receives
besides the weights: c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.algorithms.average import weighted_sum
from fedrela.algorithms.base import Algorithm, Arrays, ArraySpec, ClientContext, ServerContext, Sizes
from fedrela.algorithms.local import normalizer
from fedrela.options import Options, option


@dataclass(frozen=True)
class ScaffoldParams(Options):
    """The paper's experiments use a global rate of 1."""

    lr_global: float = option(1.0, "step of the server", symbol="eta_g", gt=0)
    correction: str = option(
        "gradient", "of gradients, or of weights after a step", symbol="c - c_i", choices=("gradient", "after_step")
    )
    weighting: str = option("equal", "of clients: equal, or by samples", symbol="1 / |S|", choices=("equal", "samples"))


class Scaffold(Algorithm):
    """Corrects each client's drift by control variates."""

    name = "scaffold"
    label = "SCAFFOLD"
    paper = "Karimireddy et al., 2020"
    cost = 1.05
    Params = ScaffoldParams
    discloses = (("control", "the change of c_i: its mean gradient"),)
    uploads = ("weights", "control")
    broadcasts = ("control",)
    reduces_to = "fedavg in the first round with equal weights, and with identical clients"

    def sends(self, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return the change of the control variate."""
        return {"control": ArraySpec((sizes.trained,), sizes.dtype)}

    def keeps(self, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return the client's own control variate c_i."""
        return {"control": ArraySpec((sizes.trained,), sizes.dtype)}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return c = 0."""
        return {"control": np.zeros(sizes.trained, sizes.dtype)}

    def client(self, context: ClientContext) -> Arrays:
        """Train along g + c - c_i, then update c_i."""
        y, lr = context.model.weights, context.local.lr
        x, c_i = y.clone(), context.state_vector("control")
        drift = context.tensor(context.received["control"]) - c_i
        if self.params.correction == "gradient":
            context.train(correct=lambda gradient, _: gradient.add_(drift))
            length = lr * normalizer(context.steps, momentum=context.local.momentum)
        else:
            context.train(after_step=lambda weights: weights.sub_(drift, alpha=lr))
            length = lr * context.steps
        new = (x - y) / length - drift if length else c_i  # with lr = 0 the path says nothing about the gradient
        context.state["control"] = new.cpu().numpy()
        return {"control": (new - c_i).cpu().numpy()}

    def server(self, context: ServerContext) -> NDArray[Any]:
        """Step by lr_g mean (y_i - x), and update c."""
        new, x, c = context.average(), context.x, context.state["control"]
        mean = context.mean() if self.params.weighting == "equal" else new[: context.trained]
        new[: context.trained] = x + self.params.lr_global * (mean - x)
        change = weighted_sum(context.uploads, "control", np.full(len(context.uploads), 1 / context.clients))
        context.state["control"] = (c + change).astype(c.dtype)
        return new
