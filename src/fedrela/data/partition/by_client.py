"""Clients as the data has them: hospitals, writers, devices; merged or split to a wanted number."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.data.checks import check_whole
from fedrela.data.partition.apportion import apportion
from fedrela.data.partition.record import Parts, parts_of
from fedrela.errors import ArgumentError, DataError
from fedrela.streams import stream


def natural(client_ids: ArrayLike, clients: int | None = None, *, seed: int) -> Parts:
    """Give every natural client its own samples, and return one sorted index array a client.

    Parameters
    ----------
    client_ids : (n,) numbers or strings
        Whose sample it is. Clients are numbered by ascending id.
    clients
        K, or None for one client an id. Fewer than ids: whole ids are merged, the largest first into the
        smallest client. More: the id with the largest pieces is cut into one piece more, again and again, its
        samples shuffled before.
    seed
        Seed of the run; it matters only where ids are split.

    Examples
    --------
    >>> [part.tolist() for part in natural(["b", "a", "b", "c"], seed=1)]
    [[1], [0, 2], [3]]
    >>> [part.tolist() for part in natural(["b", "a", "b", "c"], 2, seed=1)]
    [[0, 2], [1, 3]]
    """
    ids = np.asarray(client_ids)
    if ids.ndim != 1 or ids.size == 0:
        raise DataError(f"client_ids: expected one id a sample, got shape {ids.shape}")
    seed = check_whole("seed", seed, 0)
    names, group = np.unique(ids, return_inverse=True)
    wanted = names.size if clients is None else check_whole("clients", clients, 1)
    if wanted > ids.size:
        raise ArgumentError(f"clients: {wanted} clients need {wanted} samples, there are {ids.size}")
    if wanted < names.size:
        return parts_of(_merged(np.bincount(group), wanted)[group], wanted)
    return parts_of(_split(group.astype(np.int64), wanted, seed), wanted)


def _merged(sizes: NDArray[np.int64], clients: int) -> NDArray[np.int64]:
    """Return the client of every id: largest id first, always into the client that is smallest so far."""
    into = np.empty(sizes.size, np.int64)
    filled = [(0, k) for k in range(clients)]
    for i in np.argsort(-sizes, kind="stable"):
        size, k = heapq.heappop(filled)
        into[i] = k
        heapq.heappush(filled, (size + int(sizes[i]), k))
    return into


def _split(group: NDArray[np.int64], clients: int, seed: int) -> NDArray[np.int64]:
    """Return the client of every sample where each id is cut into one or more pieces of near equal size."""
    parts = parts_of(group, int(group.max()) + 1)
    pieces = apportion([part.size for part in parts], clients, most=clients)
    owner = np.empty(group.size, np.int64)
    first = np.cumsum(pieces) - pieces
    for i, part in enumerate(parts):
        piece = np.arange(part.size) * pieces[i] // part.size
        if pieces[i] > 1:
            part = stream(seed, "partition", client=i).permutation(part)
        owner[part] = first[i] + piece
    return owner
