"""The weighted mean of uploads, the same to the bit in any order of arrival.

The sum is taken in float64 over clients in the order of their ids, in pieces that stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError
from fedrela.records import Upload

PIECE = 16384  # values
WHOLE = slice(None)


def sample_weights(uploads: Sequence[Upload]) -> NDArray[np.float64]:
    """Return p_i = n_i / n over these clients.

    >>> sample_weights([Upload(0, 1, 30, {}), Upload(3, 1, 10, {})]).tolist()
    [0.75, 0.25]
    """
    samples = np.array([upload.samples for upload in uploads], np.float64)
    return np.asarray(samples / samples.sum())


def equal_weights(uploads: Sequence[Upload]) -> NDArray[np.float64]:
    """Return 1 / |S| for each of these clients."""
    return np.full(len(uploads), 1 / len(uploads))


def weighted_sum(uploads: Sequence[Upload], name: str, weights: ArrayLike, part: slice = WHOLE) -> NDArray[np.float64]:
    """Return sum_i w_i a_i of one array in float64; with weights that sum to 1 it is their mean.

    Uploads are in ascending order of the clients' ids, with one weight each; `part` selects a part of a vector, such as
    its trained values.

    Examples
    --------
    >>> sent = [Upload(0, 1, 3, {"a": np.ones(2, "f4")}), Upload(1, 1, 1, {"a": np.zeros(2, "f4")})]
    >>> weighted_sum(sent, "a", sample_weights(sent)).tolist()
    [0.75, 0.75]
    """
    if not uploads or any(a.client >= b.client for a, b in pairwise(uploads)):
        raise ArgumentError("uploads: expected at least one, in ascending order of the clients' ids")
    arrays = [upload.arrays[name][part] if part != WHOLE else upload.arrays[name] for upload in uploads]
    flat = [array.reshape(-1) for array in arrays]
    factors = np.asarray(weights, np.float64)
    result = np.zeros(flat[0].size)
    for start in range(0, result.size, PIECE):
        piece = result[start : start + PIECE]
        product = np.empty(piece.size)
        for values, factor in zip(flat, factors, strict=True):
            product[...] = values[start : start + PIECE]
            product *= factor
            piece += product
    return result.reshape(arrays[0].shape)
