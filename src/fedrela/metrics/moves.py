"""Histograms of z-scores, which add up over clients."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError

# 49 bins of width 1/4 around -6, -5.75, ..., 6; these numbers are exact, and z = 0 (no spread) is the centre of a bin.
Z_EDGES = tuple(edge / 8 for edge in range(-49, 50, 2))


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
