"""Re-weighting: weight each class by the inverse of the client's class count.

The standard remedy of imbalanced learning, applied by every client locally.

    loss = sum_b w_y CE / sum_b w_y,   w_c = n / (U n_c)          U: classes the client has

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Algorithm, ClientContext
from fedrela.options import Options, option


@dataclass(frozen=True)
class ReweightParams(Options):
    """How strongly class counts affect the weights."""

    power: float = option(1.0, "weights are inverse counts to this power", ge=0)


class Reweight(Algorithm):
    """Weights each class by the inverse of the client's class count."""

    name = "reweight"
    label = "Re-weighting"
    paper = "standard remedy"
    Params = ReweightParams
    reduces_to = "fedavg at power = 0"
    own_loss = True

    def client(self, context: ClientContext) -> None:
        """Minimise the weighted cross-entropy."""
        weights = class_weights(context.tensor(context.counts), self.params.power)
        context.train(loss=lambda batch: cross_entropy(batch.forward(), batch.y, weight=weights))


def class_weights(counts: Tensor, power: float = 1.0) -> Tensor:
    """Return (n / (U n_c))^power for the U classes present, and 0 for the others; all 1 at power 0.

    >>> class_weights(torch.tensor([6.0, 2.0, 0.0])).tolist()
    [0.6666666865348816, 2.0, 0.0]
    """
    present = counts > 0
    weights = (counts.sum() / (present.sum() * counts.clamp(min=1))) ** power
    return torch.where(present, weights, torch.zeros_like(weights))
