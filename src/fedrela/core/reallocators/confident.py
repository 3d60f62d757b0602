"""Confident learning, the label correction of the label-noise literature.

References
----------
C. G. Northcutt, L. Jiang, I. L. Chuang. Confident Learning: Estimating Uncertainty in Dataset Labels. JAIR, 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.candidates import Candidates, rank_within
from fedrela.core.reallocators.base import Reallocator
from fedrela.core.relabel_options import RelabelOptions


class Confident(Reallocator):
    """Confident learning: labels that the model is confident are wrong, in any direction."""

    label = "Confident learning"
    unused = ("spread", "threshold", "normalize")

    def propose(
        self, posterior: NDArray[Any], labels: NDArray[Any], options: RelabelOptions, rng: np.random.Generator
    ) -> Candidates:
        """Return for each pair of classes as many samples as the joint estimates to be mislabelled, with rho = 1.

        A class's threshold is its mean self-confidence, the mean posterior of the class over its own samples. A sample
        counts for its most probable class above threshold; these counts, with each row scaled to the size of its
        class, estimate how many labels a should be b. Of the samples with label a and prediction b, that many are
        proposed, the largest margin first.
        """
        n, C = posterior.shape
        counts = np.bincount(labels, minlength=C)
        own = posterior[np.arange(n), labels].astype(np.float64)
        mean = np.bincount(labels, own, C) / np.maximum(counts, 1)
        sure = np.where(posterior >= np.where(counts > 0, mean, np.inf), posterior, -1.0)
        joint = np.zeros((C, C))
        counted = sure.max(axis=1) >= 0
        np.add.at(joint, (labels[counted], sure.argmax(axis=1)[counted]), 1.0)
        wrong = np.rint(joint * (counts / np.maximum(joint.sum(axis=1), 1))[:, None])

        predicted = posterior.argmax(axis=1)
        sample = np.flatnonzero(predicted != labels)
        margin = posterior[sample, predicted[sample]] - own[sample]
        rank = rank_within(labels[sample].astype(np.int64) * C + predicted[sample], -margin)
        kept = rank < wrong[labels[sample], predicted[sample]]
        return Candidates(sample[kept], predicted[sample[kept]], margin[kept], np.ones(int(kept.sum())))
