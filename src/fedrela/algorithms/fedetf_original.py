"""FedETF, the original: a projection onto a fixed simplex ETF, trained by the balanced softmax.

Li et al., No fear of classifier biases: neural collapse inspired federated learning with synthetic and fixed
classifier, ICCV 2023.

    u    = g(f) / |g(f)|                          g: a linear projection, M: a simplex ETF, s: a trained number
    loss = CE(s u'M + log n_c, y)                 n_c: the client's counts, at least 1

Predictions are argmax u'M. The original carries the momentum of SGD from round to round, although the weights change;
here it starts at zero, as everywhere. Its personal models, tuned after the last round, are left out.

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from fedrela.algorithms.base import Algorithm, Arrays, Batch, ClientContext
from fedrela.losses import balanced_softmax
from fedrela.models.contract import num_features
from fedrela.models.heads import ProjectedEtfHead, simplex_etf, with_heads
from fedrela.options import Options, option


@dataclass(frozen=True)
class FedEtfOriginalParams(Options):
    """The original projects to C values in ResNets and to 64 in its small CNN, where s starts at 10."""

    projection: int = option(0, "width of the projection; 0: the number of classes", symbol="p", ge=0)
    scale: float = option(1.0, "initial value of the trained scale", symbol="s", gt=0)
    floor: float = option(1.0, "smaller class counts are raised to it", symbol="n_c", ge=0)


class FedEtfOriginal(Algorithm):
    """Trains a projection onto a fixed simplex ETF by the balanced softmax."""

    name = "fedetf_original"
    label = "FedETF (original)"
    paper = "Li et al., 2023"
    cost = 1.1
    Params = FedEtfOriginalParams
    reduces_to = "nothing: the cosines of its fixed head are -1 / (C - 1)"
    own_loss = True
    needs_split = True

    def module(self, model: nn.Module, classes: int, seed: int) -> nn.Module:
        """Return the model with a projected ETF as its head."""
        etf = simplex_etf(self.params.projection or classes, classes, seed=seed)
        return with_heads(model, head=ProjectedEtfHead(num_features(model), etf, seed=seed, scale=self.params.scale))

    def client(self, context: ClientContext) -> None:
        """Minimise the balanced softmax."""
        model: Any = context.model.module
        counts, floor = context.tensor(context.counts), self.params.floor

        def loss(batch: Batch) -> Tensor:
            batch.scores = cosines(model, batch.x)
            return balanced_softmax(model.head.scale * batch.scores, batch.y, counts, floor=floor)

        context.train(loss=loss)

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return u'M."""
        return cosines(module, x)


def cosines(model: Any, x: Tensor) -> Tensor:
    """Return u'M, the logits without s."""
    logits: Tensor = model.head.unit(model.features(x)) @ model.head.etf
    return logits
