"""What a run learns from: samples, their clients, a test set. Made by the experiment; the engine reads no data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.metrics import Groups
from fedrela.models.inputs import Scaling
from fedrela.records import Shard


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of a run.

    Attributes
    ----------
    x_train, y_train
        Stored samples and their original labels; the shards index them.
    x_test, y_test
        The test set.
    shards
        One a client.
    num_classes
        C.
    groups
        In which accuracy is reported.
    scaling
        How stored samples become inputs of a model.
    class_names
        For people.
    auxiliary
        Indices of training samples that an algorithm's server asked for, from before imbalance.
    """

    x_train: NDArray[Any]
    y_train: NDArray[np.int64]
    x_test: NDArray[Any]
    y_test: NDArray[np.int64]
    shards: Sequence[Shard]
    num_classes: int
    groups: Groups
    scaling: Scaling
    class_names: tuple[str, ...] = ()
    auxiliary: NDArray[np.int64] | None = None

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return tuple(self.x_train.shape[1:])

    @property
    def is_image(self) -> bool:
        """Whether samples are images, which can be augmented."""
        return self.x_train.ndim == 4

    @property
    def largest(self) -> int:
        """Samples of the largest client."""
        return max((len(shard.train) for shard in self.shards), default=0)
