"""What a run learns from and how: its data, its plan, and the arrays that follow from both.

The experiment makes data and plan; the engine knows no data set and no configuration file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.algorithms.base import Algorithm, ArraySpec, Sizes
from fedrela.algorithms.local import Local
from fedrela.engine.options import RelabelPlan, TrainOptions
from fedrela.metrics import Groups
from fedrela.models.arrays import FlatModel
from fedrela.models.inputs import Scaling
from fedrela.models.layout import Layout, ParameterSplit
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
        One per client.
    num_classes
        C.
    groups
        Groups of classes in which accuracy is reported.
    scaling
        How stored samples become inputs of a model.
    class_names
        As reports show them.
    auxiliary
        Indices of training samples that an algorithm's server asks for, from before imbalance.
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


@dataclass(frozen=True)
class Plan:
    """Everything that a run's result depends on, beside its data.

    Attributes
    ----------
    seed, train, relabel, algorithm
        How clients train and re-label, and the baseline algorithm.
    make
        Makes the model; the algorithm may add to it.
    device
        Where models are trained.
    """

    seed: int
    train: TrainOptions
    relabel: RelabelPlan
    algorithm: Algorithm
    make: Callable[[], nn.Module]
    device: str = "cpu"

    def local(self, round: int) -> Local:
        """Return how clients train in a round."""
        train = self.train
        return Local(
            lr=train.lr * train.factor(round) * self.relabel.scale(round, train.rounds),
            epochs=train.epochs,
            batch_size=train.batch_size,
            momentum=train.momentum,
            weight_decay=train.weight_decay,
            clip=train.clip,
            loss=train.loss,
        )


STATE = "client_state."  # before the names of a client's new state in a row of uploads


@dataclass(frozen=True)
class RunArrays:
    """The arrays that server and clients exchange and keep.

    Attributes
    ----------
    sizes
        What the algorithm's shapes depend on.
    layout
        Of the shared arrays in the vector of weights.
    upload
        What a client sends after training.
    client_state
        What a client keeps between rounds: the algorithm's state, private arrays, collected logits.
    """

    sizes: Sizes
    layout: Layout
    upload: dict[str, ArraySpec]
    client_state: dict[str, ArraySpec]

    @classmethod
    def of(cls, problem: Problem, plan: Plan, model: FlatModel) -> RunArrays:
        """Return the arrays of a run that trains this model."""
        split = ParameterSplit.of(model.layout, plan.algorithm.private)
        layout, private = split.shared.layout, split.private.layout
        sizes = Sizes.of(
            model,
            layout,
            classes=problem.num_classes,
            clients=len(problem.shards),
            inputs=problem.input_shape,
            largest=problem.largest,
        )
        state = {f"state.{name}": spec for name, spec in plan.algorithm.keeps(sizes).items()}
        if private.size:
            state["private"] = ArraySpec((private.size,), private.dtype)
        if plan.relabel.enabled and plan.relabel.collected:
            state["scores"] = ArraySpec((sizes.largest, sizes.classes))
        weights = ArraySpec((layout.size,), layout.dtype)
        return cls(sizes, layout, {"weights": weights, **plan.algorithm.sends(sizes)}, state)

    def upload_row(self, with_state: bool) -> dict[str, ArraySpec]:
        """Return what a client leaves in its row of shared memory: its upload, and its new state."""
        state = {f"{STATE}{name}": spec for name, spec in self.client_state.items()} if with_state else {}
        return self.upload | state
