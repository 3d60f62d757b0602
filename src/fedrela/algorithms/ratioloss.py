"""Ratio Loss: weight classes by how strongly a balanced probe set on the server moves the classifier.

Wang et al., Addressing class imbalance in federated learning, AAAI 2021.

    client: loss = mean_b alpha_y CE,   alpha_c = 1 + beta r_c                         alpha = 1 in the first round
    server: U_p = change of the last layer's weights after training x on the probe samples of class p
            M_p = weights (i, j) at which U_p is largest (signed) and no other |U_q| exceeds 0.8 |U_p|
            r_p = |sum_{M_p} U_p| / |sum_{M_p} mean_{q != p} U_q|,  at most 5000
            x  <- mean of y_i, all clients equal                                        buffers of BatchNorm by samples

The code of CLIMB has another rule for r, ``rule="port"``: without training or choosing weights, from the gradients G_p
of the last layer's weights on the probe samples of class p, using the weights of class p alone:

    r_p = |mean_j (C - 1) G_p[p, j] / sum_{q != p} G_q[p, j]|,  at most 5000 here too; j where the sum is 0 left out

Only r is taken from that code; the loss and the update of alpha are as above.

What leaves the client: weights, number of samples. What it receives besides the weights: alpha. The server
needs its own balanced samples, taken before imbalance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Algorithm, Arrays, ClientContext, Local, ServerContext, Sizes
from fedrela.errors import ArgumentError
from fedrela.options import Options, option

NO_RIVALS = 10.0  # r if the other classes do not move the chosen weights at all
LARGEST = 5000.0  # the port has no limit, but divides its loss by the weights of a batch, which bounds it
RULES, WEIGHTINGS = ("official", "port"), ("per_sample", "as_run")


@dataclass(frozen=True)
class RatioLossParams(Options):
    """The official code: 63 probe samples per class, two epochs, beta 0.1. The port: 5 samples, no training."""

    beta: float = option(0.1, "weight of the ratio in a class's weight", symbol="beta", ge=0)
    rule: str = option("official", "training on the probe samples, or gradients (port)", symbol="r_c", choices=RULES)
    probe: int = option(63, "probe samples per class", ge=1)
    probe_epochs: int = option(2, "epochs of training on them", ge=1)
    probe_batch: int = option(64, "batch size of that training", ge=1)
    dominance: float = option(0.8, "largest change of a weight by other classes, relative to the strongest", gt=0, le=1)
    weighting: str = option("per_sample", "as_run (code): mean(alpha_y) mean(CE)", symbol="alpha_y", choices=WEIGHTINGS)

    def unused(self) -> dict[str, str]:
        """Return the options of the official rule, if the port's is chosen."""
        others = ("probe_epochs", "probe_batch", "dominance") if self.rule == "port" else ()
        return dict.fromkeys(others, f"rule {self.rule!r} does not use it")


def ratio_loss(logits: Tensor, labels: Tensor, alpha: Tensor, weighting: str = "per_sample") -> Tensor:
    """Return the mean of alpha_y CE, or the official product of two means.

    >>> f, y = torch.tensor([[0.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1])
    >>> round(ratio_loss(f, y, torch.tensor([1.0, 3.0])).item(), 4)
    1.3863
    """
    losses = cross_entropy(logits, labels, reduction="none")
    return (alpha[labels] * losses).mean() if weighting == "per_sample" else alpha[labels].mean() * losses.mean()


