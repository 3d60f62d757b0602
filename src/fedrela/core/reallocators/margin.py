"""FedReLa without its z-scores: how far the model prefers another class to the label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.candidates import Candidates
from fedrela.core.equations import class_weights, probability, quantile_threshold, weight_gain
from fedrela.core.reallocators.base import Reallocator
from fedrela.core.relabel_options import RelabelOptions


class Margin(Reallocator):
    """The margin Q[c] - Q[y] in place of z in the paper's equations (7) and (8), to rarer classes only."""

    label = "Posterior margin"
    unused = ("spread", "normalize")

    def propose(
        self, posterior: NDArray[Any], labels: NDArray[Any], options: RelabelOptions, rng: np.random.Generator
    ) -> Candidates:
        """Return the pairs whose margin passes the threshold of a rarer class."""
        n, C = posterior.shape
        Q = posterior.T.astype(np.float64, order="C")  # (C, n), class by class
        margin = Q - Q[labels, np.arange(n)]
        varpi = class_weights(np.bincount(labels, minlength=C))
        rule = options.variant(C).threshold
        threshold = quantile_threshold(margin, options.taus(C), rule) if isinstance(rule, str) else rule
        gain = weight_gain(varpi[:, None], varpi[labels])
        rho = probability(margin, threshold[:, None], gain)
        target, sample = np.nonzero(rho)
        return Candidates(sample, target, margin[target, sample], rho[target, sample], threshold, varpi)
