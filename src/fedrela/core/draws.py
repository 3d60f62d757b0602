"""From candidates to moves: the last lines of the paper's Algorithm 1.

A Bernoulli draw per candidate, one target per sample, and an overall cap, which the paper does not have. At most
floor(tau * n) samples move into one class: the threshold itself, equation (7) with ``"higher"`` or ``"order"``,
guarantees that. This module also has the expected moves, for previews, and the control that moves random samples.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core.candidates import Candidates
from fedrela.core.equations import Floats, Ints
from fedrela.core.ledger import Ledger


def draw_hits(candidates: Candidates, draws: Floats | np.random.Generator) -> NDArray[np.bool_]:
    """U ~ Bernoulli(rho), one draw per candidate: read from an array (n, C), or drawn in the order of candidates."""
    if isinstance(draws, np.random.Generator):
        return draws.random(candidates.rho.size) < candidates.rho
    return draws[candidates.sample, candidates.target] < candidates.rho


def choose_targets(candidates: Candidates, hits: NDArray[np.bool_], target: str) -> Ints:
    """Pick for every sample with a successful draw the candidate it moves to: indices, ascending by sample.

    With the target ``"argmax"`` it is the class with the largest rho of all, as the paper says; with ``"winner"`` the
    largest among the classes whose own draw succeeded, as the official code does. Ties go to the lowest class.
    """
    n = int(candidates.sample.max(initial=-1)) + 1
    score = candidates.rho if target == "argmax" else np.where(hits, candidates.rho, 0.0)
    best = np.zeros(n)
    np.maximum.at(best, candidates.sample, score)
    ties = np.flatnonzero(score == best[candidates.sample])[::-1]  # classes descending: the lowest is written last
    choice = np.empty(n, np.intp)
    choice[candidates.sample[ties]] = ties
    moves = np.zeros(n, bool)
    moves[candidates.sample[hits]] = True
    return choice[moves]


def cap(candidates: Candidates, chosen: Ints, limit: int) -> Ints:
    """Keep at most `limit` of the chosen moves: those with the largest rho, ties to the lowest sample."""
    if chosen.size <= limit:
        return chosen
    largest_first = np.argsort(-candidates.rho[chosen], kind="stable")
    return chosen[np.sort(largest_first[:limit])]


def expected_flow(candidates: Candidates, y: NDArray[Any], target: str) -> Floats:
    """Return the expected number of moves from class a to class b as ``(C, C)``, before any cap.

    A sample moves with probability ``1 - prod(1 - rho)``. Under ``"argmax"`` all of that goes to its largest rho;
    under ``"winner"`` class c gets ``rho_c * prod(1 - rho)`` over the classes ranked above c.
    """
    flow = np.zeros((candidates.threshold.size, candidates.threshold.size))
    if target == "argmax":
        chosen = choose_targets(candidates, np.ones(candidates.rho.size, bool), target)
        kept = np.ones(y.size)
        np.multiply.at(kept, candidates.sample, 1.0 - candidates.rho)
        mover = candidates.sample[chosen]
        np.add.at(flow, (y[mover], candidates.target[chosen]), 1.0 - kept[mover])
        return flow
    ranked = candidates.take(np.lexsort((candidates.target, -candidates.rho, candidates.sample)))
    np.add.at(flow, (y[ranked.sample], ranked.target), ranked.rho * _kept_before(ranked))
    return flow


def _kept_before(ranked: Candidates) -> Floats:
    """Product of ``1 - rho`` over the earlier candidates of the same sample."""
    kept = np.ones(ranked.rho.size)
    starts = np.flatnonzero(np.diff(ranked.sample, prepend=-1))
    for start, stop in pairwise([*starts.tolist(), kept.size]):
        kept[start + 1 : stop] = np.cumprod(1.0 - ranked.rho[start : stop - 1])
    return kept


def random_moves(ledger: Ledger, posterior: NDArray[Any], rng: np.random.Generator) -> Ledger:
    """Return a ledger with the same number of moves from class a to class b, but with samples drawn at random.

    Only which samples moved differs; `posterior` is the one that the re-labelling used. Samples that were not eligible
    stay. The drawn samples have no score and no probability: both are 0.

    Examples
    --------
    >>> import fedrela
    >>> Q = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]])
    >>> done = fedrela.relabel(Q, [0, 0, 0, 1], tau=0.5, seed=1)
    >>> control = random_moves(done.ledger, Q, np.random.default_rng(0))
    >>> bool((control.flow == done.ledger.flow).all())
    True
    """
    chosen = [np.empty((2, 0), np.int64)]
    eligible = np.ones(ledger.original.size, np.bool_)
    eligible[ledger.options.get("ineligible_rows", [])] = False
    for old in range(ledger.num_classes):
        targets = ledger.new[ledger.old == old]
        samples = rng.permutation(np.flatnonzero((ledger.original == old) & eligible))
        chosen.append(np.stack([samples[: targets.size], targets]))
    index, new = np.concatenate(chosen, axis=1)
    order = np.argsort(index)
    index, new = index[order], new[order]
    return replace(
        ledger,
        index=index,
        old=ledger.original[index].astype(np.int64),
        new=new,
        posterior=posterior[index, new].astype(np.float64),
        z=np.zeros(index.size),
        rho=np.zeros(index.size),
        options=ledger.options | {"moves": "random"},
    )
