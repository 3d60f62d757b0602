"""Four ways to deal samples to clients by Dirichlet proportions.

Each takes the indices of every class, the number of clients, alpha and a generator, and returns the owner of
every sample. Nothing here grows with clients times samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fedrela.data.partition.record import Parts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Scheme = Callable[[Parts, int, float, np.random.Generator], Ints]


def proportional(members: Parts, clients: int, alpha: float, rng: np.random.Generator) -> Ints:
    """Shuffle each class and cut it at cumulated Dirichlet proportions."""
    owner = _nobody(members)
    for ids in members:
        p = normalise(log_weights(rng, alpha, (clients,)))
        _deal(owner, ids, _cut_anywhere(p, ids.size, rng), rng)
    return owner


def multinomial(members: Parts, clients: int, alpha: float, rng: np.random.Generator) -> Ints:
    """Let every sample of a class draw its client from the class's proportions (the official rule)."""
    owner = _nobody(members)
    for ids in members:
        owner[ids] = rng.choice(clients, size=ids.size, p=normalise(log_weights(rng, alpha, (clients,))))
    return owner


def niid_bench(members: Parts, clients: int, alpha: float, rng: np.random.Generator) -> Ints:
    """Cut as `proportional` does, but give no more to a client that holds its even share ``n / K``."""
    owner = _nobody(members)
    sizes = np.zeros(clients, np.int64)
    for ids in members:
        is_open = sizes < owner.size / clients
        p = normalise(np.where(is_open, log_weights(rng, alpha, (clients,)), -np.inf))
        counts = _cut_anywhere(p, ids.size, rng)
        _deal(owner, ids, counts, rng)
        sizes += counts
    return owner


def equal(members: Parts, clients: int, alpha: float, rng: np.random.Generator) -> Ints:
    """Give every client the same size, within one, with a Dirichlet class mix of its own.

    All clients ask at once. Where a class is asked for more often than it has samples, chance decides who is
    served, the class closes, and the others ask again among the open classes. A pass serves all or closes a class,
    so there are few.
    """
    owner = _nobody(members)
    left = np.array([ids.size for ids in members], np.int64)
    need = np.diff(np.arange(clients + 1) * owner.size // clients)
    taste = log_weights(rng, alpha, (clients, len(members)))
    served = np.zeros((clients, len(members)), np.int64)
    while need.any():
        asking, is_open = np.flatnonzero(need), np.flatnonzero(left)
        cells = np.ix_(asking, is_open)
        wanted = rng.multinomial(need[asking], normalise(taste[cells]))
        for j in np.flatnonzero(wanted.sum(axis=0) > left[is_open]):
            wanted[:, j] = rng.multivariate_hypergeometric(wanted[:, j], left[is_open[j]], method="marginals")
        served[cells] += wanted
        need[asking] -= wanted.sum(axis=1)
        left[is_open] -= wanted.sum(axis=0)
    for ids, counts in zip(members, served.T, strict=True):
        _deal(owner, ids, counts, rng)
    return owner


SCHEMES: dict[str, Scheme] = {
    "proportional": proportional,
    "multinomial": multinomial,
    "niid_bench": niid_bench,
    "equal": equal,
}


def log_weights(rng: np.random.Generator, alpha: float, shape: tuple[int, ...]) -> Floats:
    """Draw logarithms of Gamma(alpha) variables.

    ``Gamma(a) = Gamma(a + 1) * U^(1 / a)`` in logarithms: with a small alpha the variables themselves underflow
    to zero, all of them at times, and their proportions would be 0 / 0.
    """
    return np.log(rng.standard_gamma(alpha + 1.0, shape)) + np.log1p(-rng.random(shape)) / alpha


def normalise(logs: Floats) -> Floats:
    """Turn logarithms of weights into proportions that sum to one along the last axis.

    >>> normalise(np.array([-5000.0, -5000.0, -np.inf])).tolist()
    [0.5, 0.5, 0.0]
    """
    weights: Floats = np.exp(logs - logs.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def cut(proportions: Floats, total: int) -> Ints:
    """Cut `total` samples at cumulated proportions and return the size of every piece.

    Dividing by the last cumulated value makes the last border exact, so no rounding leaves a sample to a client
    whose proportion is zero.

    >>> cut(np.array([0.5, 0.3, 0.2, 0.0]), 11).tolist()
    [5, 3, 3, 0]
    """
    cumulated = np.cumsum(proportions)
    borders = np.floor(cumulated / cumulated[-1] * total)
    pieces: Ints = np.diff(borders, prepend=0.0).astype(np.int64)
    return pieces


def _cut_anywhere(proportions: Floats, total: int, rng: np.random.Generator) -> Ints:
    """Cut with the clients laid out in random order.

    In a fixed order rounding favours the same clients in every class: with more clients than samples and a large
    alpha, some would get a sample of each class and their neighbours none.
    """
    order = rng.permutation(proportions.size)
    counts = np.empty(proportions.size, np.int64)
    counts[order] = cut(proportions[order], total)
    return counts


def _nobody(members: Parts) -> Ints:
    return np.full(sum(ids.size for ids in members), -1, np.int64)


def _deal(owner: Ints, ids: Ints, counts: Ints, rng: np.random.Generator) -> None:
    """Give ``counts[k]`` of the samples `ids`, taken at random, to client k."""
    owner[rng.permutation(ids)] = np.repeat(np.arange(counts.size), counts)
