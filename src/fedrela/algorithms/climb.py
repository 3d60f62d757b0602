"""CLIMB: weight clients so that no client's loss stays far above the mean.

Shen et al., An agnostic approach to federated learning with class imbalance, ICLR 2022.

    min_x (1/K) sum_i F_i(x)   subject to   F_i(x) - mean F(x) <= eps   for every client i
    w_i    = 1 + lam_i - mean(lam)                                      one number per client, none per class
    lam_i <- clip(lam_i + (lambda_lr / K) (F_i - mean F - eps), 0, cap)

An outer round measures F_i of all clients at the current x, runs `primal_steps` communication rounds of a core with w
fixed, then takes the dual step with those F_i.

    FedAvg core: x <- x + (lr_g / |S|) sum_i w_i (y_i - x)
    FedPD core:  y_i <- SGD on w_i loss(y) + <nu_i, y> + ||y - x||^2 / (2 eta);  nu_i <- nu_i + rate (y_i - x) / eta
                 x <- x + (lr_g / |S|) sum_i eta nu_i

What leaves the client: weights (FedPD core: x + eta nu_i), number of samples; once per outer round, from all clients,
the loss F_i. What it receives besides the weights: w_i (FedPD core).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from fedrela.algorithms.average import equal_weights
from fedrela.algorithms.base import Algorithm, Arrays, ArraySpec, ClientContext, Exchange, ServerContext, Sizes
from fedrela.models.inputs import FORWARD_BATCH
from fedrela.options import Options, option

AS_RUN = ("intended", "as_run")


@dataclass(frozen=True)
class ClimbParams(Options):
    """The official code: FedPD core without momentum, weight decay 1e-3, five epochs of s batches."""

    core: str = option("fedpd", "solver of the weighted problem", choices=("fedavg", "fedpd"))
    eps: float = option(1.0, "how far F_i may exceed the mean", symbol="epsilon", ge=0)
    lambda_lr: float = option(1.0, "step of the dual variables", symbol="eta_d", ge=0)
    cap: float = option(100.0, "largest dual variable", gt=0)
    primal_steps: int = option(5, "communication rounds per outer round", symbol="n_p", ge=1)
    loss_scale: int = option(5, "F_i is s times the mean loss", symbol="s", ge=1)
    losses: str = option("intended", "as_run (code): the sum of batch means", symbol="F_i", choices=AS_RUN)
    weights: str = option("intended", "at least 0; as_run (code): negative ones too", symbol="w_i", choices=AS_RUN)
    lr_global: float = option(1.0, "step of the server", symbol="eta_g", gt=0)
    eta: float = option(10.0, "FedPD: inverse strength of the proximal term", symbol="eta", gt=0)
    dual_rate: float = option(1.0, "FedPD: step of nu_i", ge=0)
    clip: float = option(5.0, "FedPD, replaces [train] clip: largest norm of a gradient; 0: no limit", ge=0)

    def unused(self) -> dict[str, str]:
        """Return the options of the other core."""
        others = ("eta", "dual_rate", "clip") if self.core == "fedavg" else ()
        return dict.fromkeys(others, f"core {self.core!r} does not use it")


def dual_step(lam: ArrayLike, losses: ArrayLike, *, lr: float, eps: float, cap: float = 100.0) -> NDArray[np.float64]:
    """Return clip(lam_i + (lr / K) (F_i - mean F - eps), 0, cap).

    >>> dual_step([0.0, 0.0], [3.0, 1.0], lr=1.0, eps=0.5).tolist()
    [0.25, 0.0]
    """
    old, F = np.asarray(lam, np.float64), np.asarray(losses, np.float64)
    return np.asarray(np.clip(old + lr / old.size * (F - F.mean() - eps), 0.0, cap))


def client_weights(lam: ArrayLike) -> NDArray[np.float64]:
    """Return w_i = 1 + lam_i - mean(lam), which sum to K.

    >>> client_weights([0.5, 0.0, 0.1]).round(2).tolist()
    [1.3, 0.8, 0.9]
    """
    duals = np.asarray(lam, np.float64)
    return np.asarray(1.0 + duals - duals.mean())


def not_below_zero(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights of at least 0 with the same sum; a negative weight would drive a client's loss up.

    >>> not_below_zero(np.array([3.0, 1.0, -1.0])).tolist()
    [2.25, 0.75, 0.0]
    """
    if weights.min() >= 0:
        return weights
    positive = np.maximum(weights, 0.0)
    return np.asarray(positive * (weights.sum() / positive.sum()))


