"""The even split, and the validation samples a client keeps apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.core.checks import check_fraction
from fedrela.data.checks import check_clients, check_labels, check_whole
from fedrela.data.partition.record import Parts, parts_of
from fedrela.errors import ArgumentError
from fedrela.streams import stream


def iid(labels: ArrayLike, clients: int, *, seed: int, min_size: int = 1) -> Parts:
    """Shuffle all samples and give every client the same number, within one.

    `min_size` 0 allows more clients than samples, some of them empty.

    >>> [part.size for part in iid([0, 1, 0, 1, 0], 2, seed=1)]
    [3, 2]
    """
    y, seed = check_labels(labels), check_whole("seed", seed, 0)
    clients = check_clients(y.size, clients, min_size)
    owner = np.arange(y.size) * clients // max(y.size, 1)
    return parts_of(stream(seed, "partition").permutation(owner), clients)


def hold_out(parts: Sequence[NDArray[np.int64]], share: float, *, seed: int) -> tuple[Parts, Parts]:
    """Split every client's samples into training and validation samples.

    The share is rounded to the nearest integer of samples; one sample always stays for training. The choice
    of a client depends on its own number and samples only.

    Examples
    --------
    >>> train, validation = hold_out([np.arange(10), np.arange(10, 11)], 0.3, seed=1)
    >>> [part.size for part in train], [part.size for part in validation]
    ([7, 1], [3, 0])
    """
    seed = check_whole("seed", seed, 0)
    if check_fraction("share", share) == 1:
        raise ArgumentError("share: a fraction below 1 is needed, nothing would be left to train on")
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
