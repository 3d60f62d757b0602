"""CLIMB: weigh clients so that none is left with a loss far above the average.

Shen et al., An agnostic approach to federated learning with class imbalance, ICLR 2022.

    min_x (1/K) sum_i F_i(x)   subject to   F_i(x) - mean F(x) <= eps   for every client i
    w_i    = 1 + lam_i - mean(lam)                                      one number a client, no class anywhere
    lam_i <- clip(lam_i + (lambda_lr / K) (F_i - mean F - eps), 0, cap)

An outer round takes F_i of all clients at the current x, then `primal_steps` communication rounds of a core with w
fixed, then the dual step with those F_i.

    FedAvg core: x <- x + (lr_g / |S|) sum_i w_i (y_i - x)
    FedPD core:  y_i <- SGD on w_i loss(y) + <nu_i, y> + ||y - x||^2 / (2 eta);  nu_i <- nu_i + rate (y_i - x) / eta
                 x <- x + (lr_g / |S|) sum_i eta nu_i

What leaves the client: weights (FedPD core: x + eta nu_i), number of samples; once an outer round, from all clients,
the loss F_i. What it receives beside the weights: w_i (FedPD core).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrela.algorithms.average import equal_weights, sample_weights, weighted_sum
from fedrela.algorithms.base import Algorithm, ArraySpec, ArraySpecs, Exchange, Sizes
from fedrela.algorithms.context import Arrays, ClientContext, ServerContext
from fedrela.algorithms.duals import client_weights, dual_step, not_below_zero
from fedrela.algorithms.local import open_loss, train
from fedrela.algorithms.samples import Batch
from fedrela.options import Options, option

__all__ = ["Climb", "ClimbParams", "client_weights", "dual_step", "not_below_zero"]

BATCH = 256  # samples of one forward pass where the mean loss is taken
AS_RUN = ("intended", "as_run")


@dataclass(frozen=True)
class ClimbParams(Options):
    """The official code: FedPD core without momentum, weight decay 1e-3, five epochs of s batches."""

    core: str = option("fedpd", "who solves the weighted problem", choices=("fedavg", "fedpd"))
    eps: float = option(1.0, "how far a client's F_i may lie above the mean", symbol="epsilon", ge=0)
    lambda_lr: float = option(1.0, "step of the dual variables", symbol="eta_d", ge=0)
    cap: float = option(100.0, "largest dual variable", gt=0)
    primal_steps: int = option(5, "communication rounds an outer round", symbol="n_p", ge=1)
    loss_scale: int = option(5, "F_i is s times the mean loss", symbol="s", ge=1)
    losses: str = option(
        "intended", "or as the code: the sum of means of batches of n_i // s", symbol="F_i", choices=AS_RUN
    )
    weights: str = option(
        "intended", "at least 0, or as the code: below 0 for easy clients", symbol="w_i", choices=AS_RUN
    )
    lr_global: float = option(1.0, "step of the server", symbol="eta_g", gt=0)
    eta: float = option(10.0, "FedPD: inverse strength of the proximal term", symbol="eta", gt=0)
    dual_rate: float = option(1.0, "FedPD: step of nu_i", ge=0)
    clip: float = option(5.0, "FedPD, in place of [train] clip: largest norm of a gradient; 0: any", ge=0)


class Climb(Algorithm):
    """Federated learning under a constraint on every client's loss."""

    name = "climb"
    paper = "Shen et al., 2022"
    Params = ClimbParams
    uploads = ("weights",)
    reduces_to = "its core while all losses lie within eps; fedavg with core fedavg and equal clients"

    def keeps(self, sizes: Sizes) -> ArraySpecs:
        """Return FedPD's nu_i."""
        return {"dual": ArraySpec((sizes.trained,), sizes.dtype)} if self.params.core == "fedpd" else {}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return lam = 0, w = 1, and no losses yet."""
        K = sizes.clients
        return {"lam": np.zeros(K), "weights": np.ones(K), "losses": np.full(K, np.nan)}

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the question for every client's loss, once an outer round."""
        return (Exchange("loss", "all", every=self.params.primal_steps),)

    def answers(self, exchange: str, sizes: Sizes) -> ArraySpecs:
        """Return F_i."""
        return {"loss": ArraySpec((), "float64")}

    def answer(self, exchange: str, context: ClientContext) -> Arrays:
        """Measure F_i at the model received, in evaluation mode and without augmentation."""
        module, samples, loss = context.model.module.eval(), context.samples, open_loss(context)
        n, s, F = len(samples), self.params.loss_scale, 0.0
        as_run = self.params.losses == "as_run"
        y, size = torch.from_numpy(samples.labels).to(samples.device), max(1, n // s) if as_run else BATCH
        with torch.no_grad():
            for at in (slice(start, start + size) for start in range(0, n, size)):
                F += float(loss(module(samples.scaled(at)), y[at])) * (1 if as_run else s * len(y[at]) / n)
        return {"loss": np.array(F)}

    def absorb(self, exchange: str, context: ServerContext) -> None:
        """Close the last outer round with its dual step, then fix this one's weights from lam."""
        state, params = context.state, self.params
        known = ~np.isnan(state["losses"])
        if known.any():  # who did not answer counts as the mean
            F = np.where(known, state["losses"], state["losses"][known].mean())
            state["lam"] = dual_step(state["lam"], F, lr=params.lambda_lr, eps=params.eps, cap=params.cap)
        w = client_weights(state["lam"])
        state["weights"] = not_below_zero(w) if params.weights == "intended" else w
        state["losses"] = np.full(context.clients, np.nan)
        for upload in context.uploads:
            state["losses"][upload.client] = upload.arrays["loss"]

    def message(self, state: Arrays, client: int) -> Arrays:
        """Return w_i, where the client weighs its loss itself."""
        return {"weight": state["weights"][client : client + 1]} if self.params.core == "fedpd" else {}

    def client(self, context: ClientContext) -> Arrays:
        """Train as FedAvg, or solve FedPD's weighted local problem."""
        if self.params.core == "fedavg":
            train(context)
            return {}
        params, y, loss = self.params, context.model.weights, open_loss(context)
        x, w = y.clone(), float(context.received["weight"][0])
        nu = torch.tensor(context.state["dual"]).to(y) if context.state else torch.zeros_like(y)

        def weighted(batch: Batch) -> Tensor:
            return w * loss(batch.forward(), batch.y)

        def pull(gradient: Tensor, y: Tensor) -> None:
            gradient.add_(nu).add_(y - x, alpha=1 / params.eta)

        train(context, loss=weighted, correct=pull, clip=params.clip)
        nu = nu + params.dual_rate * (y - x) / params.eta
        context.state["dual"] = nu.cpu().numpy()
        y.copy_(x + params.eta * nu)  # what FedPD reports in place of its model
        return {}

    def server(self, context: ServerContext) -> NDArray[Any]:
        """Step by the mean of w_i (y_i - x); in the FedPD core the weights are in y_i already."""
        uploads, place = context.uploads, slice(context.trained)
        w = equal_weights(uploads)
        if self.params.core == "fedavg":
            w = w * context.state["weights"][[upload.client for upload in uploads]]
        new = weighted_sum(uploads, "weights", sample_weights(uploads))
        x = context.weights[place].astype(np.float64)
        new[place] = x + self.params.lr_global * (weighted_sum(uploads, "weights", w, place) - w.sum() * x)
        return new