class Climb(Algorithm):
    """Weights clients so that no client's loss stays far above the mean."""

    name = "climb"
    label = "CLIMB"
    paper = "Shen et al., 2022"
    cost = 1.2
    discloses = (("loss", "the mean loss of the model on its samples"),)
    Params = ClimbParams
    reduces_to = "its core while all losses lie within eps; fedavg with core = fedavg and equal clients"

    def keeps(self, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return FedPD's nu_i."""
        return {"dual": ArraySpec((sizes.trained,), sizes.dtype)} if self.params.core == "fedpd" else {}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return lam = 0, w = 1, and no losses yet."""
        K = sizes.clients
        return {"lam": np.zeros(K), "weights": np.ones(K), "losses": np.full(K, np.nan)}

    def exchanges(self) -> tuple[Exchange, ...]:
        """Ask every client for its loss, once per outer round."""
        return (Exchange("loss", "all", every=self.params.primal_steps),)

    def answers(self, exchange: str, sizes: Sizes) -> dict[str, ArraySpec]:
        """Return F_i."""
        return {"loss": ArraySpec((), "float64")}

    def answer(self, exchange: str, context: ClientContext) -> Arrays:
        """Measure F_i at the received model, in evaluation mode and without augmentation."""
        module, samples, loss = context.model.module.eval(), context.samples, context.loss()
        n, s, F = len(samples), self.params.loss_scale, 0.0
        as_run = self.params.losses == "as_run"
        y, size = torch.from_numpy(samples.labels).to(samples.device), max(1, n // s) if as_run else FORWARD_BATCH
        with torch.no_grad():
            for at in (slice(start, start + size) for start in range(0, n, size)):
                F += float(loss(module(samples.scaled(at)), y[at])) * (1 if as_run else s * len(y[at]) / n)
        return {"loss": np.array(F)}

    def absorb(self, exchange: str, context: ServerContext) -> None:
        """Finish the last outer round with its dual step, then set the weights of this one."""
        state, params = context.state, self.params
        answered = ~np.isnan(state["losses"])
        if answered.any():  # a client that did not answer counts as the mean
            F = np.where(answered, state["losses"], state["losses"][answered].mean())
            state["lam"] = dual_step(state["lam"], F, lr=params.lambda_lr, eps=params.eps, cap=params.cap)
        w = client_weights(state["lam"])
        state["weights"] = not_below_zero(w) if params.weights == "intended" else w
        state["losses"] = np.full(context.clients, np.nan)
        for upload in context.uploads:
            state["losses"][upload.client] = upload.arrays["loss"]

    def message(self, state: Arrays, client: int) -> Arrays:
        """Return w_i, if the client weights its loss itself."""
        return {"weight": state["weights"][client : client + 1]} if self.params.core == "fedpd" else {}

    def client(self, context: ClientContext) -> None:
        """Train as FedAvg, or solve FedPD's weighted local problem."""
        if self.params.core == "fedavg":
            return context.train()
        params, y, loss = self.params, context.model.weights, context.loss()
        x, w = y.clone(), context.tensor(context.received["weight"][0])  # a float would be recorded anew for each value
        nu = context.state_vector("dual")
        context.train(
            loss=lambda batch: w * loss(batch.forward(), batch.y),
            correct=lambda gradient, y: gradient.add_(nu).add_(y - x, alpha=1 / params.eta),
            local=replace(context.local, clip=params.clip),
        )
        nu = nu + params.dual_rate * (y - x) / params.eta
        context.state["dual"] = nu.cpu().numpy()
        y.copy_(x + params.eta * nu)  # FedPD sends this in place of its model

    def server(self, context: ServerContext) -> NDArray[Any]:
        """Step by the mean of w_i (y_i - x); with the FedPD core y_i contains w_i already."""
        new, x, w = context.average(), context.x, equal_weights(context.uploads)
        if self.params.core == "fedavg":
            w = w * context.state["weights"][[upload.client for upload in context.uploads]]
        new[: context.trained] = x + self.params.lr_global * (context.mean(w) - w.sum() * x)
        return new
