"""A stratified split into training and test samples."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedrela.data.checks import check_whole
from fedrela.errors import ArgumentError
from fedrela.streams import stream


def held_out_count(samples: int, share: float) -> int:
    """How many of a class's `samples` go to the test set: the share, halves rounded up.

    A class keeps at least one training sample, and has at least one test sample where it has two.

    >>> [held_out_count(n, 0.2) for n in (1, 2, 10, 13, 178)]
    [0, 1, 2, 3, 36]
    """
    return min(max(math.floor(samples * share + 0.5), 1), samples - 1)


def stratified(
    labels: NDArray[np.int64], share: float, seed: int, purpose: str = "test split"
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ascending indices of training and test samples, `share` of every class in the test set.

    >>> train, test = stratified(np.array([0, 0, 0, 0, 1, 1]), 0.25, seed=0)
    >>> len(train), len(test)
    (4, 2)
    """
    number = isinstance(share, int | float | np.number) and not isinstance(share, bool)
    if not number or not 0 < share < 1:
        raise ArgumentError(f"test_share: expected a fraction between 0 and 1, got {share!r}")
    generator = stream(check_whole("seed", seed, 0), purpose)
    held_out = np.zeros(len(labels), np.bool_)
    for c in np.unique(labels):
        members = np.flatnonzero(labels == c)
        held_out[generator.permutation(members)[: held_out_count(len(members), share)]] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)
