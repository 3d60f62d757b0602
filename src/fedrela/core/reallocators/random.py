"""A control: random samples of more frequent classes, whatever the model predicts.

Unlike ``[relabel] moves = "random"``, it does not repeat the numbers that FedReLa moved from class to class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.candidates import Candidates
from fedrela.core.equations import class_weights, weight_gain
from fedrela.core.reallocators.base import Reallocator
from fedrela.core.relabel_options import RelabelOptions


class Random(Reallocator):
    """Random samples of more frequent classes, with the weights of equation (6) alone."""

    label = "Random moves"
    unused = ("spread", "threshold", "normalize")

    def propose(
        self, posterior: NDArray[Any], labels: NDArray[Any], options: RelabelOptions, rng: np.random.Generator
    ) -> Candidates:
        """Return floor(tau * n) samples for every class, drawn from all more frequent classes."""
        n, C = posterior.shape
        varpi = class_weights(np.bincount(labels, minlength=C))
        taus = options.taus(C)
        source, sample, rho = varpi[labels], [], []
        for c in range(C):
            drawn = rng.permutation(np.flatnonzero(source < varpi[c]))[: int(taus[c] * n)]
            sample.append(drawn)
            rho.append(weight_gain(varpi[c], source[drawn]))
        target = np.repeat(np.arange(C), [len(each) for each in sample])
        return Candidates(np.concatenate(sample), target, np.zeros(target.size), np.concatenate(rho))
