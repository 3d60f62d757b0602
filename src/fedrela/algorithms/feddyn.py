"""FedDyn: regularise each client dynamically, so that local minima agree with the global one.

Acar et al., Federated learning based on dynamic regularization, ICLR 2021.

    y_i <- SGD on  loss(y) + alpha_i <y, h_i - x> + (alpha_i / 2) ||y||^2      alpha_i = alpha n_mean / n_i
    h_i <- h_i + (y_i - x)                                                      so h_i estimates -gradient / alpha_i
    h   <- h + (1 / K) sum_i (y_i - x)                                          h = mean of h_i over all K clients
    x   <- mean_i y_i + h                                                       over the clients of the round

The gradient with its linear part is clipped before the quadratic part is added as weight decay. x is a point to train
from, not a model to use: evaluation and posteriors use mean_i y_i of the last round, which is broadcast beside x.
It includes the buffers of BatchNorm, averaged with n_i. The method is designed for SGD without momentum.

What leaves the client: weights, number of samples; before the first round that number from all clients, which gives
n_mean. What it receives besides the weights: n_mean and mean_i y_i, as large as the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrela.algorithms.base import Algorithm, Arrays, ArraySpec, ClientContext, Exchange, ServerContext, Sizes
from fedrela.models.flat_model import call_with
from fedrela.options import Options, option


@dataclass(frozen=True)
class FedDynParams(Options):
    """The official script: alpha 0.01 (0.1 and 0.001 were tried too), gradients clipped at norm 10."""

    alpha: float = option(0.01, "strength of the regularisation", symbol="alpha", gt=0)
    clip: float = option(10.0, "replaces [train] clip: largest norm of gradient and linear part; 0: no limit", ge=0)
    scaling: str = option(
        "samples", "by n_mean / n_i as in the code, or none (paper)", symbol="alpha_i", choices=("samples", "none")
    )
    scored: str = option("average", "the clients' mean (code), or x (paper)", choices=("average", "cloud"))


class FedDyn(Algorithm):
    """Regularises each client dynamically, so that local minima agree with the global one."""

    name = "feddyn"
    label = "FedDyn"
    paper = "Acar et al., 2021"
    cost = 1.1
    discloses = (("samples", "its number of samples"),)
    Params = FedDynParams
    reduces_to = "fedprox with mu = alpha_i in a client's first round"

    def keeps(self, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return h_i."""
        return {"h": ArraySpec((sizes.trained,), sizes.dtype)}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return h = 0, the model to score, and n_mean, still unknown."""
        weights = [p.detach().cpu().numpy().ravel() for p in model.parameters() if p.requires_grad]
        return {"h": np.zeros(sizes.trained), "average": np.concatenate(weights), "mean_samples": np.zeros(())}

    def exchanges(self) -> tuple[Exchange, ...]:
        """Ask every client once for its number of samples, which every answer carries besides its arrays."""
        return (Exchange("samples", "all", every=0),) if self.params.scaling == "samples" else ()

    def absorb(self, exchange: str, context: ServerContext) -> None:
        """Store the mean number of samples."""
        context.state["mean_samples"] = np.array(np.mean([upload.samples for upload in context.uploads]))

    def broadcast(self, state: Arrays) -> Arrays:
        """Return n_mean, and the model to score unless that is x itself."""
        names = ("mean_samples", "average") if self.params.scored == "average" else ("mean_samples",)
        return {name: state[name] for name in names}

    def client(self, context: ClientContext) -> None:
        """Minimise the regularised objective."""
        y, h = context.model.weights, context.state_vector("h")
        x = y.clone()
        mean = float(context.received["mean_samples"]) or len(context.samples)  # 0 if nobody was asked or answered
        alpha, slope = self.params.alpha * mean / len(context.samples), h - x
        local = replace(context.local, clip=self.params.clip, weight_decay=context.local.weight_decay + alpha)
        context.train(correct=lambda gradient, _: gradient.add_(slope, alpha=alpha), local=local)
        context.state["h"] = (h + (y - x)).cpu().numpy()

    def server(self, context: ServerContext) -> NDArray[Any]:
        """Average the clients and add the mean of all h_i."""
        new, mean, state = context.average(), context.mean(), context.state
        state["h"] = state["h"] + len(context.uploads) / context.clients * (mean - context.x)
        state["average"] = mean.astype(context.weights.dtype)
        new[: context.trained] = mean + state["h"]
        return new

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the logits of the mean of the clients' models."""
        return call_with(module, received["average"], x) if "average" in received else module(x)
