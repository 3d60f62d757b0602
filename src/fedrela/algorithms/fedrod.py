"""FedROD: a balanced generic head for everybody, and a personal head beside it for each client.

Chen and Chao, On bridging generic and personalized federated learning for image classification, ICLR 2022.

    generic:   body and head G minimise  CE(G(f) + log n_c, y)                      the balanced softmax, local counts
    personal:  head P minimises          CE(G(f) + P(f), y)                         with G(f) and f held fixed

Both steps of a batch use what was computed before either. Scored is G; a client would use G + P.

What leaves the client: weights (without P), number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Algorithm
from fedrela.algorithms.local import Group, train
from fedrela.algorithms.params import Params, param
from fedrela.algorithms.samples import Batch
from fedrela.algorithms.turns import Arrays, ClientTurn
from fedrela.losses import balanced_softmax
from fedrela.models.contract import num_features
from fedrela.models.repeatable import seeded


@dataclass(frozen=True)
class FedRodParams(Params):
    """No official code is published; a public re-implementation raises counts to 1 and trains P by plain SGD."""

    floor: float = param(1.0, "n_c", "smaller class counts are raised to it", low=0)
    personal_momentum: float = param(0.0, "", "momentum of the personal head's steps", low=0, below=1)


class WithPersonalHead(nn.Module):
    """A model with a second head, which its owner keeps."""

    def __init__(self, model: nn.Module, classes: int) -> None:
        super().__init__()
        self.model = model
        self.personal = nn.Linear(num_features(model), classes)
        self.num_features = num_features(model)

    @property
    def head(self) -> nn.Module:
        """The generic head."""
        head: Any = self.model.head
        return head  # type: ignore[no-any-return]

    def features(self, x: Tensor) -> Tensor:
        """Return the features of a batch."""
        model: Any = self.model
        features: Tensor = model.features(x)
        return features

    def forward(self, x: Tensor) -> Tensor:
        """Return the generic logits."""
        logits: Tensor = self.model(x)
        return logits


class FedRod(Algorithm):
    """Two heads: generic and personal."""

    name = "fedrod"
    paper = "Chen and Chao, 2022"
    Params = FedRodParams
    uploads = ("weights",)
    reduces_to = "fedavg, for what is shared, where all counts are equal"
    private = ("personal",)
    own_loss = True
    needs_split = True

    def module(self, model: nn.Module, classes: int, seed: int) -> nn.Module:
        """Return the model with a personal head, the same at first for all clients."""
        with seeded(seed, "personal head"):
            return WithPersonalHead(model, classes).to(next(model.parameters()))

    def client(self, turn: ClientTurn) -> Arrays:
        """Train body and generic head by the balanced softmax, and the personal head on what they answer."""
        counts = torch.from_numpy(turn.counts).to(turn.model.vector)
        floor, module = self.params.floor, turn.model.module
        personal: Any = module.personal

        def both(batch: Batch) -> Tensor:
            f = batch.features()
            generic = batch.head(f)
            mine = cross_entropy(generic.detach() + personal(f.detach()), batch.y)
            return balanced_softmax(generic, batch.y, counts, floor=floor) + mine

        group = Group("personal", momentum=self.params.personal_momentum, weight_decay=0.0, fresh=True)
        train(turn, loss=both, groups=[group])
        return {}

    def local_logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return G + P."""
        split: Any = module
        f = split.features(x)
        logits: Tensor = split.head(f) + split.personal(f)
        return logits
