"""FedRoD: a balanced generic head for all clients, and a personal head beside it for each client.

Chen and Chao, On bridging generic and personalized federated learning for image classification, ICLR 2022.

    generic:   body and head G minimise  CE(G(f) + log n_c, y)                      the balanced softmax, local counts
    personal:  head P minimises          CE(G(f) + P(f), y)                         with G(f) and f held fixed

Both steps of a batch use the values from before either step; P takes plain SGD steps. Evaluation uses G, a client's
personal model G + P. P is linear; the paper also offers a hyper-network.

What leaves the client: weights (without P), number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Algorithm, Arrays, Batch, ClientContext, Group
from fedrela.losses import balanced_softmax
from fedrela.models.contract import num_features
from fedrela.models.heads import linear, with_heads
from fedrela.options import Options, option


@dataclass(frozen=True)
class FedRodParams(Options):
    """The authors published no code; of two public re-implementations, one raises counts to 1."""

    floor: float = option(1.0, "smaller counts are raised to it; 0: absent classes are masked", symbol="n_c", ge=0)


class FedRod(Algorithm):
    """Trains a balanced generic head for all and a personal head per client."""

    name = "fedrod"
    label = "FedRoD"
    paper = "Chen and Chao, 2022"
    cost = 1.1
    Params = FedRodParams
    reduces_to = "fedavg, in the shared arrays, if all counts are equal"
    private = ("personal_head",)
    own_loss = True
    needs_split = True

    def module(self, model: nn.Module, classes: int, seed: int) -> nn.Module:
        """Return the model with a personal head, initially the same for all clients."""
        return with_heads(model, personal_head=linear(num_features(model), classes, seed=seed, purpose="personal head"))

    def client(self, context: ClientContext) -> None:
        """Train body and generic head by the balanced softmax, and the personal head on their detached outputs."""
        counts, floor = context.tensor(context.counts), self.params.floor
        personal: Any = context.model.module.personal_head

        def both(batch: Batch) -> Tensor:
            f = batch.features()
            generic = batch.head(f)
            personal_loss = cross_entropy(generic.detach() + personal(f.detach()), batch.y)
            return balanced_softmax(generic, batch.y, counts, floor=floor) + personal_loss

        context.train(loss=both, groups=[Group("personal_head", momentum=0.0, weight_decay=0.0)])

    def local_logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return G + P."""
        model: Any = module
        f = model.features(x)
        both: Tensor = model.head(f) + model.personal_head(f)
        return both
