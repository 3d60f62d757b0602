"""FedLoGe: a fixed sparse frame trains the features, an auxiliary head learns the norms, and norms are realigned.

Xiao et al., FedLoGe: joint local and generic federated learning under long-tailed data, ICLR 2024.

    body:      CE(S'f + b, y)              S: a sparse ETF, never trained
    auxiliary: CE(g(f), y)                 shared; f held fixed
    local:     CE(l(f), y)                 stays with the client; f held fixed

Scored is the frame S, or after realignment the auxiliary head with all rows at one norm, W_c <- 1.7 W_c / |W_c|. A
client would use its local head plus the auxiliary one with rows scaled by the norms of the local one.

What leaves the client: weights, the auxiliary head among them, and the number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, normalize

from fedrela.algorithms.base import Algorithm
from fedrela.algorithms.local import train
from fedrela.algorithms.params import Params, param
from fedrela.algorithms.samples import Batch
from fedrela.algorithms.turns import Arrays, ClientTurn
from fedrela.models import heads
from fedrela.models.contract import num_features


@dataclass(frozen=True)
class FedLogeParams(Params):
    """As the official code; it keeps a random bias beside the frame, by oversight as it seems."""

    beta: float = param(0.6, "beta", "share of the frame's entries that are zero", low=0, below=1)
    frame_steps: int = param(10_000, "", "steps of Adam that spread the frame", low=0)
    norm: float = param(1.7, "", "norm of every row after realignment", above=0)
    scored: str = param(
        "global", "", "the auxiliary head realigned, or the frame that trains the features",
        choices=("global", "frame"),
    )  # fmt: skip
    frame_bias: str = param("zero", "b", "zero, or random as in the official code", choices=("zero", "official"))


class LogeModel(nn.Module):
    """A body with a fixed frame, an auxiliary head and a local head."""

    def __init__(self, model: nn.Module, frame: nn.Module, classes: int, seed: int) -> None:
        super().__init__()
        width = num_features(model)
        self.num_features = width
        self.model = model
        self.model.head = nn.Identity()
        self.head = frame
        self.auxiliary = heads.linear(width, classes, seed=seed, purpose="auxiliary head")
        self.local = heads.linear(width, classes, seed=seed, purpose="local head")

    def features(self, x: Tensor) -> Tensor:
        """Return the features of a batch."""
        model: Any = self.model
        features: Tensor = model.features(x)
        return features

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of the frame."""
        logits: Tensor = self.head(self.features(x))
        return logits


def realign(weight: Tensor, norm: float) -> Tensor:
    """Return W_c <- norm W_c / |W_c|.

    >>> import torch
    >>> realign(torch.tensor([[3.0, 4.0], [0.0, 2.0]]), 10.0).tolist()
    [[6.0, 8.0], [0.0, 10.0]]
    """
    realigned: Tensor = norm * normalize(weight, dim=1)
    return realigned


def realign_locally(weight: Tensor, local: Tensor) -> Tensor:
    """Return W_c <- W_c |L_c|, the auxiliary rows scaled by the norms of the local ones."""
    rescaled: Tensor = weight * local.norm(dim=1, keepdim=True)
    return rescaled


class FedLoge(Algorithm):
    """Joint local and generic learning under long tails."""

    name = "fedloge"
    paper = "Xiao et al., 2024"
    Params = FedLogeParams
    uploads = ("weights",)
    private = ("local",)
    own_loss = True
    needs_split = True
    _frame: Tensor | None = None  # made once, and sent to workers with the algorithm

    def module(self, model: nn.Module, classes: int, seed: int) -> nn.Module:
        """Return the model with the frame for its head, and two heads more."""
        width, params = num_features(model), self.params
        if self._frame is None or self._frame.shape != (width, classes):
            self._frame = heads.sparse_etf(width, classes, seed=seed, beta=params.beta, steps=params.frame_steps)
        bias = None
        if params.frame_bias == "official":
            bias = heads.linear(width, classes, seed=seed, purpose="frame bias").bias
        frame = heads.FixedHead(self._frame, bias)
        return LogeModel(model, frame, classes, seed).to(next(model.parameters()))

    def client(self, turn: ClientTurn) -> Arrays:
        """Train the body through the frame, and both heads on what it makes."""
        model: Any = turn.model.module

        def three(batch: Batch) -> Tensor:
            f = batch.features()
            fixed = f.detach()
            heads = cross_entropy(model.auxiliary(fixed), batch.y) + cross_entropy(model.local(fixed), batch.y)
            return cross_entropy(batch.head(f), batch.y) + heads

        train(turn, loss=three)
        return {}

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the realigned auxiliary head's logits, or the frame's."""
        model: Any = module
        if self.params.scored == "frame":
            frame: Tensor = model(x)
            return frame
        return linear(model.features(x), realign(model.auxiliary.weight, self.params.norm), model.auxiliary.bias)

    def local_logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the local head plus the auxiliary one at the local head's norms."""
        model: Any = module
        f = model.features(x)
        rescaled = realign_locally(model.auxiliary.weight, model.local.weight)
        logits: Tensor = model.local(f) + linear(f, rescaled, model.auxiliary.bias)
        return logits
