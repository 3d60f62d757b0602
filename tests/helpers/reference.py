"""Two slow references, written as plain loops from the texts they follow; the package is compared with them.

`paper` follows Algorithm 1 and equations (2) to (8) of the paper line by line, with the named gaps filled as the
package documents them (no spread: z = 0; equal counts: no move). `official` follows the per-sample procedure of the
authors' released code as the specification describes it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def quantile(values: list[float], tau: float, rule: str) -> float:
    """The (1 - tau) quantile of a list: its upper neighbour, or interpolated."""
    ranked = sorted(values)
    place = (len(ranked) - 1) * (1.0 - tau)
    if rule == "higher":
        return ranked[math.ceil(place)]
    return float(np.quantile(ranked, 1.0 - tau))


def paper(Q: Any, y: Any, C: int, tau: float, U: Any, rule: str = "higher") -> tuple[np.ndarray, ...]:
    """Algorithm 1 of the paper for one client: new labels, z, thresholds and rho."""
    n = len(y)
    counts = [sum(1 for label in y if label == c) for c in range(C)]
    low, high = min(counts), max(counts)
    varpi = [1.0 if high == low else 1.0 - (k - low) / (high - low) for k in counts]
    z = [[0.0] * C for _ in range(n)]
    for i in range(n):
        same = [i0 for i0 in range(n) if y[i0] == y[i]]  # (2)
        for c in range(C):
            mu = math.fsum(float(Q[i0][c]) for i0 in same) / len(same)  # (3)
            if len(same) < 2:
                continue
            squares = math.fsum((float(Q[i0][c]) - mu) ** 2 for i0 in same)
            sigma = math.sqrt(squares / (len(same) - 1))  # (4)
            if sigma > 1e-12 * mu:
                z[i][c] = (float(Q[i][c]) - mu) / sigma  # (5)
    t = [quantile([z[i][c] for i in range(n)], tau, rule) for c in range(C)]  # (7)
    rho = [[0.0] * C for _ in range(n)]
    labels = [int(label) for label in y]
    for i in range(n):
        for c in range(C):
            gain = max(varpi[c] - varpi[y[i]], 0.0)  # (6)
            rho[i][c] = max(math.tanh(z[i][c] - t[c]) * gain, 0.0)  # (8)
        if any(U[i][c] < rho[i][c] for c in range(C)):
            labels[i] = max(range(C), key=lambda c: (rho[i][c], -c))
    return np.array(labels), np.array(z), np.array(t), np.array(rho)


def official(Q: Any, y: Any, C: int, tau: float, U: Any) -> tuple[np.ndarray, ...]:
    """The released procedure, sample by sample, with statistics a class kept in a table."""
    Q = np.asarray(Q, np.float64)
    n = len(y)
    counts = np.bincount(y, minlength=C)
    spread = counts.max() - counts.min()
    prior = np.ones(C) if spread == 0 else 1.0 - (counts - counts.min()) / spread
    mean, std = {}, {}
    for a in np.unique(y):
        rows = Q[y == a]
        mean[a], std[a] = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-6)
    z = np.array([(Q[i] - mean[y[i]]) / std[y[i]] for i in range(n)]).reshape(n, C)
    m = min(max(int(tau * n), 0), n - 1)
    t = np.sort(z, axis=0)[n - 1 - m]
    labels = np.array(y)
    rates = np.zeros((n, C))
    for i in range(n):
        rates[i] = np.tanh(z[i] - t) * np.maximum(prior - prior[y[i]], 0.0)
        winners = np.flatnonzero(rates[i] > U[i])
        if winners.size:
            labels[i] = winners[np.argmax(rates[i][winners])]
    return labels, z, t, rates
