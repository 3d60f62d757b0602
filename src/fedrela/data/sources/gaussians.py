"""Made data whose best classifier is known: one Gaussian a class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrela.data.sources.base import Source
from fedrela.errors import ArgumentError
from fedrela.streams import stream


def load(
    samples: int | Sequence[int] = 500,
    test_samples: int | Sequence[int] = 200,
    *,
    classes: int = 2,
    dimension: int = 2,
    separation: float = 2.0,
    seed: int = 0,
) -> Source:
    """Draw `samples` points a class from Gaussians of unit covariance around the corners of a regular simplex.

    All means lie `separation` apart. With equal class counts the Bayes classifier takes the nearest mean. For two
    classes the means are ``-separation / 2`` and ``+separation / 2`` on the first axis, the Bayes boundary is the
    plane ``x[0] = log(n_0 / n_1) / separation`` (0 for equal counts; it moves towards the rarer class), and the error
    at equal counts is ``Phi(-separation / 2)``: 0.1587 for the default.

    Parameters
    ----------
    samples, test_samples
        Training and test samples of every class, or one number a class.
    classes, dimension
        C, and the number of features, at least C - 1; features beyond C - 1 are noise.
    separation
        Distance between any two means in standard deviations.
    seed
        Seed of the draws; training and test draws are independent.

    Examples
    --------
    >>> load([100, 10], 50).y_train.sum()
    np.int64(10)
    """
    centres = means(classes, dimension, separation)
    x_train, y_train = _draw(centres, samples, seed, "train")
    x_test, y_test = _draw(centres, test_samples, seed, "test")
    names = tuple(f"class {c}" for c in range(classes))
    columns = tuple(f"x{j}" for j in range(dimension))
    return Source("gaussians", x_train, y_train, x_test, y_test, names, None, columns, np.ones(dimension, np.bool_))


def means(classes: int, dimension: int, separation: float) -> NDArray[np.float64]:
    """Return the corners of a regular simplex around the origin with that edge, ``(classes, dimension)``.

    >>> means(2, 1, 3.0).ravel().tolist()
    [-1.5, 1.5]
    """
    if classes < 2 or dimension < classes - 1 or not np.isfinite(separation) or separation < 0:
        needed = "classes >= 2, dimension >= classes - 1 and a finite separation >= 0 are needed"
        raise ArgumentError(f"gaussians: {needed}, got {classes}, {dimension} and {separation}")
    corners = np.zeros((classes, dimension))
    for k in range(1, classes):  # axis k - 1 parts class k from the ones before it
        corners[:k, k - 1] = -1 / (k + 1)
        corners[k, k - 1] = k / (k + 1)
        corners[:, k - 1] *= separation * np.sqrt((k + 1) / (2 * k))
    return corners


def _draw(
    centres: NDArray[np.float64], count: int | Sequence[int], seed: int, part: str
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    counts = [count] * len(centres) if isinstance(count, int) else [int(n) for n in count]
    if len(counts) != len(centres) or min(counts) < 1:
        raise ArgumentError(f"gaussians: {part}: a count >= 1, or one a class, is needed, got {count!r}")
    y = np.repeat(np.arange(len(centres)), counts)
    noise = stream(seed, f"gaussians {part}").standard_normal((len(y), centres.shape[1]))
    return (centres[y] + noise).astype(np.float32), y
