"""What may move at all, and how much: the owner's rules on top of the method.

The bound a target class (at most floor(tau * n) samples move into it) comes from the threshold itself, equation (7)
with ``"higher"`` or ``"order"``. Here are the rules that the paper does not have: forbidden moves, samples that must
stay, and a cap on the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.candidates import Candidates
from fedrela.core.reallocator import Ints


def permitted(
    found: Candidates,
    y: NDArray[Any],
    allowed: NDArray[np.bool_] | None,
    eligible: NDArray[np.bool_] | None,
) -> Candidates:
    """Drop candidates whose move is forbidden or whose sample must stay; their probability becomes 0."""
    if allowed is not None:
        found = found.take(allowed[y[found.sample], found.target])
    if eligible is not None:
        found = found.take(eligible[found.sample])
    return found


def cap(found: Candidates, chosen: Ints, limit: int) -> Ints:
    """Keep at most `limit` of the chosen moves: those with the largest rho, ties to the lowest sample."""
    if chosen.size <= limit:
        return chosen
    largest_first = np.argsort(-found.rho[chosen], kind="stable")
    return chosen[np.sort(largest_first[:limit])]
