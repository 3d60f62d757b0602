"""FedETF as the FedReLa paper ran it: a fixed simplex ETF for a head, and squared distance to it for a loss.

Li et al., No fear of classifier biases, ICCV 2023; this variant with dot regression is that of the FedLoGe and FedReLa
code.

    v    = h / |h|,  h = BN(f)                    M: a simplex ETF, C unit vectors that are as far apart as can be
    loss = (1 / 2U) sum over the U classes of a batch of the class mean of (v'M_y - 1)^2

Scored is argmax v'M. The official code throws the clients' BN away and scores with the statistics of each test batch;
here the BN is averaged like any other, or left out.

What leaves the client: weights, number of samples; with ``auxiliary_head`` the linear head that the official code
trains on detached features and sends, though it uses it for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Algorithm
from fedrela.algorithms.local import train
from fedrela.algorithms.params import Params, param
from fedrela.algorithms.samples import Batch
from fedrela.algorithms.turns import Arrays, ClientTurn
from fedrela.losses import dot_regression
from fedrela.models.contract import num_features
from fedrela.models.heads import EtfHead, linear, simplex_etf


@dataclass(frozen=True)
class FedEtfParams(Params):
    """How the features are normalised is what the codes differ in."""

    bn_mode: str = param(
        "aggregated", "BN", "averaged over clients, none, or as the official code: thrown away every round, and test "
        "batches normalised by themselves", choices=("aggregated", "none", "official"),
    )  # fmt: skip
    auxiliary_head: bool = param(False, "g_aux", "train and send the official code's auxiliary head")


class EtfModel(nn.Module):
    """A body with a fixed head, and perhaps an auxiliary one on detached features."""

    def __init__(self, model: nn.Module, head: EtfHead, auxiliary: nn.Module | None) -> None:
        super().__init__()
        self.model, self.head = model, head
        self.model.head = nn.Identity()
        self.num_features = num_features(model)
        if auxiliary is not None:
            self.auxiliary = auxiliary

    def features(self, x: Tensor) -> Tensor:
        """Return the features of a batch."""
        model: Any = self.model
        features: Tensor = model.features(x)
        return features

    def forward(self, x: Tensor) -> Tensor:
        """Return the cosines."""
        logits: Tensor = self.head(self.features(x))
        return logits


class FedEtf(Algorithm):
    """A fixed classifier, the same for all clients."""

    name = "fedetf"
    paper = "Li et al., 2023, as run by FedReLa"
    Params = FedEtfParams
    uploads = ("weights",)
    own_loss = True
    needs_split = True

    @property
    def private(self) -> tuple[str, ...]:  # type: ignore[override]
        """The BatchNorm of the head, where clients' own is thrown away."""
        return ("head.norm",) if self.params.bn_mode == "official" else ()

    def module(self, model: nn.Module, classes: int, seed: int) -> nn.Module:
        """Return the model with a fixed ETF for its head."""
        width = num_features(model)
        head = EtfHead(simplex_etf(width, classes, seed=seed), batch_norm=self.params.bn_mode != "none")
        auxiliary = linear(width, classes, seed=seed, purpose="auxiliary head") if self.params.auxiliary_head else None
        return EtfModel(model, head, auxiliary).to(next(model.parameters()))

    def client(self, turn: ClientTurn) -> Arrays:
        """Minimise the dot regression."""
        model: Any = turn.model.module
        if self.params.bn_mode == "official":
            model.head.norm.reset_parameters()

        def loss(batch: Batch) -> Tensor:
            f = batch.features()
            v = model.head.unit(f)
            batch.scores = v @ model.head.etf
            value = dot_regression(v, batch.y, model.head.etf)
            if self.params.auxiliary_head:
                value = value + cross_entropy(model.auxiliary(f.detach()), batch.y)
            return value

        train(turn, loss=loss)
        return {}

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return v'M; the official code normalises a batch by its own statistics."""
        model: Any = module
        if self.params.bn_mode != "official":
            logits: Tensor = model(x)
            return logits
        f = model.features(x)
        h = (f - f.mean(dim=0)) / torch.sqrt(f.var(dim=0, unbiased=False) + model.head.norm.eps) if len(f) > 1 else f
        v = h / h.norm(dim=1, keepdim=True).clamp(min=1e-8)
        return v @ model.head.etf  # type: ignore[no-any-return]
