"""From a posterior to the candidates: the few (sample, class) pairs whose re-labelling probability is positive.

The posterior is read in blocks of columns, so that only the input, some columns and the candidates are in memory.
Pairs that are not candidates have probability 0 and are dropped at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core import equations as eq
from fedrela.core.equations import ClassGroups, Floats, Ints
from fedrela.core.relabel_options import RelabelOptions
from fedrela.text import plural

TRANSPOSE_COLUMNS, TRANSPOSE_ROWS = 8, 512  # a tile of this size is transposed within the cache
CACHE_NUMBERS = 65_536  # a block of at most this many numbers stays in a core's cache through all equations

ClassCandidates = tuple[Ints, Floats]  # of one class: positions in the order of samples, and scores


@dataclass(frozen=True)
class Candidates:
    """Pairs of a sample and a class that it may move to, class by class; what a re-allocator proposes.

    Parameters
    ----------
    sample, target : (m,) integers
        The sample of each pair, and the class that it may move to.
    score : (m,) floats
        z, or the method's own score.
    rho : (m,) floats in [0, 1]
        The probability of each draw.
    threshold, varpi : (C,) floats, optional
        Equations (7) and (6), if the method uses them.
    notes
        Remarks on unusual data.

    Examples
    --------
    Sample 3 may become class 1, with probability 0.9:

    >>> one = Candidates(np.array([3]), np.array([1]), np.array([1.5]), np.array([0.9]), threshold=np.zeros(2))
    >>> one.dense_rho(5)[3].tolist()
    [0.0, 0.9]
    """

    sample: Ints
    target: Ints
    score: Floats
    rho: Floats
    threshold: Floats = field(default_factory=lambda: np.empty(0))
    varpi: Floats = field(default_factory=lambda: np.empty(0))
    notes: tuple[str, ...] = ()

    def dense_rho(self, n: int) -> Floats:
        """Equation (8) for all samples and classes, as ``(n, C)``."""
        rho = np.zeros((n, self.threshold.size))
        rho[self.sample, self.target] = self.rho
        return rho

    def take(self, keep: NDArray[Any]) -> Candidates:
        """Return only the candidates named by an index or a mask."""
        parts = {name: getattr(self, name)[keep] for name in ("sample", "target", "score", "rho")}
        return replace(self, **parts)

    def largest(self, limit: Ints) -> Candidates:
        """Return at most `limit`, ``(C,)``, candidates per class: the largest rho, then score; ties go to the first."""
        return self.take(rank_within(self.target, -self.rho, -self.score) < limit[self.target])


def rank_within(group: NDArray[Any], *keys: NDArray[Any]) -> Ints:
    """Return the rank of each item in its group, sorted by `keys`, the first of which is the primary key.

    >>> rank_within(np.array([0, 1, 0, 1]), np.array([0.5, 0.2, 0.1, 0.3])).tolist()
    [1, 0, 0, 1]
    """
    order = np.lexsort((*reversed(keys), group))
    ordered = group[order]
    rank = np.empty(group.size, np.intp)
    rank[order] = np.arange(group.size) - np.searchsorted(ordered, ordered)
    return rank


def find_candidates(Q: NDArray[Any], y: NDArray[Any], options: RelabelOptions) -> Candidates:
    """Apply equations (2) to (8) to a posterior ``(n, C)`` and the labels ``(n,)``."""
    C = Q.shape[1]
    spread_rule, rule, _ = options.variant(C)
    counts = np.bincount(y, minlength=C)
    varpi = eq.class_weights(counts)
    groups = ClassGroups.of(y, counts)
    source = varpi[y[groups.order]]  # ascending, since frequent classes come first
    reach = np.searchsorted(source, varpi)  # number of samples of a more frequent class than c
    taus = options.taus(C)
    formula = eq.raw_probability if options.normalize == "none" else eq.probability
    threshold = np.empty(C)
    per_class: list[ClassCandidates] = []
    flat = 0
    for columns, block in _column_blocks(Q, groups.order):
        score, spread = _score(block, groups, options.normalize, spread_rule)
        own = taus[columns]
        threshold[columns] = eq.quantile_threshold(score, own, rule) if isinstance(rule, str) else rule[columns]
        flat += int((spread[:, groups.sizes > 1] == 0).sum())
        for c in range(columns.start, columns.stop):
            z = score[c - columns.start, : reach[c]]
            above = np.flatnonzero(z > threshold[c])
            per_class.append((above, z[above]))
    notes = tuple(_notes(int((groups.sizes < 2).sum()), flat))
    position, z, target = _join(per_class)
    rho = formula(z, threshold[target], eq.weight_gain(varpi[target], source[position]))
    return Candidates(groups.order[position], target, z, rho, threshold, varpi, notes)


def _notes(small: int, flat: int) -> Iterator[str]:
    if small:
        yield f"class too small: score 0 for {plural(small, 'class')} with one sample"
    if flat:
        yield f"no spread: score 0 for {plural(flat, '(class, column) pair')}"


def _join(per_class: list[ClassCandidates]) -> tuple[Ints, Floats, Ints]:
    """Join the candidates of all classes: positions, scores, and classes."""
    position, score = (np.concatenate(part) for part in zip(*per_class, strict=True))
    return position, score, np.repeat(np.arange(len(per_class)), [part[0].size for part in per_class])


def no_candidates(C: int) -> Candidates:
    """Return no candidates, with infinite thresholds and equal weights."""
    ints, floats = np.empty(0, np.intp), np.empty(0)
    return Candidates(ints, ints, floats, floats, np.full(C, np.inf), np.ones(C))


def _column_blocks(Q: NDArray[Any], order: Ints) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of columns as float64 ``(columns, samples)``, the samples in the given order."""
    n, C = Q.shape
    columns = np.empty((min(TRANSPOSE_COLUMNS, C), n))
    step = max(1, CACHE_NUMBERS // n)
    for start in range(0, C, TRANSPOSE_COLUMNS):
        stop = min(start + TRANSPOSE_COLUMNS, C)
        for row in range(0, n, TRANSPOSE_ROWS):
            rows = slice(row, row + TRANSPOSE_ROWS)
            columns[: stop - start, rows] = Q[rows, start:stop].T
        for first in range(start, stop, step):
            last = min(first + step, stop)
            yield slice(first, last), columns[first - start : last - start].take(order, axis=1)


def _score(block: Floats, groups: ClassGroups, normalize: str, spread: str) -> tuple[Floats, Floats]:
    if normalize == "zscore":
        return eq.z_scores(block, groups, spread)
    if normalize == "minmax":
        return eq.minmax_scores(block, groups)
    return block, np.ones((block.shape[0], groups.sizes.size))
