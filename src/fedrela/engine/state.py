"""A run in progress: what it learns, how and with whom, and the server's state, which changes from round to round."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.engine.client import ClientRunner
from fedrela.engine.executors import Executor, load_runner
from fedrela.engine.problem import Plan, Problem
from fedrela.engine.shared_memory import SharedArrays, SharedMemory
from fedrela.engine.tasks import Task, TaskKind


@dataclass
class ServerState:
    """What changes from round to round, beside the current labels and the clients' states.

    Attributes
    ----------
    round
        The last round that is done, 0 before the first.
    weights
        The shared arrays, one vector.
    server
        What the algorithm's server keeps.
    has_state
        Which clients have a state from an earlier round.
    relabelled
        In which round each client re-labelled last.
    moved
        How many labels of each client were changed.
    relabel_metrics
        Threshold, expected moves and histogram of each client's last re-labelling, for the report.
    skipped
        Rounds in a row that had too few clients.
    """

    round: int
    weights: NDArray[Any]
    server: dict[str, NDArray[Any]]
    has_state: NDArray[np.bool_]
    relabelled: dict[int, int] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    relabel_metrics: dict[int, dict[str, Any]] = field(default_factory=dict)
    skipped: int = 0


class Run:
    """One federated run in progress.

    Parameters
    ----------
    problem, plan
        What to learn from, and how.
    executor
        Does the clients' work; where the plan cannot be sent to processes, this process does, and `note` says so.
    folder
        Where arrays lie that are too large for shared memory.

    Attributes
    ----------
    runner
        The server's own: it scores, and lends its model to a server that trains.
    arrays
        What server and clients exchange and keep.
    memory
        Shared arrays: broadcast, uploads, current_labels, client_state.
    state
        How far the run is.
    stores_client_state
        Whether the clients' states are kept here, and not at remote clients.
    """

    def __init__(self, problem: Problem, plan: Plan, executor: Executor, folder: Path | None = None) -> None:
        self.problem, self.plan = problem, plan
        self.memory = SharedMemory(folder)
        self.runner = ClientRunner.create(problem, plan, self.memory, keeps_state=not executor.remote_clients)
        self.arrays = self.runner.arrays
        self.stores_client_state = self.runner.setup.client_state is not None
        model = self.runner.model
        server = plan.algorithm.start(model.module, self.arrays.sizes, plan.seed)
        self.state = ServerState(
            round=0,
            weights=self.runner.split.shared.read(model),
            server={name: np.array(array) for name, array in server.items()},
            has_state=np.zeros(self.clients, bool),
        )
        self.executor, self.note = load_runner(executor, self.runner)

    @property
    def clients(self) -> int:
        """Number of all clients, K."""
        return len(self.problem.shards)

    @property
    def current_labels(self) -> NDArray[np.int64]:
        """The labels that clients train on, by sample id."""
        return self.runner.current_labels

    def broadcast(self) -> dict[str, NDArray[Any]]:
        """Return what every client receives: the weights, and what the algorithm adds."""
        return {"weights": self.state.weights, **self.plan.algorithm.broadcast(self.state.server)}

    def write_broadcast(self) -> SharedArrays:
        """Write what every client receives to shared memory."""
        return self.memory.write_broadcast(self.broadcast())

    def task(
        self, kind: TaskKind, round: int, client: int, broadcast: SharedArrays, output: SharedArrays, row: int,
        **more: Any,
    ) -> Task:  # fmt: skip
        """Return a task for a client, with its own message and whether it has a state."""
        message = self.plan.algorithm.message(self.state.server, client)
        has_state = bool(self.state.has_state[client])
        return Task(
            kind, round, client, broadcast.handle, output.handle, row, message=message, has_state=has_state, **more
        )

    def close(self) -> None:
        """Release what the run holds; the executor stays open."""
        self.runner.close()
        self.memory.close()
        self.runner.setup.close()
