"""FedETF as the FedReLa paper ran it: a fixed simplex ETF as the head, dot regression as the loss.

Li et al., No fear of classifier biases, ICCV 2023; this variant with dot regression is that of the FedLoGe and FedReLa
code.

    v    = h / |h|,  h = BN(f)                    M: a simplex ETF, C unit vectors as far apart as possible
    loss = (1 / 2U) sum over the U classes of a batch of the class mean of (v'M_y - 1)^2

Predictions are argmax v'M. The BN is averaged like any other, or left out. The official code has three of them: clients
train one and discard it, test batches of 100 are normalised by their own statistics, and elsewhere it is the identity.
The unused linear heads that it also trains and sends are left out.

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, normalize

from fedrela.algorithms.base import Algorithm, Arrays, Batch, ClientContext
from fedrela.losses import dot_regression
from fedrela.models.contract import num_features
from fedrela.models.heads import EtfHead, simplex_etf, with_heads
from fedrela.options import Options, option

TEST_BATCH = 100  # test batch of the official code


@dataclass(frozen=True)
class FedEtfParams(Options):
    """How features are normalised; the public codes differ in this."""

    bn_mode: str = option(
        "aggregated", "averaged over clients, none, or as in the official code: each client's own for one round, and "
        "test batches normalised by themselves", symbol="BN", choices=("aggregated", "none", "official"),
    )  # fmt: skip


class FedEtf(Algorithm):
    """Trains features towards a fixed simplex ETF classifier that all clients share."""

    name = "fedetf"
    label = "FedETF"
    paper = "Li et al., 2023, as run by FedReLa"
    cost = 1.1
    Params = FedEtfParams
    reduces_to = "nothing: the cosines of its fixed head are -1 / (C - 1)"
    own_loss = True
    needs_split = True

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.private = ("head.norm",) if self.params.bn_mode == "official" else ()

    def module(self, model: nn.Module, classes: int, seed: int) -> nn.Module:
        """Return the model with a fixed ETF as its head."""
        etf = simplex_etf(num_features(model), classes, seed=seed)
        return with_heads(model, head=EtfHead(etf, batch_norm=self.params.bn_mode != "none"))

    def client(self, context: ClientContext) -> None:
        """Minimise the dot regression."""
        model: Any = context.model.module
        M = model.head.etf

        def loss(batch: Batch) -> Tensor:
            v = model.head.unit(batch.features())
            batch.scores = v @ M
            return dot_regression(v, batch.y, M)

        context.train(loss=loss)
        if self.params.bn_mode == "official":
            model.head.norm.reset_parameters()

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return v'M; in the official code the BN of the head is in the opposite mode to the body."""
        model: Any = module
        f = model.features(x)
        if self.params.bn_mode == "official":
            h = f if module.training else by_own_statistics(f)
            logits: Tensor = normalize(h, dim=1, eps=1e-8) @ model.head.etf
        else:
            logits = model.head(f)
        return logits


def by_own_statistics(f: Tensor) -> Tensor:
    """Return features normalised as in the official test: by mean and variance of each test batch."""
    parts = [f[start : start + TEST_BATCH] for start in range(0, len(f), TEST_BATCH)]
    return torch.cat([batch_norm(part, None, None, training=True) if len(part) > 1 else part for part in parts])
