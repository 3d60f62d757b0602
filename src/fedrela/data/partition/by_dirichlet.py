"""Dirichlet partitions: draw, draw anew while a client is too small, repair."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.core.checks import check_choice
from fedrela.data.checks import check_alpha, check_clients, check_labels, check_whole
from fedrela.data.partition.official import official_owner
from fedrela.data.partition.record import Partition, Parts, members_of, parts_of
from fedrela.data.partition.repair import repair
from fedrela.data.partition.schemes import SCHEMES
from fedrela.errors import ArgumentError
from fedrela.streams import stream

MAX_REDRAWS = 100
MAX_WEIGHTS = 20_000_000  # Dirichlet weights drawn over all redraws: about two seconds


def dirichlet(
    labels: ArrayLike,
    clients: int,
    alpha: float,
    *,
    seed: int,
    scheme: str = "proportional",
    min_size: int = 10,
    numpy_seed: int | None = None,
) -> Parts:
    """Split samples over clients with Dirichlet proportions and return one sorted index array a client.

    Parameters
    ----------
    labels : (n,) integers
        Class of every sample.
    clients
        K, how many clients.
    alpha
        Concentration: near 0 a class goes to few clients, large values come near an even split.
    seed
        Seed of the run.
    scheme
        ``"proportional"``: each class is shuffled and cut at cumulated proportions. ``"multinomial"``: every
        sample draws its client, the official rule. ``"niid_bench"``: as proportional, but a client that holds
        ``n / K`` samples gets no more. ``"equal"``: all clients have the same size within one, each with a class
        mix of its own.
    min_size
        Smallest client; 0 allows empty ones. A draw with a smaller one is drawn anew, at most 100 times (less
        often where clients times classes pass 200,000); then samples are moved from the largest clients to the
        too small ones. `dirichlet_partition` tells what was done.
    numpy_seed
        Follow the official code's stream exactly, with this seed in place of `seed`. It implies
        ``scheme="multinomial"`` and ``min_size=0``.

    Examples
    --------
    >>> parts = dirichlet([0, 0, 0, 1, 1, 1], 2, 0.5, seed=1, min_size=1)
    >>> sorted(i for part in parts for i in part.tolist())
    [0, 1, 2, 3, 4, 5]
    """
    return dirichlet_partition(
        labels, clients, alpha, seed=seed, scheme=scheme, min_size=min_size, numpy_seed=numpy_seed
    ).parts


def dirichlet_partition(
    labels: ArrayLike,
    clients: int,
    alpha: float,
    *,
    seed: int,
    scheme: str = "proportional",
    min_size: int = 10,
    numpy_seed: int | None = None,
) -> Partition:
    """Split as `dirichlet` does and return the parts with the record of redraws and repair.

    >>> dirichlet_partition([0] * 9, 9, 0.1, seed=1, min_size=1).note
    'after 100 redraws, 6 samples were moved from the largest clients to the too small ones'
    """
    y, alpha = check_labels(labels), check_alpha(alpha)
    seed = check_whole("seed", seed, 0)
    check_choice("scheme", scheme, tuple(SCHEMES))
    if numpy_seed is not None:
        return _official(y, clients, alpha, scheme, check_whole("numpy_seed", numpy_seed, 0))
    clients = check_clients(y.size, clients, min_size)
    members = members_of(y)
    redraws = min(MAX_REDRAWS, MAX_WEIGHTS // (clients * max(len(members), 1)))
    for redraw in range(redraws + 1):
        owner = SCHEMES[scheme](members, clients, alpha, stream(seed, "partition", round=redraw))
        if np.bincount(owner, minlength=clients).min() >= min_size:
            return Partition(parts_of(owner, clients), redraw)
    owner, moved = repair(owner, clients, min_size, stream(seed, "partition repair"))
    return Partition(parts_of(owner, clients), redraws, moved)


def _official(labels: NDArray[np.int64], clients: int, alpha: float, scheme: str, numpy_seed: int) -> Partition:
    if scheme not in ("proportional", "multinomial"):
        raise ArgumentError(f"numpy_seed: it implies scheme 'multinomial', got {scheme!r}; leave one of them out")
    clients = check_clients(labels.size, clients, min_size=0)
    return Partition(parts_of(official_owner(labels, clients, alpha, numpy_seed), clients))
