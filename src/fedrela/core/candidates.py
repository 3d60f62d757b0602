"""From a posterior to the candidates: the few (sample, class) pairs whose re-labelling probability is positive.

The posterior is walked in blocks of columns, so that beside the input only one block and the candidates are in
memory. Every number about a pair that is not a candidate is dropped at once: its probability is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core import reallocator as eq
from fedrela.core.options import Options
from fedrela.core.reallocator import ClassGroups, Floats, Ints

BLOCK_COLUMNS = 64  # with these two a block is gathered at the speed of a plain transposition
TILE_ROWS = 1024


Found = tuple[Ints, Ints, Floats, Floats]  # sample, target, score, rho


@dataclass(frozen=True)
class Candidates:
    """Pairs with positive probability, ordered by sample and then by class."""

    sample: Ints
    target: Ints
    score: Floats  # z, or what `normalize` puts in its place
    rho: Floats
    threshold: Floats  # (C,)
    varpi: Floats  # (C,)
    small_classes: int = 0  # classes with fewer than two samples
    flat_columns: int = 0  # (class, column) pairs of larger classes without spread

    @property
    def row_starts(self) -> Ints:
        """Where in the arrays each sample's first candidate lies."""
        return np.flatnonzero(np.diff(self.sample, prepend=-1))

    def dense_rho(self, n: int) -> Floats:
        """Equation (8) for all samples and classes, as ``(n, C)``."""
        rho = np.zeros((n, self.threshold.size))
        rho[self.sample, self.target] = self.rho
        return rho

    def take(self, keep: NDArray[Any]) -> Candidates:
        """Return only the candidates named by an index or a mask."""
        parts = {name: getattr(self, name)[keep] for name in ("sample", "target", "score", "rho")}
        return replace(self, **parts)


def find_candidates(Q: NDArray[Any], y: NDArray[Any], options: Options) -> Candidates:
    """Apply equations (2) to (8) to a posterior ``(n, C)`` and the labels ``(n,)``."""
    n, C = Q.shape
    if n == 0:
        return no_candidates(C)
    varpi = eq.class_weights(np.bincount(y, minlength=C))
    threshold = np.empty(C)
    groups = ClassGroups.of(y)
    y_sorted = y[groups.order].astype(np.intp)
    found, flat = [_empty()], 0
    for columns, block in _column_blocks(Q, groups.order):
        score, spread = _score(block, groups, options)
        threshold[columns] = _threshold(score, columns, options)
        flat += int((spread[:, groups.sizes > 1] == 0).sum())
        found.append(_above_threshold(score, columns, threshold, varpi, groups, y_sorted, options))
    sample, target, z, rho = (np.concatenate(part) for part in zip(*found, strict=True))
    by_sample = np.argsort(sample * C + target)
    parts = (sample[by_sample], target[by_sample], z[by_sample], rho[by_sample])
    small = int((groups.sizes < 2).sum())
    return Candidates(*parts, threshold, varpi, small_classes=small, flat_columns=flat)


def _above_threshold(
    score: Floats,
    columns: slice,
    threshold: Floats,
    varpi: Floats,
    groups: ClassGroups,
    y_sorted: Ints,
    options: Options,
) -> Found:
    """Equation (8) for those pairs of one block where it is positive: above the threshold, to a rarer class."""
    above = np.flatnonzero(score > threshold[columns, None])
    column, place = np.divmod(above, score.shape[1])
    gain = eq.weight_gain(varpi, y_sorted[place], columns.start + column)
    up = np.flatnonzero(gain)
    target, place, z = columns.start + column[up], place[up], score.ravel()[above[up]]
    formula = eq.raw_probability if options.normalize == "none" else eq.probability
    return groups.order[place], target, z, formula(z, threshold[target], gain[up])


def no_candidates(C: int) -> Candidates:
    """Return what there is where nothing was computed: no pair, thresholds that nothing passes, equal weights."""
    return Candidates(*_empty(), np.full(C, np.inf), np.ones(C))


def _empty() -> Found:
    return np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0), np.empty(0)


def _column_blocks(Q: NDArray[Any], order: Ints) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of columns as float64 ``(columns, samples)``, the samples in the given order."""
    n, C = Q.shape
    for start in range(0, C, BLOCK_COLUMNS):
        columns = slice(start, min(start + BLOCK_COLUMNS, C))
        block = np.empty((columns.stop - start, n))
        for tile in range(0, n, TILE_ROWS):
            block[:, tile : tile + TILE_ROWS] = Q[order[tile : tile + TILE_ROWS], columns].T
        yield columns, block


def _score(block: Floats, groups: ClassGroups, options: Options) -> tuple[Floats, Floats]:
    if options.normalize == "zscore":
        return eq.z_scores(block, groups, options.spread)
    if options.normalize == "minmax":
        return eq.minmax_scores(block, groups)
    return block, np.ones((block.shape[0], groups.sizes.size))


def _threshold(score: Floats, columns: slice, options: Options) -> Floats:
    if isinstance(options.threshold, str):
        return eq.quantile_threshold(score, options.tau, options.threshold)
    return options.threshold[columns]
