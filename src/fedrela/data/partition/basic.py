"""Partitions: an even split, a few classes per client, or the data's own clients.

This module also repairs partitions whose clients are too small, and splits off validation samples.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_fraction, check_integer
from fedrela.data.checks import check_clients, check_labels
from fedrela.errors import ArgumentError, DataError
from fedrela.streams import stream

Ints = NDArray[np.int64]
Parts = list[Ints]


class Partition(list[Ints]):
    """One sorted index array per client, which together contain every sample exactly once.

    Parameters
    ----------
    parts
        The index arrays.
    redraws
        How often the partition was redrawn because a client was too small.
    moved
        Samples that were then moved from the largest clients to the too small ones.

    Examples
    --------
    >>> found = Partition([np.array([0, 2]), np.array([1])], redraws=3)
    >>> [part.size for part in found], found.note
    ([2, 1], 'redrawn 3 times to reach the minimum size')
    """

    def __init__(self, parts: Iterable[Ints], redraws: int = 0, moved: int = 0) -> None:
        super().__init__(parts)
        self.redraws, self.moved = redraws, moved

    @property
    def note(self) -> str:
        """What was done to reach the minimum size, as one sentence; empty if the first draw reached it.

        >>> Partition([], redraws=100, moved=7).note
        'after 100 redraws, 7 samples were moved from the largest clients to the too small ones'
        """
        if self.moved:
            moves = "samples were moved from the largest clients to the too small ones"
            return f"after {self.redraws} redraws, {self.moved} {moves}"
        return f"redrawn {self.redraws} times to reach the minimum size" if self.redraws else ""


def parts_of(owner: Ints, clients: int) -> Parts:
    """Convert the owner of every sample to the sorted index array of every client.

    Every partition is built as an owner array, which cannot lose or duplicate a sample.

    >>> [part.tolist() for part in parts_of(np.array([2, 0, 2]), 3)]
    [[1], [], [0, 2]]
    """
    order = np.argsort(owner, kind="stable").astype(np.int64, copy=False)
    return np.split(order, np.cumsum(np.bincount(owner, minlength=clients))[:-1])


def members_of(labels: Ints) -> Parts:
    """Return the ascending sample indices of every class that is present, classes ascending.

    >>> [ids.tolist() for ids in members_of(np.array([5, 0, 5]))]
    [[1], [0, 2]]
    """
    order = np.argsort(labels, kind="stable").astype(np.int64, copy=False)
    borders = np.flatnonzero(np.diff(labels[order])) + 1
    return np.split(order, borders) if labels.size else []


def repair(owner: Ints, clients: int, min_size: int, rng: np.random.Generator) -> tuple[Ints, int]:
    """Move as few samples as possible from the largest clients to those below `min_size`.

    Donors shrink to a common size, never below `min_size`; their samples are drawn at random. Returns the new owners,
    and how many samples were moved.

    >>> owner, moved = repair(np.array([0, 0, 0, 0, 1, 1]), 3, 1, np.random.default_rng(0))
    >>> np.bincount(owner).tolist(), moved
    ([3, 2, 1], 1)
    """
    sizes = np.bincount(owner, minlength=clients)
    missing = np.maximum(min_size - sizes, 0)
    moved = int(missing.sum())
    donated = donations(sizes, moved)
    parts = parts_of(owner, clients)
    samples = [rng.choice(parts[k], donated[k], replace=False) for k in np.flatnonzero(donated)]
    owner = owner.copy()
    if samples:
        owner[rng.permutation(np.concatenate(samples))] = np.repeat(np.arange(clients), missing)
    return owner, moved


def donations(sizes: Ints, total: int) -> Ints:
    """Return how many samples each client donates, `total` in all, so that the largest shrink to one size.

    >>> donations(np.array([9, 2, 7, 8]), 6).tolist()
    [3, 0, 1, 2]
    """
    levels = range(1, int(sizes.max(initial=0)) + 1)  # the highest with enough samples above it is taken, or 0
    level = bisect_left(levels, True, key=lambda level: bool(np.maximum(sizes - level, 0).sum() < total))
    above = np.maximum(sizes - level, 0)
    spare = int(above.sum()) - total
    above[np.flatnonzero(above)[-spare:] if spare else []] -= 1
    return above


def iid(labels: ArrayLike, clients: int, *, seed: int, min_size: int = 1) -> Parts:
    """Shuffle all samples and give every client the same number, within one.

    Parameters
    ----------
    labels : (n,) integers
        The class of each sample.
    clients
        K.
    seed
        Seed of the run.
    min_size
        Samples of the smallest client; 0 allows more clients than samples, some of them empty.

    Examples
    --------
    >>> [part.size for part in iid([0, 1, 0, 1, 0], 2, seed=1)]
    [3, 2]
    """
    y, seed = check_labels(labels), check_integer("seed", seed, 0)
    clients = check_clients(y.size, clients, min_size)
    owner = np.arange(y.size) * clients // max(y.size, 1)
    return parts_of(stream(seed, "partition").permutation(owner), clients)


def shards(labels: ArrayLike, clients: int, classes_per_client: int, *, seed: int) -> Parts:
    """Give every client shards of exactly `classes_per_client` classes; one sorted index array per client.

    Classes are cut into ``clients * classes_per_client`` shards, large classes into more of them, so that shards
    are as equal as the classes allow. No client gets two shards of one class, and no shard is empty.

    Parameters
    ----------
    labels : (n,) integers
        The class of each sample.
    clients, classes_per_client
        K, and how many classes each of them sees.
    seed
        Seed of the run.

    Examples
    --------
    >>> parts = shards([0] * 4 + [1] * 4 + [2] * 4, 3, 2, seed=1)
    >>> [part.size for part in parts]
    [4, 4, 4]
    """
    y, seed = check_labels(labels), check_integer("seed", seed, 0)
    clients = check_clients(y.size, clients, min_size=1)
    per_client = check_integer("classes_per_client", classes_per_client, 1)
    members = members_of(y)
    _check_feasible([ids.size for ids in members], clients, per_client)
    holders = apportion([ids.size for ids in members], clients * per_client, most=clients)
    rng = stream(seed, "partition")
    owner = np.empty(y.size, np.int64)
    missing = np.full(clients, per_client, np.int64)
    for c in rng.permutation(len(members)):
        # Take the clients that still lack the most classes, ties at random: these numbers then never differ by more
        # than one, so the last class still finds enough clients.
        chosen = np.lexsort((rng.random(clients), -missing))[: holders[c]]
        missing[chosen] -= 1
        ids = rng.permutation(members[c])
        owner[ids] = chosen[np.arange(ids.size) * holders[c] // ids.size]
    return parts_of(owner, clients)


def _check_feasible(sizes: list[int], clients: int, per_client: int) -> None:
    number, most = clients * per_client, sum(min(size, clients) for size in sizes)
    key, what = "classes_per_client", f"{clients} clients with {per_client} classes each make {number} shards"
    if number < len(sizes):
        raise ArgumentError(f"{what}, fewer than the {len(sizes)} classes; raise it or clients", argument=key)
    if number > most:
        raise ArgumentError(f"{what}, but the classes allow at most {most}; lower it or clients", argument=key)


def natural(client_ids: ArrayLike, clients: int | None = None, *, seed: int) -> Parts:
    """Give every natural client its own samples, and return one sorted index array per client.

    Parameters
    ----------
    client_ids : (n,) numbers or strings
        The owner of each sample. Clients are numbered by ascending id.
    clients
        K, or None for one client per id. Fewer than ids: whole ids are merged, the largest first into the
        smallest client. More: the id with the largest pieces is repeatedly cut into one more piece, after its
        samples are shuffled.
    seed
        Seed of the run; it matters only if ids are split.

    Examples
    --------
    >>> [part.tolist() for part in natural(["b", "a", "b", "c"], seed=1)]
    [[1], [0, 2], [3]]
    >>> [part.tolist() for part in natural(["b", "a", "b", "c"], 2, seed=1)]
    [[0, 2], [1, 3]]
    """
    ids = np.asarray(client_ids)
    if ids.ndim != 1 or ids.size == 0:
        raise DataError(f"expected one id per sample, got shape {ids.shape}", argument="client_ids")
    seed = check_integer("seed", seed, 0)
    names, group = np.unique(ids, return_inverse=True)
    number = names.size if clients is None else check_integer("clients", clients, 1)
    if number > ids.size:
        raise ArgumentError(
            f"{number} clients need {number} samples, but there are only {ids.size}", argument="clients"
        )
    if number < names.size:
        return parts_of(_merge(np.bincount(group), number)[group], number)
    return parts_of(_split(group.astype(np.int64), number, seed), number)


def _merge(sizes: Ints, clients: int) -> Ints:
    """Return the client of every id: the largest id first, always to the smallest client so far."""
    owner = np.empty(sizes.size, np.int64)
    heap = [(0, k) for k in range(clients)]
    for i in np.argsort(-sizes, kind="stable"):
        size, k = heapq.heappop(heap)
        owner[i] = k
        heapq.heappush(heap, (size + int(sizes[i]), k))
    return owner


def _split(group: Ints, clients: int, seed: int) -> Ints:
    """Return the client of every sample if each id is cut into one or more pieces of nearly equal size."""
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


def apportion(sizes: Sequence[int], pieces: int, most: int) -> Ints:
    """Return the number of pieces of each group: one each, then always one more for the group with the largest pieces.

    No group gets more pieces than `most` or than it has samples; the caller ensures that `pieces` can be reached.
    Ties go to the earlier group.

    >>> apportion([90, 10, 20], 5, most=3).tolist()
    [3, 1, 1]
    """
    counts = np.ones(len(sizes), np.int64)
    heap = [(-float(size), group) for group, size in enumerate(sizes) if min(size, most) > 1]
    heapq.heapify(heap)
    for _ in range(pieces - len(sizes)):
        _, group = heapq.heappop(heap)
        counts[group] += 1
        if counts[group] < min(sizes[group], most):
            heapq.heappush(heap, (-sizes[group] / counts[group], group))
    return counts


def hold_out(parts: Sequence[Ints], share: float, *, seed: int) -> tuple[Parts, Parts]:
    """Split every client's samples into training and validation samples.

    The share is rounded to the nearest number of samples, and at least one sample stays for training. A client's split
    depends only on its own number and samples.

    Parameters
    ----------
    parts
        One index array per client.
    share
        Share of its samples that a client holds out, below 1.
    seed
        Seed of the run.

    Examples
    --------
    >>> train, validation = hold_out([np.arange(10), np.arange(10, 11)], 0.3, seed=1)
    >>> [part.size for part in train], [part.size for part in validation]
    ([7, 1], [3, 0])
    """
    seed = check_integer("seed", seed, 0)
    if check_fraction("share", share) == 1:
        raise ArgumentError("expected a fraction below 1, got 1; nothing would be left to train on", argument="share")
    train, validation = [], []
    for k, part in enumerate(parts):
        ids = np.sort(np.asarray(part, np.int64))
        number = min(int(share * ids.size + 0.5), max(ids.size - 1, 0))
        held = np.zeros(ids.size, bool)
        if number:
            held[stream(seed, "validation", client=k).choice(ids.size, number, replace=False)] = True
        train.append(ids[~held])
        validation.append(ids[held])
    return train, validation
