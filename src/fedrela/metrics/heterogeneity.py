"""How imbalanced and how heterogeneous clients are, from their class counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError

BLOCK = 1_000_000  # comparisons at once: a few megabytes


@dataclass(frozen=True)
class Heterogeneity:
    """Metrics of a client-by-class count matrix ``n_kc``; a class is present if some client has it.

    Attributes
    ----------
    imbalance_ratio
        IR, the largest over the smallest count of the present classes.
    absence_rate
        Fraction of the cells (client, present class) that are zero, including empty clients.
    mismatch
        Local/global mismatch: how often a client orders two classes differently. Over all clients with samples and
        all pairs of classes with ``n_a > n_b`` globally, the fraction with ``n_ka < n_kb`` (the discordant pairs of
        Kendall's rank correlation). 0 if all classes are equally large.
    effective_clients
        Per class, the effective number of clients that hold it: the inverse Simpson index
        ``1 / sum_k (n_kc / n_c)^2``, from 1 (one client) to K (evenly); 0 for an absent class.
    total_variation
        Mean over the clients with samples of ``1/2 sum_c |n_kc / n_k - n_c / n|``: 0 if all clients have the global
        class distribution, near 1 if none does.
    empty_clients
        Number of clients without a sample.

    Examples
    --------
    All samples are of one class and at one client:

    >>> found = measure_heterogeneity([[30, 0], [0, 0]])
    >>> found.empty_clients, found.absence_rate, found.total_variation
    (1, 0.5, 0.0)
    """

    imbalance_ratio: float
    absence_rate: float
    mismatch: float
    effective_clients: tuple[float, ...]
    total_variation: float
    empty_clients: int


def measure_heterogeneity(client_counts: ArrayLike) -> Heterogeneity:
    """Measure imbalance and heterogeneity of clients.

    Parameters
    ----------
    client_counts : (K, C) non-negative integers
        Samples per client and class, at least one in all.

    Examples
    --------
    >>> found = measure_heterogeneity([[30, 0], [10, 20]])
    >>> found.imbalance_ratio, found.absence_rate, found.mismatch, found.effective_clients
    (2.0, 0.25, 0.5, (1.6, 1.0))
    """
    n = np.asarray(client_counts)
    if n.ndim != 2 or n.dtype.kind not in "iu" or n.size == 0 or n.min() < 0 or not n.any():
        form = "integers >= 0, (clients, classes), not all 0"
        raise ArgumentError(f"client_counts: expected {form}, got {n.dtype} {n.shape}")
    n = n.astype(np.int64, copy=False)
    total = n.sum(axis=0)
    present, filled = total > 0, n[n.sum(axis=1) > 0]
    return Heterogeneity(
        imbalance_ratio=float(total.max() / total[present].min()),
        absence_rate=float((n[:, present] == 0).mean()),
        mismatch=_reversed_pairs(filled, total),
        effective_clients=tuple(_inverse_simpson(n, total).tolist()),
        total_variation=_total_variation(filled, total),
        empty_clients=n.shape[0] - filled.shape[0],
    )


def _reversed_pairs(n: NDArray[np.int64], total: NDArray[np.int64]) -> float:
    """Return the fraction of pairs that clients order against the global counts.

    The rarer class of such a pair has samples at the client, so only non-empty cells are compared with their row:
    with many clients most cells are empty.
    """
    pairs = n.shape[0] * int((total[:, None] > total).sum())
    clients, classes = np.nonzero(n)
    block = max(1, BLOCK // total.size)
    reversals = 0
    for start in range(0, clients.size, block):
        k, rarer = clients[start : start + block], classes[start : start + block]
        against = (total > total[rarer, None]) & (n[k] < n[k, rarer][:, None])
        reversals += int(np.count_nonzero(against))
    return reversals / pairs if pairs else 0.0


def _inverse_simpson(n: NDArray[np.int64], total: NDArray[np.int64]) -> NDArray[np.float64]:
    squares = np.square(n.astype(np.float64)).sum(axis=0)
    return np.square(total.astype(np.float64)) / np.where(total > 0, squares, 1.0)


def _total_variation(n: NDArray[np.int64], total: NDArray[np.int64]) -> float:
    local = n / n.sum(axis=1, keepdims=True)
    return float(0.5 * np.abs(local - total / total.sum()).sum(axis=1).mean())
