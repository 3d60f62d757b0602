"""Standardising the numbers of a table, with statistics that clients compute themselves.

A client knows its own samples only. From them it has a count, a mean and a sum of squared deviations for every column;
these three can be merged over clients to those of all samples without any sample leaving its client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.records import Shard

MODES = ("pooled", "local", "none")


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean and sum of squared deviations of some samples, per column."""

    count: int
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, x: NDArray[Any]) -> Moments:
        """Compute them from samples ``(n, columns)``.

        >>> Moments.of(np.array([[1.0], [3.0]])).deviation
        array([1.])
        """
        values = x.astype(np.float64)
        mean = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
        return cls(len(values), mean, np.square(values - mean).sum(axis=0))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of samples together."""
        count = self.count + other.count
        if count == 0:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / count)
        squares = self.squares + other.squares + np.square(step) * (self.count * other.count / count)
        return Moments(count, mean, squares)

    @property
    def deviation(self) -> NDArray[np.float64]:
        """Standard deviation per column, and 1 for a column that does not vary (beyond rounding)."""
        sigma = np.sqrt(self.squares / max(self.count, 1))
        return np.where(sigma > 1e-12 * np.abs(self.mean), sigma, 1.0)

    def standardize(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Return ``(x - mean) / deviation`` as float32."""
        return ((x - self.mean) / self.deviation).astype(np.float32)


def pooled(moments: Iterable[Moments], columns: int) -> Moments:
    """Merge the clients' moments in their order."""
    return reduce(Moments.merge, moments, Moments(0, np.zeros(columns), np.zeros(columns)))


def standardize_table(
    x_train: NDArray[Any], x_test: NDArray[Any], numeric: NDArray[np.bool_], shards: Sequence[Shard], mode: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Standardise the numeric columns of a table, with statistics of the clients' training samples alone.

    `mode` "pooled": with the merged statistics of all clients. "local": every client with its own, the test set with
    the merged ones. "none": nothing is done.
    """
    if mode == "none" or not numeric.any():
        return x_train, x_test
    new_train, new_test = x_train.copy(), x_test.copy()
    own = [Moments.of(x_train[np.ix_(shard.train, numeric)]) for shard in shards]
    everyone = pooled(own, int(numeric.sum()))
    for shard, moments in zip(shards, own, strict=True):
        rows = np.ix_(np.concatenate([shard.train, shard.validation]), numeric)
        new_train[rows] = (moments if mode == "local" else everyone).standardize(x_train[rows])
    new_test[:, numeric] = everyone.standardize(x_test[:, numeric])
    return new_train, new_test
