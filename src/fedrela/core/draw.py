"""The last lines of the paper's Algorithm 1: a Bernoulli draw a candidate, then one target a sample.

Also what those draws do on average, for a preview that draws nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.candidates import Candidates
from fedrela.core.reallocator import Floats, Ints


def draw_hits(found: Candidates, seed: Any, uniforms: Floats | None) -> NDArray[np.bool_]:
    """U ~ Bernoulli(rho), one draw a candidate: taken from `uniforms` (n, C), or made in the order of candidates."""
    if uniforms is not None:
        return uniforms[found.sample, found.target] < found.rho
    return np.random.default_rng(seed).random(found.rho.size) < found.rho


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
        Indices into the candidates, one a moved sample, ascending.
    """
    starts = found.row_starts
    if starts.size == 0:
        return starts
    moves = np.logical_or.reduceat(hits, starts)
    score = found.rho if target == "argmax" else np.where(hits, found.rho, -1.0)
    lengths = np.diff(starts, append=score.size)
    best = np.flatnonzero(score == np.repeat(np.maximum.reduceat(score, starts), lengths))
    first_best = best[np.searchsorted(best, starts)]
    return first_best[moves]


def expected_flow(found: Candidates, y: NDArray[Any], target: str) -> Floats:
    """Return the expected number of moves from class a to class b as ``(C, C)``, before any cap.

    A sample moves with probability ``1 - prod(1 - rho)``. Under ``"argmax"`` all of that goes to its largest rho;
    under ``"winner"`` class c gets ``rho_c * prod(1 - rho)`` over the classes ranked above c.
    """
    C = found.threshold.size
    flow = np.zeros((C, C))
    starts = found.row_starts
    if starts.size == 0:
        return flow
    if target == "argmax":
        chosen = choose_targets(found, np.ones(found.rho.size, bool), target)
        moves = 1.0 - np.multiply.reduceat(1.0 - found.rho, starts)
        np.add.at(flow, (y[found.sample[chosen]], found.target[chosen]), moves)
        return flow
    ranked = np.lexsort((found.target, -found.rho, found.sample))
    rho = found.rho[ranked]
    np.add.at(flow, (y[found.sample[ranked]], found.target[ranked]), rho * _kept_before(rho, starts))
    return flow


def _kept_before(rho: Floats, starts: Ints) -> Floats:
    """Product of ``1 - rho`` over the earlier entries of the same row; rows begin at `starts`."""
    kept = np.ones(rho.size)
    for row, stop in zip(starts, np.append(starts[1:], rho.size), strict=True):
        kept[row + 1 : stop] = np.cumprod(1.0 - rho[row : stop - 1])
    return kept
