"""CLIMB: weigh clients so that none is left with a loss far above the average.

Shen et al., An agnostic approach to federated learning with class imbalance, ICLR 2022.

    min_x (1/K) sum_i F_i(x)   subject to   F_i(x) - mean F(x) <= eps   for every client i
    w_i   = 1 + lam_i - mean(lam)                                       one number a client, no class anywhere
    lam_i <- clip(lam_i + (lambda_lr / K) (F_i - mean F - eps), 0, cap)

An outer round takes all F_i at the current model, then `primal_steps` communication rounds of the core with w fixed,
then the dual step.

    FedAvg core: x <- x + (lr_g / |S|) sum_i w_i (y_i - x)
    FedPD core:  y_i <- SGD on w_i loss(y) + <nu_i, y> + ||y - x||^2 / (2 eta);  nu_i <- nu_i + rate (y_i - x) / eta
                 x <- x + (lr_g / |S|) sum_i eta nu_i

What leaves the client: weights, number of samples; once an outer round, from all clients, the loss F_i. What it
receives beside the weights: w_i (FedPD core).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from fedrela.algorithms.average import equal_shares, shares, total
from fedrela.algorithms.base import Algorithm, Exchange, Field, Fields, Sizes
from fedrela.algorithms.local import open_loss, train
from fedrela.algorithms.params import Params, param
from fedrela.algorithms.samples import Batch
from fedrela.algorithms.turns import Arrays, ClientTurn, ServerTurn

BATCH = 256  # samples of one forward pass when the loss is taken


@dataclass(frozen=True)
class ClimbParams(Params):
    """The official code: FedPD core, eta 10, five primal steps, lambda_lr 1, eps 1 on five times the mean loss."""

    core: str = param("fedpd", "", "who solves the weighted problem", choices=("fedavg", "fedpd"))
    eps: float = param(1.0, "epsilon", "how far a client's loss may lie above the mean", low=0)
    lambda_lr: float = param(1.0, "eta_d", "step of the dual variables", low=0)
    cap: float = param(100.0, "", "largest dual variable", above=0)
    primal_steps: int = param(5, "", "communication rounds an outer round", low=1)
    loss_scale: float = param(5.0, "s", "F_i is so many times the mean loss", above=0)
    weights: str = param(
        "clamped", "w_i", "at least 0 and summing to K, or as the code: below 0 where a client is easy",
        choices=("clamped", "as_run"),
    )  # fmt: skip
    lr_global: float = param(1.0, "eta_g", "step of the server", above=0)
    eta: float = param(10.0, "eta", "FedPD: inverse strength of the proximal term", above=0)
    dual_rate: float = param(1.0, "", "FedPD: step of nu_i", low=0)
    clip: float = param(5.0, "", "FedPD: largest norm of a gradient", low=0)


def dual_step(lam: ArrayLike, losses: ArrayLike, *, lr: float, eps: float, cap: float = 100.0) -> NDArray[np.float64]:
    """Return lam_i <- clip(lam_i + (lr / K) (F_i - mean F - eps), 0, cap).

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


def clamped(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights of at least 0 with the same sum: below 0 a client's loss would be driven up."""
    positive = np.maximum(weights, 0.0)
    return np.asarray(positive * (weights.sum() / positive.sum()))


class Climb(Algorithm):
    """Federated learning under a constraint on every client's loss."""

    name = "climb"
    paper = "Shen et al., 2022"
    Params = ClimbParams
    uploads = ("weights",)
    reduces_to = "its core while all losses lie within eps; fedavg with core fedavg and equal clients"

    def keeps(self, sizes: Sizes) -> Fields:
        """Return FedPD's nu_i."""
        return {"dual": Field((sizes.trained,))} if self.params.core == "fedpd" else {}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return lam = 0, w = 1, and no losses yet."""
        K = sizes.clients
        return {"lam": np.zeros(K), "weights": np.ones(K), "losses": np.full(K, np.nan)}

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the question for every client's loss, once an outer round."""
        return (Exchange("loss", "all", every=self.params.primal_steps),)

    def answers(self, exchange: str, sizes: Sizes) -> Fields:
        """Return F_i."""
        return {"loss": Field((), "float64")}

    def answer(self, exchange: str, turn: ClientTurn) -> Arrays:
        """Measure F_i = s times the mean loss at the model received, in evaluation mode."""
        module, loss, summed = turn.model.module.eval(), open_loss(turn), 0.0
        labels = torch.from_numpy(turn.samples.labels).to(turn.samples.device)
        with torch.no_grad():
            for start in range(0, len(turn.samples), BATCH):
                y = labels[start : start + BATCH]
                summed += float(loss(module(turn.samples.scaled(slice(start, start + BATCH))), y)) * len(y)
        return {"loss": np.array(self.params.loss_scale * summed / len(turn.samples))}

    def absorb(self, exchange: str, turn: ServerTurn) -> None:
        """Close the last outer round with its dual step, then fix this one's weights from lam."""
        state, params = turn.state, self.params
        if not np.isnan(state["losses"]).all():
            losses = np.where(np.isnan(state["losses"]), np.nanmean(state["losses"]), state["losses"])
            state["lam"] = dual_step(state["lam"], losses, lr=params.lambda_lr, eps=params.eps, cap=params.cap)
        raw = client_weights(state["lam"])
        state["weights"] = clamped(raw) if params.weights == "clamped" else raw
        state["losses"] = np.full(turn.clients, np.nan)
        for upload in turn.uploads:
            state["losses"][upload.client] = float(upload.arrays["loss"])

    def message(self, state: Arrays, client: int) -> Arrays:
        """Return w_i, where the client weighs its loss itself."""
        return {"weight": state["weights"][client : client + 1]} if self.params.core == "fedpd" else {}

    def client(self, turn: ClientTurn) -> Arrays:
        """Train as FedAvg, or solve FedPD's weighted local problem."""
        if self.params.core == "fedavg":
            train(turn)
            return {}
        params, y, loss = self.params, turn.model.weights, open_loss(turn)
        x, weight = y.clone(), float(turn.received["weight"][0])
        nu = torch.tensor(turn.state["dual"]).to(y) if turn.state else torch.zeros_like(y)

        def weighted(batch: Batch) -> Tensor:
            return weight * loss(batch.forward(), batch.y)

        def pull(gradient: Tensor, y: Tensor) -> None:
            gradient.add_(nu).add_(y - x, alpha=1 / params.eta)

        train(turn, loss=weighted, correct=pull, clip=params.clip)
        nu = nu + params.dual_rate * (y - x) / params.eta
        turn.state["dual"] = nu.cpu().numpy()
        with torch.no_grad():
            y.copy_(x + params.eta * nu)  # what FedPD reports in place of its model
        return {}

    def server(self, turn: ServerTurn) -> NDArray[Any]:
        """Step by the mean of w_i (y_i - x); in the FedPD core the weights are in y_i already."""
        uploads, place = turn.uploads, slice(turn.trained)
        weights = equal_shares(uploads)
        if self.params.core == "fedavg":
            weights = weights * turn.state["weights"][[upload.client for upload in uploads]]
        new = total(uploads, "weights", shares(uploads))
        x = turn.weights[place].astype(np.float64)
        new[place] = x + self.params.lr_global * (total(uploads, "weights", weights, place) - weights.sum() * x)
        return new
