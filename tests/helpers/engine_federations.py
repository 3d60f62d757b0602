"""Small made federations, and runs of them: a few clients, a few samples, tiny models. Workers import this module."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from fedrela.algorithms.base import Algorithm
from fedrela.algorithms.fedavg import FedAvg
from fedrela.engine.executors import Executor
from fedrela.engine.problem import Plan, Problem
from fedrela.engine.round import next_round
from fedrela.engine.run import Run
from fedrela.engine.run_options import RelabelPlan, TrainOptions
from fedrela.metrics import Groups
from fedrela.models import Classifier, build
from fedrela.models.inputs import Scaling
from fedrela.records import Shard

CLASSES, COLUMNS, SIDE = 4, 5, 4
COUNTS = (26, 20, 12, 5)  # samples of each class at the largest client: the last one is rare
GROUPS = Groups(("majority", "minority"), np.array([0, 0, 1, 1]), "counts")


def table_problem(clients: int = 5, seed: int = 3, validation: int = 0, auxiliary: int = 0) -> Problem:
    """Blobs of `CLASSES` classes; client k has fewer samples than client k - 1, and odd ones lack the rarest class."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 1.2, (CLASSES, COLUMNS))
    labels, shards, start = [], [], 0
    for client in range(clients):
        counts = np.maximum(np.array(COUNTS) - 2 * client, 1)
        counts[3] *= client % 2 == 0
        labels.append(rng.permutation(np.repeat(np.arange(CLASSES), counts)))
        ids = np.arange(start, start + counts.sum())
        shards.append(Shard(client, ids[validation:], ids[:validation]))
        start += ids.size
    labels.append(np.repeat(np.arange(CLASSES), auxiliary))
    y = np.concatenate(labels).astype(np.int64)
    y_test = np.repeat(np.arange(CLASSES), 15)
    x, x_test = (centres[each] + rng.normal(0, 1, (each.size, COLUMNS)) for each in (y, y_test))
    ids = np.arange(start, y.size) if auxiliary else None
    return Problem(
        x.astype("f4"), y, x_test.astype("f4"), y_test, shards, CLASSES, GROUPS, Scaling(), auxiliary=ids
    )  # fmt: skip


def image_problem(clients: int = 4, seed: int = 3) -> Problem:
    """The same blobs as pictures of one channel."""
    table = table_problem(clients, seed)
    pixels = np.random.default_rng(seed).normal(0, 1, (COLUMNS, SIDE * SIDE))

    def draw(x: np.ndarray) -> np.ndarray:
        return np.clip(128 + 20 * (x @ pixels), 0, 255).astype(np.uint8).reshape(-1, 1, SIDE, SIDE)

    x = draw(table.x_train)
    return Problem(
        x, table.y_train, draw(table.x_test), table.y_test, table.shards, CLASSES, GROUPS, Scaling.fit(x)
    )  # fmt: skip


def tiny_mlp(problem: Problem) -> partial[Any]:
    return partial(build, "mlp", problem.input_shape, CLASSES, seed=7, hidden=[6])


def normed(inputs: int = COLUMNS) -> Classifier:
    """A model with BatchNorm that counts its batches, drawn from torch's own generator as a user's would be."""
    layers = nn.Flatten(), nn.Linear(inputs, 6), nn.BatchNorm1d(6, momentum=None), nn.ReLU()
    return Classifier(nn.Sequential(*layers), 6, CLASSES)


def dropping() -> Classifier:
    """A model that draws from torch's own generator in training."""
    return Classifier(nn.Sequential(nn.Linear(COLUMNS, 8), nn.ReLU(), nn.Dropout(0.4)), 8, CLASSES)


def doubled() -> Classifier:
    """A model in double precision."""
    return build("mlp", (COLUMNS,), CLASSES, seed=7, hidden=[6], dtype=torch.float64)


@dataclass(frozen=True)
class Made:
    """A run as its parts; what is not said is FedAvg with FedReLa at the second of four rounds."""

    algorithm: Any = field(default_factory=FedAvg)
    problem: Problem = field(default_factory=table_problem)
    make: Any = None
    train: dict[str, Any] = field(default_factory=dict)
    relabel: dict[str, Any] = field(default_factory=dict)
    seed: int = 11

    def begin(self, executor: Executor) -> Run:
        train = {"rounds": 4, "epochs": 2, "batch_size": 8} | self.train
        relabel = {"start": 2, "tau": 0.2} | self.relabel
        make = self.make or tiny_mlp(self.problem)
        return Run(
            self.problem, Plan(self.seed, TrainOptions(**train), RelabelPlan(**relabel), self.algorithm, make), executor
        )  # fmt: skip


def made_of(algorithm: Algorithm, **parts: Any) -> Made:
    """A run of an algorithm, with the balanced set that its server asks for."""
    return Made(algorithm=algorithm, problem=table_problem(auxiliary=algorithm.auxiliary), **parts)


def snapshot(run: Run) -> dict[str, bytes]:
    """Return everything of a run that a next round depends on, to be compared to the bit."""
    state = run.state
    facts = {
        "round": str(state.round).encode(),
        "weights": state.weights.tobytes(),
        "has_state": state.has_state.tobytes(),
        "labels": run.current_labels.tobytes(),
        "bookkeeping": repr([state.relabelled, state.moved, state.relabel_metrics, state.skipped]).encode(),
    }
    facts |= {f"server {name}": array.tobytes() for name, array in state.server.items()}
    for client in np.flatnonzero(state.has_state).tolist():
        facts |= {f"{client} keeps {n}": a.tobytes() for n, a in run.memory["client_state"].row(client).items()}
    return facts


def carry_out(made: Made, executor: Executor, rounds: int | None = None) -> tuple[list[dict[str, bytes]], list[Any]]:
    """Carry out a made run and return its snapshot after each round, and the records."""
    run = made.begin(executor)
    assert run.note == ""
    try:
        snapshots, records = [], []
        for _ in range(rounds or run.plan.train.rounds):
            records.append(next_round(run).record)
            snapshots.append(snapshot(run))
        return snapshots, records
    finally:
        run.close()


def weights_of(made: Made, executor: Executor, rounds: int | None = None) -> list[bytes]:
    """Return the shared arrays after each round."""
    return [each["weights"] for each in carry_out(made, executor, rounds)[0]]
