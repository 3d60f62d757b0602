"""The last lines of the paper's Algorithm 1: a Bernoulli draw a candidate, then one target a sample.

Also what those draws do on average, for a preview that draws nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.candidates import Candidates
from fedrela.core.reallocator import Floats, Ints


def draw_hits(found: Candidates, draws: Floats | np.random.Generator) -> NDArray[np.bool_]:
    """U ~ Bernoulli(rho), one draw a candidate: taken from an array (n, C), or made in the order of candidates."""
    if isinstance(draws, np.random.Generator):
        return draws.random(found.rho.size) < found.rho
    return draws[found.sample, found.target] < found.rho


def choose_targets(found: Candidates, hits: NDArray[np.bool_], target: str) -> Ints:
    """Pick for every sample with a successful draw the candidate it moves to.

    Parameters
    ----------
    found
        The candidates.
    hits
        Which draws succeeded.
    target
        ``"argmax"``: the class with the largest rho of all, as the paper says; ``"winner"``: the largest among the
        classes whose own draw succeeded, as the official code does. Ties go to the lowest class.

    Returns
    -------
    chosen
        Indices into the candidates, one a moved sample, ascending by sample.
    """
    n = int(found.sample.max(initial=-1)) + 1
    score = found.rho if target == "argmax" else np.where(hits, found.rho, 0.0)
    best = np.zeros(n)
    np.maximum.at(best, found.sample, score)
    level = np.flatnonzero(score == best[found.sample])[::-1]  # classes descending: the lowest is written last
    choice = np.empty(n, np.intp)
    choice[found.sample[level]] = level
    moves = np.zeros(n, bool)
    moves[found.sample[hits]] = True
    return choice[moves]


def expected_flow(found: Candidates, y: NDArray[Any], target: str) -> Floats:
    """Return the expected number of moves from class a to class b as ``(C, C)``, before any cap.

    A sample moves with probability ``1 - prod(1 - rho)``. Under ``"argmax"`` all of that goes to its largest rho;
    under ``"winner"`` class c gets ``rho_c * prod(1 - rho)`` over the classes ranked above c.
    """
    flow = np.zeros((found.threshold.size, found.threshold.size))
    if target == "argmax":
        chosen = choose_targets(found, np.ones(found.rho.size, bool), target)
        kept = np.ones(y.size)
        np.multiply.at(kept, found.sample, 1.0 - found.rho)
        mover = found.sample[chosen]
        np.add.at(flow, (y[mover], found.target[chosen]), 1.0 - kept[mover])
        return flow
    ranked = found.take(np.lexsort((found.target, -found.rho, found.sample)))
    np.add.at(flow, (y[ranked.sample], ranked.target), ranked.rho * _kept_before(ranked))
    return flow


def _kept_before(ranked: Candidates) -> Floats:
    """Product of ``1 - rho`` over the earlier candidates of the same sample."""
    kept = np.ones(ranked.rho.size)
    starts = np.flatnonzero(np.diff(ranked.sample, prepend=-1))
    for start, stop in pairwise([*starts.tolist(), kept.size]):
        kept[start + 1 : stop] = np.cumprod(1.0 - ranked.rho[start : stop - 1])
    return kept
