"""Dirichlet partitions: four schemes, the official code's own stream, and redraws when a client is too small.

A scheme takes the sample indices of every class, the number of clients, alpha and a generator, and returns the owner of
every sample. None of them uses memory that grows with clients times samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_choice, check_integer
from fedrela.data.checks import check_clients, check_labels
from fedrela.data.partition.basic import Ints, Partition, Parts, members_of, parts_of, repair
from fedrela.errors import ArgumentError
from fedrela.options import Option, checked
from fedrela.streams import stream

MAX_REDRAWS = 100
MAX_WEIGHTS = 20_000_000  # Dirichlet weights drawn over all redraws: about two seconds
LARGEST_NUMPY_SEED = 2**32 - 1
ALPHA = Option("alpha", float, 0.3, "concentration", ge=1e-6, le=1e9)  # beyond it a draw is one-hot or even

Floats = NDArray[np.float64]
Scheme = Callable[[Parts, int, float, np.random.Generator], Ints]


def dirichlet(
    labels: ArrayLike,
    clients: int,
    alpha: float,
    *,
    seed: int,
    scheme: str = "proportional",
    min_size: int = 10,
    numpy_seed: int | None = None,
) -> Partition:
    """Split samples over clients with Dirichlet proportions and return one sorted index array per client.

    Parameters
    ----------
    labels : (n,) integers
        Class of every sample.
    clients
        K, how many clients.
    alpha
        Concentration: near 0 a class goes to few clients, large values approach an even split.
    seed
        Seed of the run.
    scheme
        ``"proportional"``: each class is shuffled and cut at cumulative proportions. ``"multinomial"``: every
        sample draws its client, the official rule. ``"niid_bench"``: like proportional, but a client that has
        ``n / K`` samples gets no more. ``"equal"``: all clients have the same size within one, each with its own
        class mix.
    min_size
        Size of the smallest client; 0 allows empty ones. If one is smaller, the draw is repeated up to 100 times (fewer
        if clients times classes exceed 200,000); then samples are moved from the largest clients to the
        too small ones. The attribute `note` of the result says what was done.
    numpy_seed
        Follow the official code's stream exactly, with this seed in place of `seed`. It implies
        ``scheme="multinomial"`` and ``min_size=0``.

    Examples
    --------
    >>> parts = dirichlet([0, 0, 0, 1, 1, 1], 2, 0.5, seed=1, min_size=1)
    >>> sorted(i for part in parts for i in part.tolist())
    [0, 1, 2, 3, 4, 5]
    >>> dirichlet([0] * 9, 9, 0.1, seed=1, min_size=1).note
    'after 100 redraws, 6 samples were moved from the largest clients to the too small ones'
    """
    y, alpha = check_labels(labels), float(checked(ALPHA, alpha))
    seed = check_integer("seed", seed, 0)
    check_choice("scheme", scheme, tuple(SCHEMES))
    if numpy_seed is not None:
        if scheme not in ("proportional", "multinomial"):
            what = f"it implies scheme 'multinomial', got {scheme!r}; leave one of them out"
            raise ArgumentError(what, argument="numpy_seed")
        clients = check_clients(y.size, clients, min_size=0)
        return Partition(parts_of(official_owner(y, clients, alpha, numpy_seed), clients))
    clients = check_clients(y.size, clients, min_size)
    members = members_of(y)
    redraws = min(MAX_REDRAWS, MAX_WEIGHTS // (clients * max(len(members), 1)))
    for redraw in range(redraws + 1):
        owner = SCHEMES[scheme](members, clients, alpha, stream(seed, "partition", round=redraw))
        if np.bincount(owner, minlength=clients).min() >= min_size:
            return Partition(parts_of(owner, clients), redraw)
    owner, moved = repair(owner, clients, min_size, stream(seed, "partition repair"))
    return Partition(parts_of(owner, clients), redraws, moved)


def proportional(members: Parts, clients: int, alpha: float, rng: np.random.Generator) -> Ints:
    """Shuffle each class and cut it at cumulative Dirichlet proportions."""
    owner = _unowned(members)
    for ids in members:
        p = normalise(log_weights(rng, alpha, (clients,)))
        _assign(owner, ids, _cut_shuffled(p, ids.size, rng), rng)
    return owner


def multinomial(members: Parts, clients: int, alpha: float, rng: np.random.Generator) -> Ints:
    """Let every sample of a class draw its client from the class's proportions (the official rule)."""
    owner = _unowned(members)
    for ids in members:
        owner[ids] = rng.choice(clients, size=ids.size, p=normalise(log_weights(rng, alpha, (clients,))))
    return owner


def niid_bench(members: Parts, clients: int, alpha: float, rng: np.random.Generator) -> Ints:
    """Cut like `proportional`, but give no more to a client that has its even share ``n / K``."""
    owner = _unowned(members)
    sizes = np.zeros(clients, np.int64)
    for ids in members:
        is_open = sizes < owner.size / clients
        p = normalise(np.where(is_open, log_weights(rng, alpha, (clients,)), -np.inf))
        counts = _cut_shuffled(p, ids.size, rng)
        _assign(owner, ids, counts, rng)
        sizes += counts
    return owner


