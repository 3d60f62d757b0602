"""A hundred clients with a handful of samples each and a linear model, and the same run without those who are lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from fedrela.algorithms.base import Algorithm
from fedrela.engine.executors import Executor
from fedrela.engine.problem import Plan, Problem
from fedrela.engine.round import next_round
from fedrela.engine.round_result import RoundResult
from fedrela.engine.run import Run
from fedrela.engine.run_options import RelabelPlan, TrainOptions
from fedrela.metrics import Groups
from fedrela.models import build
from fedrela.models.inputs import Scaling
from fedrela.records import Shard
from helpers.engine_federations import snapshot

CLIENTS, CLASSES, COLUMNS = 100, 3, 4
ROUNDS = 2


def problem(clients: int = CLIENTS) -> Problem:
    """Return blobs of three classes, the last one rare; clients have three to eight samples."""
    rng = np.random.default_rng(17)
    centres = rng.normal(0, 1.5, (CLASSES, COLUMNS))
    ends = np.cumsum(rng.integers(3, 9, clients))
    y = rng.choice(CLASSES, ends[-1], p=(0.55, 0.33, 0.12)).astype(np.int64)
    y_test = np.repeat(np.arange(CLASSES), 10)
    x, x_test = (centres[each] + rng.normal(0, 1, (each.size, COLUMNS)) for each in (y, y_test))
    shards = [Shard(k, ids, ids[:0]) for k, ids in enumerate(np.split(np.arange(ends[-1]), ends[:-1]))]
    groups = Groups(("majority", "minority"), np.array([0, 0, 1]), "counts")
    return Problem(x.astype("f4"), y, x_test.astype("f4"), y_test, shards, CLASSES, groups, Scaling())


@dataclass(frozen=True, kw_only=True)
class Present(TrainOptions):
    """A plan in which some clients are not chosen in some rounds."""

    absent: Mapping[int, Any] = field(default_factory=dict)

    def chosen(self, seed: int, round: int, clients: int) -> np.ndarray:
        everybody = super().chosen(seed, round, clients)
        return np.setdiff1d(everybody, np.fromiter(self.absent.get(round, ()), np.int64))


def begin(
    problem: Problem, algorithm: Algorithm, executor: Executor, relabel: int = 2, absent: Any = None, **train: Any
) -> Run:
    """Return a run that re-labels in one round; `absent` are clients that are never chosen, by round."""
    options = {"rounds": ROUNDS, "epochs": 1, "batch_size": 8} | train
    make = partial(build, "logistic", problem.input_shape, problem.num_classes, seed=3)
    plan = Present(**options, absent=absent or {})
    return Run(problem, Plan(23, plan, RelabelPlan(start=relabel, tau=0.3), algorithm, make), executor)


def rounds(run: Run) -> Iterator[tuple[RoundResult, dict[str, bytes]]]:
    """Carry out a run and give each round with the state after it."""
    assert run.note == ""
    try:
        for _ in range(run.plan.train.rounds):
            done = next_round(run)
            yield done, snapshot(run)
    finally:
        run.close()


def by_hand(run: Run, clients: list[int]) -> bytes:
    """Return x = sum_k (n_k / n) y_k over some of the clients that a round asked, from what lies in their rows."""
    sizes = np.array([len(run.problem.shards[client].train) for client in clients], float)
    mean = np.zeros(run.state.weights.size)
    for client, share in zip(clients, sizes / sizes.sum(), strict=True):
        mean += share * run.memory["uploads"].row(client)["weights"].astype(float)
    return mean.astype(run.arrays.layout.dtype).tobytes()
