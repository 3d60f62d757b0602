"""The effect of re-labelling, as counts that add up over clients."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError
from fedrela.metrics.accuracy import class_ids

# 49 bins of width 1/4 around -6, -5.75, ..., 6; these numbers are exact, and z = 0 (no spread) is the centre of a bin.
Z_EDGES = tuple(edge / 8 for edge in range(-49, 50, 2))


def flow(old: ArrayLike, new: ArrayLike, num_classes: int) -> NDArray[np.int64]:
    """Count the moves from each class (row) to each other class (column).

    Unchanged labels are not counted, so labels of all samples give the same as those of the moved ones.

    Parameters
    ----------
    old, new : (n,) integers from 0 to C - 1
        The labels before and after.
    num_classes
        C.

    Examples
    --------
    >>> flow([0, 0, 0, 1], [1, 1, 0, 1], 2).tolist()
    [[0, 2], [0, 0]]
    """
    a, b = _pair(old, new, num_classes)
    moves = np.bincount(a * num_classes + b, minlength=num_classes**2).reshape(num_classes, num_classes)
    np.fill_diagonal(moves, 0)
    return moves


def changed_counts(before: ArrayLike, after: ArrayLike, num_classes: int) -> NDArray[np.int64]:
    """Count the samples of each class by the labels before (first row) and after (second row).

    Parameters
    ----------
    before, after : (n,) integers from 0 to C - 1
        The labels.
    num_classes
        C.

    Examples
    --------
    >>> changed_counts([0, 0, 0, 1], [1, 1, 0, 1], 2).tolist()
    [[3, 1], [1, 3]]
    """
    return np.stack([np.bincount(ids, minlength=num_classes) for ids in _pair(before, after, num_classes)])


def z_histogram(z: ArrayLike, *, by_row: bool = False) -> NDArray[np.int64]:
    """Count scores between `Z_EDGES`; histograms add up.

    Parameters
    ----------
    z : numbers, of any shape
        Infinite ones are counted, NaN is an error.
    by_row
        Count each row of a table separately.

    Returns
    -------
    (51,) counts, or (rows, 51) of them
        Bin i + 1 holds ``Z_EDGES[i] <= z < Z_EDGES[i + 1]``; the first bin holds smaller values, the last larger ones.

    Examples
    --------
    >>> z_histogram([-0.5, 0.0, 0.1, 7.0])[[23, 25, 50]].tolist()
    [1, 2, 1]
    """
    scores = np.asarray(z, np.float64).ravel()
    if np.isnan(scores).any():
        raise ArgumentError(f"z: expected numbers, got NaN at index {int(np.argmax(np.isnan(scores)))}")
    bins, rows = len(Z_EDGES) + 1, len(np.asarray(z)) if by_row else 1
    bin_ids = np.searchsorted(Z_EDGES, scores, side="right").reshape(rows, -1) + bins * np.arange(rows)[:, np.newaxis]
    counts = np.bincount(bin_ids.ravel(), minlength=rows * bins)
    return counts.reshape(rows, bins) if by_row else counts


def _pair(before: ArrayLike, after: ArrayLike, num_classes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    a, b = class_ids("labels before", before, num_classes), class_ids("labels after", after, num_classes)
    if a.size != b.size:
        raise ArgumentError(f"labels before and after: expected the same length, got {a.size} and {b.size}")
    return a, b
