"""FedLoGe: a fixed sparse ETF trains the features, an auxiliary head learns norms, and norms are realigned.

Xiao et al., FedLoGe: joint local and generic federated learning under long-tailed data, ICLR 2024.

    body:       CE(S'f + b, y)             S: a sparse ETF (`fedrela.models.heads.sparse_etf`); S and b are fixed
    auxiliary:  CE(W f + a, y)             shared; f held fixed
    local:      CE(L f + l, y)             private; f held fixed

Realignment is post hoc. Predictions use the auxiliary head with all rows at one norm, W_c <- 1.7 W_c / |W_c|, or the
frame without realignment. A client's personal model is its local head plus the auxiliary one with W_c <- W_c |L_c|. The
official code can also average the auxiliary head by class; this reveals class counts, is off by default, and left out.

What leaves the client: weights (the auxiliary head among them), number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, normalize

from fedrela.algorithms.base import Algorithm, Arrays, Batch, ClientContext, Group
from fedrela.models import heads
from fedrela.models.contract import num_features
from fedrela.options import Options, option

NEVER = -1e10  # logit of a class that is never predicted
make_frame = lru_cache(maxsize=4)(heads.sparse_etf)  # the arms of a comparison share frames


@dataclass(frozen=True)
class FedLogeParams(Options):
    """As in the official code, except for the random bias that it keeps beside the frame."""

    beta: float = option(0.6, "fraction of the frame's entries that are zero", symbol="beta", ge=0, lt=1)
    frame_steps: int = option(10_000, "steps of Adam that spread the frame apart", ge=0)
    frame_bias: str = option("zero", "zero, or random (official code)", symbol="b", choices=("zero", "official"))
    norm: float = option(1.7, "norm of every row after realignment", gt=0)
    scored: str = option("global", "the auxiliary head realigned, or the training frame", choices=("global", "frame"))
    local_classes: str = option("all", "classes of a personal model: all, or the client's own", choices=("all", "own"))

    def unused(self) -> dict[str, str]:
        """Return the norm of the auxiliary head, if that head is not scored."""
        return {"norm": "scored 'frame' does not use it"} if self.scored == "frame" else {}


class FedLoge(Algorithm):
    """Trains features through a sparse ETF and realigns the norms of the heads."""

    name = "fedloge"
    label = "FedLoGe"
    paper = "Xiao et al., 2024"
    cost = 1.1
    Params = FedLogeParams
    reduces_to = "itself without realignment if all rows of the auxiliary head have that norm"
    private = ("local_head",)
    own_loss = True
    needs_split = True

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._frames: dict[tuple[int, int, int], Tensor] = {}  # pickled for workers, which need not compute them again

    def module(self, model: nn.Module, classes: int, seed: int) -> nn.Module:
        """Return the model with the frame as its head, and two more heads."""
        width, params = num_features(model), self.params
        shape = (width, classes, seed)
        if shape not in self._frames:
            self._frames[shape] = make_frame(width, classes, seed=seed, beta=params.beta, steps=params.frame_steps)
        names = ("auxiliary head", "local head", "frame bias")
        auxiliary, local, random = (heads.linear(width, classes, seed=seed, purpose=name) for name in names)
        local.register_buffer("present", torch.ones(classes))
        frame = heads.FixedHead(self._frames[shape], random.bias if params.frame_bias == "official" else None)
        return heads.with_heads(model, head=frame, auxiliary_head=auxiliary, local_head=local)

    def client(self, context: ClientContext) -> None:
        """Train the body through the frame, and both heads on its features."""
        model: Any = context.model.module
        model.local_head.present.copy_(torch.from_numpy(context.counts > 0))
        collects, norm = context.scores is not None, self._norm

        def loss(batch: Batch) -> Tensor:
            f = batch.features()
            fixed = f.detach()
            of_heads = [cross_entropy(head(fixed), batch.y) for head in (model.auxiliary_head, model.local_head)]
            if collects:
                batch.scores = scored_logits(model, fixed, norm)
            return cross_entropy(model.head(f), batch.y) + sum(of_heads)

        context.train(loss=loss, groups=[Group("auxiliary_head"), Group("local_head")])

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the realigned auxiliary head's logits, or the frame's."""
        model: Any = module
        return scored_logits(model, model.features(x), self._norm)

    def local_logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the logits of the local head plus the auxiliary one at the local head's norms."""
        model: Any = module
        f, local, auxiliary = model.features(x), model.local_head, model.auxiliary_head
        logits: Tensor = local(f) + linear(f, realign_locally(auxiliary.weight, local.weight), auxiliary.bias)
        return logits.masked_fill(local.present == 0, NEVER) if self.params.local_classes == "own" else logits

    @property
    def _norm(self) -> float | None:
        """The norm at which the auxiliary head is realigned; None if the frame is scored."""
        return self.params.norm if self.params.scored == "global" else None


def scored_logits(model: Any, f: Tensor, norm: float | None) -> Tensor:
    """Return the logits of the auxiliary head, realigned to this norm, or those of the frame if it is None."""
    auxiliary = model.auxiliary_head
    logits: Tensor = model.head(f) if norm is None else linear(f, realign(auxiliary.weight, norm), auxiliary.bias)
    return logits


def realign(W: Tensor, norm: float) -> Tensor:
    """Return W_c <- norm W_c / |W_c|, rows of equal norm.

    >>> realign(torch.tensor([[3.0, 4.0], [0.0, 2.0]]), 5.0).tolist()
    [[3.0, 4.0], [0.0, 5.0]]
    """
    return norm * normalize(W, dim=1)


def realign_locally(W: Tensor, L: Tensor) -> Tensor:
    """Return W_c <- W_c |L_c|, the rows scaled by the norms of the local ones."""
    norms: Tensor = L.norm(dim=1, keepdim=True)
    return W * norms
