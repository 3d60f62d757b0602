"""Frozen records that cross layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Shard:
    """One client's samples, as sorted indices into the training arrays of its data set.

    Attributes
    ----------
    client
        Number of the client, from 0.
    train
        What it trains on.
    validation
        What it holds back, with the original labels, and never trains on.
    """

    client: int
    train: NDArray[np.int64]
    validation: NDArray[np.int64]
