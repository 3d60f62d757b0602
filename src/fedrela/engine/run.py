"""A run in progress: its data, plan and executor, and the server's state, which changes from round to round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.engine.client import ClientRunner
from fedrela.engine.executors import Executor, load_or_stay
from fedrela.engine.problem import Plan, Problem
from fedrela.engine.shared_memory import SharedMemory
from fedrela.models.runtime import seeded


@dataclass
class ServerState:
    """What changes from round to round, besides the current labels and the clients' states."""

    round: int  # the last one that is done, 0 before the first
    weights: NDArray[Any]  # the shared arrays, one vector
    server: dict[str, NDArray[Any]]  # what the algorithm's server keeps
    has_state: NDArray[np.bool_]  # which clients have a state from an earlier round
    relabelled: dict[int, int] = field(default_factory=dict)  # in which round each client re-labelled last
    moved: dict[int, int] = field(default_factory=dict)  # how many labels of each client were changed
    relabel_metrics: dict[int, dict[str, Any]] = field(default_factory=dict)  # of each client's last re-labelling
    skipped: int = 0  # rounds in a row that had too few clients

    @classmethod
    def first(cls, runner: ClientRunner) -> ServerState:
        """Return the state before the first round, with the initial weights of the runner's model."""
        plan, sizes = runner.plan, runner.arrays.sizes
        with seeded(plan.seed, "start"):
            server = plan.algorithm.start(runner.model.module, sizes, plan.seed)
        weights = runner.split.shared.read(runner.model)
        kept = {name: np.array(array) for name, array in server.items()}
        return cls(0, weights, kept, np.zeros(sizes.clients, bool))


class Run:
    """One federated run in progress. `note` says so if its work cannot be sent to the executor's processes."""

    def __init__(self, problem: Problem, plan: Plan, executor: Executor) -> None:
        self.problem, self.plan, self.clients = problem, plan, len(problem.shards)
        # n_k of each client, None if only the client knows it
        self.samples = [None if problem.private else len(shard.train) for shard in problem.shards]
        self.memory = SharedMemory()
        self.runner = ClientRunner.create(problem, plan, self.memory, keeps_state=not executor.remote_clients)
        self.arrays = self.runner.arrays
        self.stores_client_state = self.runner.setup.client_state is not None  # here, and not at remote clients
        self.state = ServerState.first(self.runner)
        self.executor, self.note = load_or_stay(executor, self.runner)

    @property
    def current_labels(self) -> NDArray[np.int64]:
        """The labels that clients train on, by sample id."""
        return self.runner.current_labels

    def close(self) -> None:
        """Release what the run holds; the executor stays open."""
        self.runner.close()
        self.memory.close()
