"""FedLC: calibrate logits before the softmax, so that a client's rare classes get the larger margin.

Zhang et al., Federated learning with label distribution skew via logits calibration, ICML 2022.

    loss = CE(f(x) - tau n_c^(-1/4), y)          n_c: the client's samples of class c, by the current labels

The paper prints the softmax without the true class in its denominator; public code includes it. Without it the loss has
no minimum: the true logit keeps rising, and long training needs `clip` and weight decay. A class that the client lacks
has the logit minus infinity, so no gradient, unless its count is raised. Predictions use f(x).

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedrela.algorithms.base import Algorithm, ClientContext
from fedrela.losses import fedlc
from fedrela.options import Options, option


@dataclass(frozen=True)
class FedLCParams(Options):
    """The paper does not print tau; a public baseline uses 0.5 and tries 0.1 and 1."""

    tau: float = option(0.5, "strength of the margin", symbol="tau", ge=0)
    denominator: str = option(
        "full", "softmax over all classes, or without the true one", symbol="sum_c", choices=("full", "without_label")
    )
    floor: float = option(0.0, "smaller class counts are raised to it; 1e-8 in some public code", symbol="n_c", ge=0)


class FedLC(Algorithm):
    """Calibrates logits, so that a client's rare classes get the larger margin."""

    name = "fedlc"
    label = "FedLC"
    paper = "Zhang et al., 2022"
    cost = 1.05
    Params = FedLCParams
    reduces_to = "fedavg at tau = 0 with the full denominator"
    own_loss = True

    def client(self, context: ClientContext) -> None:
        """Minimise the calibrated cross-entropy."""
        counts, params = context.tensor(context.counts), self.params
        options = {"floor": params.floor, "exclude_label": params.denominator == "without_label"}
        context.train(loss=lambda batch: fedlc(batch.forward(), batch.y, counts, params.tau, **options))
