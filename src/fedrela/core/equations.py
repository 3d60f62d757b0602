"""The label re-allocator: Section 4 of the paper, one function per equation, in the paper's order.

All equations but (6) treat the columns of the posterior, the classes a sample may move to, one by one. The functions
here therefore take a block of columns, laid out as ``(columns, samples)`` with the samples of a class side by side,
which is also the fastest layout; `fedrela.core.candidates` cuts a posterior into such blocks. The letters are the
paper's.

References
----------
G. Hu, P. Menéndez, F. Liu, M. Gong, G. Wang, L. Peng. FedReLa: Imbalanced Federated Learning via Re-Labeling.
ICML 2026.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

OFFICIAL_FLOOR = 1e-6  # the official code's lower limit for a standard deviation
ROUNDING = 1e-12  # a deviation this small relative to the mean is rounding, not spread


@dataclass(frozen=True)
class ClassGroups:
    """Equation (2): the index sets I of samples that share a label, as slices of a sorted order.

    ``order[starts[a] : starts[a] + sizes[a]]`` are the samples of class ``present[a]``, in their original order.
    Frequent classes come first, so that the samples which may move to some class are always the first ones.
    """

    order: Ints
    present: Ints
    starts: Ints
    sizes: Ints

    @classmethod
    def of(cls, y: NDArray[Any], counts: NDArray[Any]) -> ClassGroups:
        """Group the samples by their label, given how many there are of each class."""
        frequent_first = np.argsort(-counts, kind="stable")
        rank = np.empty(counts.size, np.uint16 if counts.size <= 65_536 else np.intp)  # 16 bits sort in linear time
        rank[frequent_first] = np.arange(counts.size)
        sizes = counts[frequent_first]
        sizes = sizes[sizes > 0]
        return cls(np.argsort(rank[y], kind="stable"), frequent_first[: sizes.size], np.cumsum(sizes) - sizes, sizes)

    def per_sample(self, per_class: Floats) -> Floats:
        """Expand ``(columns, present classes)`` to ``(columns, samples)``: every sample has its class's value."""
        return np.repeat(per_class, self.sizes, axis=1)


def agreement(Q: Floats, y: NDArray[Any]) -> float:
    """Return the share of labels that the model confirms, as its most probable class; NaN without samples.

    >>> agreement(np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]]), np.array([0, 1, 1, 1]))
    0.75
    """
    return float(np.mean(Q.argmax(axis=1) == y)) if y.size else np.nan


def class_means(Q: Floats, groups: ClassGroups) -> Floats:
    """Equation (3): mu, the mean posterior of each class, as ``(columns, present classes)``."""
    return np.add.reduceat(Q, groups.starts, axis=1) / groups.sizes


def class_deviations(centred: Floats, mu: Floats, groups: ClassGroups, spread: str) -> Floats:
    """Equation (4): sigma, the standard deviation of `centred` = Q - mu inside each class; 0 if there is no spread.

    The spread ``"sample"`` divides by n - 1, as the paper prints it; a class of one sample has no spread.
    ``"population"`` divides by n and is at least 1e-6 if there is any spread, as the official code does.
    """
    squares = np.add.reduceat(centred * centred, groups.starts, axis=1)
    divisor, floor = np.maximum(groups.sizes - 1, 1), 0.0
    if spread == "population":
        divisor, floor = groups.sizes, OFFICIAL_FLOOR
    sigma = np.sqrt(squares / divisor)
    return np.where(sigma > ROUNDING * mu, np.maximum(sigma, floor), 0.0)


def z_scores(Q: Floats, groups: ClassGroups, spread: str) -> tuple[Floats, Floats]:
    """Equation (5): z = (Q - mu) / sigma within each class, and 0 where sigma is 0; returns z and sigma."""
    mu = class_means(Q, groups)
    centred = Q - groups.per_sample(mu)
    sigma = class_deviations(centred, mu, groups, spread)
    inverse = np.divide(1.0, sigma, out=np.zeros_like(sigma), where=sigma > 0)
    centred *= groups.per_sample(inverse)
    return centred, sigma


