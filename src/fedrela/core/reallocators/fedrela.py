"""The paper's own re-allocator; `fedrela.core.equations` has its equations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.candidates import Candidates, find_candidates
from fedrela.core.reallocators.base import Reallocator
from fedrela.core.relabel_options import RelabelOptions


class FedReLa(Reallocator):
    """The paper's equations (2) to (8): z-scores above a quantile, to rarer classes only."""

    own_budget = True  # equation (7); the rule "linear" and constant z values give it up on purpose

    def propose(
        self, posterior: NDArray[Any], labels: NDArray[Any], options: RelabelOptions, rng: np.random.Generator
    ) -> Candidates:
        """Return the pairs whose z-score passes the threshold of a rarer class; rho is equation (8)."""
        return find_candidates(posterior, labels, options)
