"""Random oversampling: repeat a client's rarer classes until they are as frequent as its largest class.

The standard remedy of imbalanced learning, applied by every client locally. Samples are drawn again in each round; the
client's weight in the average stays that of its real samples.

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedrela.algorithms.base import Algorithm, ClientContext, Samples
from fedrela.options import Options, option


@dataclass(frozen=True)
class OversampleParams(Options):
    """How far rarer classes are filled up."""

    ratio: float = option(1.0, "size of each class relative to the largest", gt=0, le=1)


class Oversample(Algorithm):
    """Repeats a client's rarer classes until they are as frequent as its largest."""

    name = "oversample"
    label = "Oversampling"
    paper = "standard remedy"
    cost = 3.0
    Params = OversampleParams
    reduces_to = "fedavg if a client's classes are equally frequent"

    def prepare(self, context: ClientContext) -> Samples:
        """Return all samples and repeated ones of the rarer classes."""
        samples, rng = context.samples, context.stream("oversample")
        size = int(self.params.ratio * context.counts.max())
        repeats = [
            rng.choice(np.flatnonzero(samples.labels == c), size - n)
            for c, n in enumerate(context.counts.tolist())
            if 0 < n < size
        ]
        if not repeats:
            return samples
        at = np.concatenate([np.arange(len(samples)), *repeats])
        return replace(samples, index=samples.index[at], labels=samples.labels[at])