def equal(members: Parts, clients: int, alpha: float, rng: np.random.Generator) -> Ints:
    """Give every client the same size, within one, with its own Dirichlet class mix.

    All clients request samples at once. If a class is requested more often than it has samples, chance decides
    who gets them, the class closes, and the others request again among the open classes. Every pass serves all
    clients or closes a class, so there are few passes.
    """
    owner = _unowned(members)
    left = np.array([ids.size for ids in members], np.int64)
    need = np.diff(np.arange(clients + 1) * owner.size // clients)
    weights = log_weights(rng, alpha, (clients, len(members)))
    served = np.zeros((clients, len(members)), np.int64)
    while need.any():
        waiting, is_open = np.flatnonzero(need), np.flatnonzero(left)
        cells = np.ix_(waiting, is_open)
        wanted = rng.multinomial(need[waiting], normalise(weights[cells]))
        for j in np.flatnonzero(wanted.sum(axis=0) > left[is_open]):
            wanted[:, j] = rng.multivariate_hypergeometric(wanted[:, j], left[is_open[j]], method="marginals")
        served[cells] += wanted
        need[waiting] -= wanted.sum(axis=1)
        left[is_open] -= wanted.sum(axis=0)
    for ids, counts in zip(members, served.T, strict=True):
        _assign(owner, ids, counts, rng)
    return owner


SCHEMES: dict[str, Scheme] = {each.__name__: each for each in (proportional, multinomial, niid_bench, equal)}


def log_weights(rng: np.random.Generator, alpha: float, shape: tuple[int, ...]) -> Floats:
    """Draw logarithms of Gamma(alpha) variables.

    ``Gamma(a) = Gamma(a + 1) * U^(1 / a)`` in logarithms: with a small alpha the variables themselves underflow
    to zero, all of them at times, and their proportions would be 0 / 0.
    """
    return np.log(rng.standard_gamma(alpha + 1.0, shape)) + np.log1p(-rng.random(shape)) / alpha


def normalise(logs: Floats) -> Floats:
    """Convert logarithms of weights to proportions that sum to one along the last axis.

    >>> normalise(np.array([-5000.0, -5000.0, -np.inf])).tolist()
    [0.5, 0.5, 0.0]
    """
    weights: Floats = np.exp(logs - logs.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def cut(proportions: Floats, total: int) -> Ints:
    """Cut `total` samples at cumulative proportions and return the size of every piece.

    Dividing by the last cumulative value makes the last border exact, so rounding never gives a sample to a client
    whose proportion is zero.

    >>> cut(np.array([0.5, 0.3, 0.2, 0.0]), 11).tolist()
    [5, 3, 3, 0]
    """
    cumulative = np.cumsum(proportions)
    borders = np.floor(cumulative / cumulative[-1] * total)
    pieces: Ints = np.diff(borders, prepend=0.0).astype(np.int64)
    return pieces


def _cut_shuffled(proportions: Floats, total: int, rng: np.random.Generator) -> Ints:
    """Cut with the clients in random order.

    In a fixed order rounding favours the same clients in every class: with more clients than samples and a large
    alpha, some would get a sample of each class and their neighbours none.
    """
    order = rng.permutation(proportions.size)
    counts = np.empty(proportions.size, np.int64)
    counts[order] = cut(proportions[order], total)
    return counts


def _unowned(members: Parts) -> Ints:
    return np.full(sum(ids.size for ids in members), -1, np.int64)


def _assign(owner: Ints, ids: Ints, counts: Ints, rng: np.random.Generator) -> None:
    """Give ``counts[k]`` of the samples `ids`, taken at random, to client k."""
    owner[rng.permutation(ids)] = np.repeat(np.arange(counts.size), counts)


def official_owner(labels: NDArray[np.int64], clients: int, alpha: float, numpy_seed: int) -> NDArray[np.int64]:
    """Return the client of every sample exactly as the official code draws it.

    It seeds NumPy's global generator; here a separate generator gives the same stream. Classes are taken in ascending
    order, including absent ones, and the samples of a class by ascending index.

    The number of classes is one more than the largest label; it shapes the first draw, so labels without the last
    classes follow a different stream than labels with all classes.
    """
    if check_integer("numpy_seed", numpy_seed, 0) > LARGEST_NUMPY_SEED:
        what = f"expected an integer from 0 to {LARGEST_NUMPY_SEED}, got {numpy_seed}"
        raise ArgumentError(what, argument="numpy_seed")
    legacy = np.random.RandomState(numpy_seed)
    num_classes = int(labels.max()) + 1 if labels.size else 0
    legacy.binomial(1, 1.0, size=(clients, num_classes))  # also unused in the official code, but it advances the stream
    owner = np.full(labels.size, -1, np.int64)
    for c in range(num_classes):
        ids = np.flatnonzero(labels == c)
        p = legacy.dirichlet([alpha] * clients)
        if not np.isfinite(p).all():
            what = f"the official stream has no proportions for class {c} at alpha = {alpha:g}"
            raise ArgumentError(f"{what}; choose another numpy_seed or leave it out", argument="numpy_seed")
        owner[ids] = legacy.choice(clients, size=ids.size, p=p)
    return owner
