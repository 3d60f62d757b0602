"""Executors and clients whose results come in other orders. Workers import this module."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from typing import Any

import numpy as np

from fedrela.algorithms.fedavg import FedAvg
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.tasks import TaskResult


class Shuffled(SerialExecutor):
    """Carries out tasks in a random order, and reports them in another one."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def run(self, tasks: Iterable[Any], deadline: float | None = None) -> Generator[TaskResult, None, None]:
        given = list(tasks)
        order = self.rng.permutation(len(given))
        done = [one._replace(position=int(order[one.position])) for one in super().run([given[k] for k in order])]
        yield from (done[k] for k in self.rng.permutation(len(done)))


class Waiting(FedAvg):
    """FedAvg whose clients take their time, each another one in each round; in records it is FedAvg."""

    label = FedAvg.label

    def client(self, context):
        time.sleep(0.01 * ((5 * context.client + 3 * context.round) % 4))
        return super().client(context)