def ratios(U: NDArray[np.float64], dominance: float = 0.8) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return r_p and the weights M_p assigned to each class, from the changes U, (C, C, d)."""
    C = len(U)
    strongest = U.argmax(axis=0)
    size = np.abs(U)
    chosen = np.take_along_axis(size, strongest[None], axis=0)[0]
    rivals = size.copy()
    np.put_along_axis(rivals, strongest[None], -1.0, axis=0)
    clear = ~(rivals > dominance * chosen).any(axis=0)
    mask = (np.arange(C)[:, None, None] == strongest) & clear
    own = np.abs((U * mask).sum(axis=(1, 2)))
    others = np.abs((((U.sum(axis=0) - U) / (C - 1)) * mask).sum(axis=(1, 2)))
    r = np.divide(own, others, out=np.full(C, NO_RIVALS), where=others > 0)
    return np.minimum(r, LARGEST), mask


def gradient_ratios(G: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return r_p by the port's rule from the gradients G, (C, C, d), ignoring features that no other class uses.

    >>> gradient_ratios(np.array([[[-3.0, -1.0], [3.0, 1.0]], [[1.0, 1.0], [-1.0, -1.0]]])).round(4).tolist()
    [2.0, 0.6667]
    """
    C = len(G)
    own = np.einsum("ppj->pj", G)
    others = G.sum(axis=0) - own
    used = others != 0
    terms = np.divide((C - 1) * own, others, out=np.zeros_like(others), where=used)
    r = np.abs(terms.sum(axis=1)) / np.maximum(used.sum(axis=1), 1)
    return np.minimum(np.where(used.any(axis=1), r, NO_RIVALS), LARGEST)


def head_gradients(module: Any, x: Tensor, y: Tensor) -> NDArray[np.float64]:
    """Return G_p = mean_b (softmax(logits_b) - onehot_p) f_b, (C, C, d); in evaluation mode, so no buffer changes."""
    module.eval()
    blocks = []
    for p in range(module.head.out_features):
        with torch.no_grad():
            f = module.features(x[y == p])
            error = torch.softmax(module.head(f).double(), dim=1)
        error[:, p] -= 1
        blocks.append((error.T @ f.double()).cpu().numpy() / max(len(f), 1))
    return np.stack(blocks)


class RatioLoss(Algorithm):
    """Weights classes by how a balanced probe set on the server moves the classifier."""

    name = "ratioloss"
    label = "Ratio Loss"
    paper = "Wang et al., 2021"
    cost = 1.5
    Params = RatioLossParams
    reduces_to = "fedavg with equal weights at beta = 0"
    own_loss = True
    needs_split = True

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.auxiliary = self.params.probe

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return alpha = 1."""
        if not isinstance(getattr(model, "head", None), nn.Linear):
            raise ArgumentError("ratioloss: expected a model with a linear head, whose weights the probe set moves")
        return {"alpha": np.ones(sizes.classes)}

    def broadcast(self, state: Arrays) -> Arrays:
        """Return alpha."""
        return {"alpha": state["alpha"].astype(np.float32)}

    def client(self, context: ClientContext) -> None:
        """Minimise the weighted loss."""
        alpha, weighting = context.tensor(context.received["alpha"]), self.params.weighting
        context.train(loss=lambda batch: ratio_loss(batch.forward(), batch.y, alpha, weighting))

    def server(self, context: ServerContext) -> NDArray[Any]:
        """Average the clients; compute the next alpha from the probe set at the model they started from."""
        if self.params.beta:
            context.state["alpha"] = 1.0 + self.params.beta * self._ratios(context)
        new = context.average()
        new[: context.trained] = context.mean()
        return new

    def _ratios(self, context: ServerContext) -> NDArray[np.float64]:
        """Return r by the chosen rule."""
        if context.auxiliary is None:
            raise ArgumentError("ratioloss: the server has no probe set")
        if self.params.rule == "port":
            return gradient_ratios(head_gradients(context.model.module, *context.auxiliary))
        return ratios(self._pulls(context, *context.auxiliary), self.params.dominance)[0]

    def _pulls(self, context: ServerContext, x: Tensor, y: Tensor) -> NDArray[np.float64]:
        """Return U: for each class the change of the last layer after training on its probe samples."""
        module: Any = context.model.module
        start, before = context.model.vector.clone(), module.head.weight.detach().clone()
        local = Local(context.lr, self.params.probe_epochs, self.params.probe_batch, momentum=0.9, weight_decay=5e-4)
        pulls = []
        for p in range(len(before)):
            context.model.vector.copy_(start)
            context.train(context.model, x[y == p], y[y == p], local, subject=p)
            pulls.append((module.head.weight.detach() - before).double().cpu().numpy())
        context.model.vector.copy_(start)
        return np.stack(pulls)