def minmax_scores(Q: Floats, groups: ClassGroups) -> tuple[Floats, Floats]:
    """Ablation `tab:norm_ablation`: (Q - min) / (max - min) within each class in place of z; 0 where max = min."""
    low = np.minimum.reduceat(Q, groups.starts, axis=1)
    width = np.maximum.reduceat(Q, groups.starts, axis=1) - low
    score = Q - groups.per_sample(low)
    wide = groups.per_sample(width)
    return np.divide(score, wide, out=np.zeros_like(Q), where=wide > 0), width


def class_weights(counts: NDArray[Any]) -> Floats:
    """Equation (6), first half: varpi = 1 - minmax(n), 1 for the rarest class and 0 for the most frequent.

    Equal counts give no minmax; every weight is then 1, so that no difference of weights is positive.

    >>> class_weights(np.array([100, 60, 0]))
    array([0. , 0.4, 1. ])
    """
    low, high = counts.min(), counts.max()
    return np.ones(counts.size) if high == low else 1.0 - (counts - low) / (high - low)


def weight_gain(target: float | Floats, source: Floats) -> Floats:
    """Equation (6), second half: max(varpi[c] - varpi[y], 0) from the two weights; positive to rarer classes only."""
    return np.maximum(target - source, 0.0)


def quantile_rank(n: int, tau: float, rule: str) -> tuple[int, int, float]:
    """Ranks (ascending, from 0) between which the threshold of equation (7) lies, and the share of the upper one.

    ``"higher"`` is the quantile's upper neighbour, ``"order"`` the official (m+1)-th largest with m = int(tau * n),
    ``"linear"`` NumPy's default. At most floor(tau * n) samples lie above the first two, and one more above the last.

    >>> quantile_rank(21, 0.05, "higher"), quantile_rank(21, 0.05, "order")
    ((19, 19, 0.0), (19, 19, 0.0))
    """
    if rule == "order":
        rank = n - 1 - min(int(tau * n), n - 1)
        return rank, rank, 0.0
    position = (n - 1) * (1.0 - tau)
    if rule == "higher":
        # Rounding of (n - 1)(1 - tau) must not let more samples through than floor(tau * n).
        rank = max(int(np.ceil(position)), n - 1 - int(tau * n))
        return rank, rank, 0.0
    lower = int(np.floor(position))
    return lower, min(lower + 1, n - 1), position - lower


def quantile_threshold(Z: Floats, tau: float | Floats, rule: str) -> Floats:
    """Equation (7): t_re, the (1 - tau) quantile of every row of `Z`, over all samples whatever their label.

    `tau` is one number, or one per row.
    """
    if isinstance(tau, np.ndarray):
        if np.any(tau != tau[0]):
            return np.concatenate([quantile_threshold(Z[c : c + 1], own, rule) for c, own in enumerate(tau.tolist())])
        tau = float(tau[0])
    low, high, share = quantile_rank(Z.shape[1], tau, rule)
    ranked = np.partition(Z, (low, high) if low != high else low, axis=1)
    # The same interpolation as numpy.quantile: from the nearer end, so that a share of 0 or 1 is exact.
    a, b = ranked[:, low], ranked[:, high]
    return a + (b - a) * share if share < 0.5 else b - (b - a) * (1.0 - share)


def probability(z: Floats, t: float | Floats, gain: Floats) -> Floats:
    """Equation (8): rho = max(tanh(z - t) * varpi_y, 0)."""
    return np.maximum(np.tanh(z - t) * gain, 0.0)


def raw_probability(q: Floats, t: float | Floats, gain: Floats) -> Floats:
    """Ablation `tab:zscore`: rho = Q * varpi_y above the threshold, without standardisation or tanh."""
    return np.where(q > t, np.minimum(q, 1.0) * gain, 0.0)  # a rounded posterior may exceed 1 a little
