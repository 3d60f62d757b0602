"""Generated data with a known Bayes classifier: one Gaussian per class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_integer
from fedrela.data.sources.base import Source, SourceSpec
from fedrela.errors import ArgumentError
from fedrela.options import Option, checked
from fedrela.streams import stream

SEPARATION = Option("separation", float, 2.0, "distance between two means", ge=0, le=1e6)
MOST_FEATURES = 1_000_000
MOST_VALUES = 100_000_000  # of the training or the test set; two gigabytes while they are drawn


def load(
    samples: int | Sequence[int] = 500,
    test_samples: int | Sequence[int] = 200,
    *,
    classes: int = 2,
    dimension: int = 2,
    separation: float = 2.0,
    seed: int = 0,
) -> Source:
    """Draw `samples` points per class from Gaussians of unit covariance around the corners of a regular simplex.

    All means lie `separation` apart. With equal class counts the Bayes classifier takes the nearest mean. For two
    classes the means are ``-separation / 2`` and ``+separation / 2`` on the first axis, the Bayes boundary is the
    plane ``x[0] = log(n_0 / n_1) / separation`` (0 for equal counts; it moves towards the rarer class), and the error
    at equal counts is ``Phi(-separation / 2)``: 0.1587 for the default.

    `samples` and `test_samples` may be one number per class. `dimension` is the number of features, from C - 1 to
    1,000,000; those beyond C - 1 are noise. Training and test set have at most 100,000,000 values each, samples times
    features. Their draws are independent.

    >>> load([100, 10], 50).y_train.sum()
    np.int64(10)
    """
    seed = check_integer("seed", seed, 0)
    centres = means(classes, dimension, separation)
    train, test = _counts(samples, centres, "samples"), _counts(test_samples, centres, "test_samples")
    x_train, y_train = _draw(centres, train, seed, "train")
    x_test, y_test = _draw(centres, test, seed, "test")
    names = tuple(f"class {c}" for c in range(classes))
    columns = tuple(f"x{j}" for j in range(dimension))
    return Source("gaussians", x_train, y_train, x_test, y_test, names, None, columns, np.ones(dimension, np.bool_))


def means(classes: int, dimension: int, separation: float) -> NDArray[np.float64]:
    """Return the corners of a regular simplex around the origin with that edge, ``(classes, dimension)``.

    >>> means(2, 1, 3.0).ravel().tolist()
    [-1.5, 1.5]
    """
    classes, dimension = check_integer("classes", classes, 2), check_integer("dimension", dimension, 1)
    if not classes - 1 <= dimension <= MOST_FEATURES:
        what = f"expected from classes - 1 to {MOST_FEATURES:,}, got {dimension} for {classes} classes"
        raise ArgumentError(what, argument="dimension")
    _check_size("classes", classes, dimension)
    separation = checked(SEPARATION, separation)
    corners = np.zeros((classes, dimension))
    for k in range(1, classes):  # axis k - 1 separates class k from those before it
        corners[:k, k - 1] = -1 / (k + 1)
        corners[k, k - 1] = k / (k + 1)
        corners[:, k - 1] *= separation * np.sqrt((k + 1) / (2 * k))
    return corners


def _check_size(option: str, rows: int, dimension: int) -> None:
    if rows * dimension > MOST_VALUES:
        limit = f"expected at most {MOST_VALUES:,} values"
        raise ArgumentError(f"{limit}, got {rows:,} times {dimension:,} features; lower one of them", argument=option)


def _counts(count: int | Sequence[int], centres: NDArray[np.float64], option: str) -> list[int]:
    classes, dimension = centres.shape
    is_list = isinstance(count, list | tuple) or (isinstance(count, np.ndarray) and count.ndim == 1)
    counts = list(cast(Sequence[int], count)) if is_list else [cast(int, count)] * classes
    if len(counts) != classes:
        raise ArgumentError(f"expected one count, or {classes}, one per class, got {len(counts)}", argument=option)
    counts = [check_integer(option, n, 1) for n in counts]
    _check_size(option, sum(counts), dimension)
    return counts


def _draw(
    centres: NDArray[np.float64], counts: list[int], seed: int, part: str
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    y = np.repeat(np.arange(len(centres)), counts)
    points = stream(seed, f"gaussians {part}").standard_normal((len(y), centres.shape[1]))
    points += centres[y]
    return points.astype(np.float32), y


SPEC = SourceSpec(
    load,
    "Gaussians",
    "points drawn from one Gaussian per class, with a known Bayes boundary",
    "none: it is generated",
)
