"""The pathological split: every client sees a few classes only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.data.checks import check_clients, check_labels, check_whole
from fedrela.data.partition.apportion import apportion
from fedrela.data.partition.record import Parts, members_of, parts_of
from fedrela.errors import ArgumentError
from fedrela.streams import stream


def shards(labels: ArrayLike, clients: int, classes_per_client: int, *, seed: int) -> Parts:
    """Give every client shards of exactly `classes_per_client` classes; one sorted index array a client.

    Classes are cut into ``clients * classes_per_client`` shards, large classes into more of them, so that shards
    are as equal as the classes allow. No client gets two shards of one class, and no shard is empty.

    Examples
    --------
    >>> parts = shards([0] * 4 + [1] * 4 + [2] * 4, 3, 2, seed=1)
    >>> [part.size for part in parts]
    [4, 4, 4]
    """
    y, seed = check_labels(labels), check_whole("seed", seed, 0)
    clients = check_clients(y.size, clients, min_size=1)
    per_client = check_whole("classes_per_client", classes_per_client, 1)
    members = members_of(y)
    _check_feasible([ids.size for ids in members], clients, per_client)
    holders = apportion([ids.size for ids in members], clients * per_client, most=clients)
    rng = stream(seed, "partition")
    owner = np.empty(y.size, np.int64)
    places = np.full(clients, per_client, np.int64)
    for c in rng.permutation(len(members)):
        chosen = _most_places(places, int(holders[c]), rng)
        places[chosen] -= 1
        ids = rng.permutation(members[c])
        owner[ids] = chosen[np.arange(ids.size) * holders[c] // ids.size]
    return parts_of(owner, clients)


def _check_feasible(sizes: list[int], clients: int, per_client: int) -> None:
    wanted, room = clients * per_client, sum(min(size, clients) for size in sizes)
    what = f"classes_per_client: {clients} clients with {per_client} classes each make {wanted} shards"
    if wanted < len(sizes):
        raise ArgumentError(f"{what}, fewer than the {len(sizes)} classes; raise it or clients")
    if wanted > room:
        raise ArgumentError(f"{what}, but the classes give no more than {room}; lower it or clients")


def _most_places(places: NDArray[np.int64], number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Choose the clients with the most free places, by lot where equal.

    Free places then never differ by more than one, which is why the last class still finds enough clients.
    """
    return np.lexsort((rng.random(places.size), -places))[:number]
