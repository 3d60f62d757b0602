"""The data and the plan of a run, and the arrays that follow from both.

The experiment builds data and plan; the engine knows neither data sets nor configuration files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.algorithms.base import Algorithm, ArraySpec, Sizes
from fedrela.algorithms.local import Local
from fedrela.core import Ledger
from fedrela.engine.run_options import RelabelPlan, TrainOptions
from fedrela.metrics import Groups
from fedrela.models.flat_model import FlatModel
from fedrela.models.inputs import Scaling
from fedrela.models.layout import Layout, ParameterSplit
from fedrela.records import Shard

STATE = "client_state."  # prefix of the names of a client's new state in a row of uploads


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of a run."""

    x_train: NDArray[Any]  # samples as they are stored; the shards index them
    y_train: NDArray[np.int64]  # their original labels
    x_test: NDArray[Any]
    y_test: NDArray[np.int64]
    shards: Sequence[Shard]  # one per client
    num_classes: int
    groups: Groups  # groups of classes in which accuracy is reported
    scaling: Scaling  # how stored samples become inputs of a model
    class_names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()  # names of the training samples, if they have any
    auxiliary: NDArray[np.int64] | None = None  # training samples, from before imbalance, for a server that needs them
    private: bool = False  # whether remote clients have their own samples, which are not in the shards here
    largest: int = 0  # samples of the largest client, if the shards do not show it
    held_by_clients: str = ""  # the evaluation set that clients hold and score: test, validation, or none

    def named(self, client: int, ledger: Ledger) -> Ledger:
        """Return a client's ledger with the names of its samples, if they have any."""
        return replace(ledger, ids=tuple(self.ids[row] for row in self.shards[client].train)) if self.ids else ledger

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return tuple(self.x_train.shape[1:])

    @property
    def is_image(self) -> bool:
        """Whether samples are images, which can be augmented."""
        return self.x_train.ndim == 4 and self.x_train.dtype == np.uint8


@dataclass(frozen=True)
class Plan:
    """Everything that a run's result depends on, besides its data."""

    seed: int
    train: TrainOptions
    relabel: RelabelPlan
    algorithm: Algorithm
    make: Callable[[], nn.Module]  # builds the model, to which the algorithm may add
    device: str = "cpu"

    def local(self, round: int) -> Local:
        """Return how clients train in a round."""
        train = self.train
        lr = train.lr * train.factor(round) * self.relabel.scale(round, train.rounds)
        step = {"momentum": train.momentum, "weight_decay": train.weight_decay, "clip": train.clip}
        return Local(lr, train.epochs, train.batch_size, loss=train.loss, precision=train.precision, **step)


@dataclass(frozen=True)
class RunArrays:
    """The arrays that server and clients exchange and keep."""

    sizes: Sizes  # what the algorithm's shapes depend on
    layout: Layout  # of the shared arrays in the vector of weights
    upload: dict[str, ArraySpec]  # what a client sends after training
    client_state: dict[str, ArraySpec]  # what it keeps: the algorithm's state, private arrays, collected logits

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
            largest=max([problem.largest, *(len(shard.train) for shard in problem.shards)]),
        )
        state = {f"state.{name}": spec for name, spec in plan.algorithm.keeps(sizes).items()}
        if private.size:
            state["private"] = ArraySpec((private.size,), private.dtype)
        if plan.relabel.enabled and plan.relabel.collected:
            state["scores"] = ArraySpec((sizes.largest, sizes.classes))
        weights = ArraySpec((layout.size,), layout.dtype)
        return cls(sizes, layout, {"weights": weights, **plan.algorithm.sends(sizes)}, state)

    def upload_row(self, with_state: bool) -> dict[str, ArraySpec]:
        """Return what a client writes to its row of shared memory: its upload, and its new state."""
        state = {f"{STATE}{name}": spec for name, spec in self.client_state.items()} if with_state else {}
        return self.upload | state
