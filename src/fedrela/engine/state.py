"""A run in progress: its data, plan and executor, and the server's state, which changes from round to round.

Also how its whole state is saved as a checkpoint, and restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms.base import Algorithm, ArraySpecs
from fedrela.engine.client import ClientRunner
from fedrela.engine.executors import Executor
from fedrela.engine.executors.pool import Pool
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.executors.worker import CannotSendError
from fedrela.engine.problem import STATE, Plan, Problem
from fedrela.engine.shared_memory import SharedArrays, SharedMemory
from fedrela.engine.tasks import ClientRelabelling, ClientResult, Task, TaskKind
from fedrela.errors import ArgumentError, IntegrityError
from fedrela.models.runtime import seeded, torch_stream
from fedrela.records import Failure, FailureKind, Upload
from fedrela.runfolder import Checkpoint, RunFolder


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


@dataclass
class Collected:
    """What clients returned: uploads, re-labellings and rows of shared memory by client; or why they failed."""

    uploads: list[Upload] = field(default_factory=list)
    relabellings: dict[int, ClientRelabelling] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    failed: dict[int, Failure] = field(default_factory=dict)


class Run:
    """One federated run in progress: its data, its plan, and the executor of the clients' work.

    If the plan cannot be sent to other processes, this process does the work, and `note` says so. `folder` is for
    arrays that are too large for shared memory.
    """

    def __init__(self, problem: Problem, plan: Plan, executor: Executor, folder: Path | None = None) -> None:
        self.problem, self.plan, self.clients = problem, plan, len(problem.shards)
        # n_k of each client, None if only the client knows it
        self.samples = [None if problem.private else len(shard.train) for shard in problem.shards]
        self.memory = SharedMemory(folder)
        self.runner = ClientRunner.create(problem, plan, self.memory, keeps_state=not executor.remote_clients)
        self.arrays = self.runner.arrays
        self.stores_client_state = self.runner.setup.client_state is not None  # here, and not at remote clients
        with seeded(plan.seed, "start"):
            server = plan.algorithm.start(self.runner.model.module, self.arrays.sizes, plan.seed)
        self.state = ServerState(
            round=0,
            weights=self.runner.split.shared.read(self.runner.model),
            server={name: np.array(array) for name, array in server.items()},
            has_state=np.zeros(self.clients, bool),
        )
        self.executor, self.note = _load(executor, self.runner)

    @property
    def current_labels(self) -> NDArray[np.int64]:
        """The labels that clients train on, by sample id."""
        return self.runner.current_labels

    def broadcast(self) -> dict[str, NDArray[Any]]:
        """Return what every client receives: the weights, and what the algorithm adds."""
        runner = self.runner
        with torch_stream(runner.device, self.plan.seed, "broadcast", self.state.round, own_code=runner.own_code):
            return {"weights": self.state.weights, **self.plan.algorithm.broadcast(self.state.server)}

    def message(self, client: int) -> dict[str, NDArray[Any]]:
        """Return what this client alone receives."""
        if type(self.plan.algorithm).message is Algorithm.message:
            return {}
        with torch_stream(self.runner.device, self.plan.seed, "message", self.state.round, client):
            return dict(self.plan.algorithm.message(self.state.server, client))

    def write_broadcast(self) -> SharedArrays:
        """Write what every client receives to shared memory."""
        return self.memory.write_broadcast(self.broadcast())

    def tasks(
        self, kind: TaskKind, round: int, clients: Iterable[int], output: SharedArrays, subject: str = ""
    ) -> list[Task]:
        """Write what clients receive to shared memory, and return a task with a row of `output` for each of them."""
        plan, state, broadcast = self.plan, self.state, self.write_broadcast().handle
        return [
            Task(
                kind, round, client, broadcast, output.handle, row, subject=subject,
                message=self.message(client),
                has_state=bool(state.has_state[client]),
                relabel=kind == "train" and plan.relabel.due(round, plan.train.rounds, state.relabelled.get(client)),
            )
            for row, client in enumerate(clients)
        ]  # fmt: skip

    def collect(self, tasks: Sequence[Task], output: SharedArrays, specs: ArraySpecs, deadline: float) -> Collected:
        """Have clients carry out tasks, and return their results."""
        collected = Collected()
        for position, value, failure in self.executor.run(tasks, deadline=deadline or None):
            client, row = tasks[position].client, tasks[position].row
            if not isinstance(value, ClientResult):
                collected.failed[client] = failure or Failure(FailureKind.ERROR, "no result")
                continue
            arrays = {name: array for name, array in output.row(row).items() if name in specs}
            collected.uploads.append(value.upload or Upload(client, tasks[position].round, value.samples, arrays))
            collected.rows[client] = row
            if value.relabelling is not None:
                collected.relabellings[client] = value.relabelling
        return collected

    def close(self) -> None:
        """Release what the run holds; the executor stays open."""
        self.runner.close()
        self.memory.close()


def _load(executor: Executor, runner: ClientRunner) -> tuple[Executor, str]:
    """Load the clients' work into an executor; if it cannot be sent to other processes, use this one, with a note."""
    note = ""
    if isinstance(executor, Pool):
        try:
            executor.load(ClientRunner, runner.setup)
            return executor, note
        except CannotSendError as error:
            executor, note = SerialExecutor(), f"runs in one process, since its work cannot be sent to another: {error}"
    executor.load(lambda runner: runner, runner)
    return executor, note


def save_checkpoint(run: Run, folder: RunFolder) -> None:
    """Write the whole state after the round just done, as named arrays and one record."""
    state = run.state
    moved = np.flatnonzero(run.current_labels != run.problem.y_train)
    arrays: dict[str, NDArray[Any]] = {"weights": state.weights, "has_state": state.has_state}
    arrays |= {"moves.sample": moved, "moves.label": run.current_labels[moved]}
    arrays |= {f"server.{name}": array for name, array in state.server.items()}
    ids = np.flatnonzero(state.has_state)
    if run.stores_client_state and ids.size:
        rows = [run.memory["client_state"].row(int(client)) for client in ids]
        arrays |= {f"{STATE}{name}": np.stack([row[name] for row in rows]) for name in rows[0]}
    record = {
        "remote_clients": run.executor.remote_clients,
        "skipped": state.skipped,
        "relabelled": {str(client): round for client, round in sorted(state.relabelled.items())},
        "moved": {str(client): number for client, number in sorted(state.moved.items())},
        "relabel_metrics": {str(client): metrics for client, metrics in sorted(state.relabel_metrics.items())},
    }
    folder.save_checkpoint(state.round, arrays, record)


def restore_checkpoint(run: Run, checkpoint: Checkpoint) -> None:
    """Put a run into the state of a checkpoint; one that does not fit the run is an `IntegrityError`."""
    remote = bool(checkpoint.record.get("remote_clients"))
    if remote != run.executor.remote_clients:
        engine = "on a Flower grid" if remote else "with the embedded engine"
        raise ArgumentError(f"checkpoint of round {checkpoint.round}: its clients run {engine}; resume it {engine}")
    try:
        _restore(run, checkpoint)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise IntegrityError(f"checkpoint of round {checkpoint.round}: does not fit this run: {error}") from None


def _restore(run: Run, checkpoint: Checkpoint) -> None:
    state, arrays, record = run.state, checkpoint.arrays, checkpoint.record
    run.arrays.layout.check_vector(arrays["weights"])
    if arrays["has_state"].shape != state.has_state.shape:
        raise ValueError(f"{len(arrays['has_state'])} clients, not {run.clients}")
    state.round = checkpoint.round
    state.weights = np.array(arrays["weights"])
    state.has_state = np.array(arrays["has_state"]) if run.stores_client_state else np.zeros(run.clients, bool)
    state.server = {k.removeprefix("server."): np.array(a) for k, a in arrays.items() if k.startswith("server.")}
    for number, client in enumerate(np.flatnonzero(state.has_state)):
        for name, array in run.memory["client_state"].row(int(client)).items():
            array[...] = arrays[f"{STATE}{name}"][number]
    run.current_labels[...] = run.problem.y_train
    run.current_labels[arrays["moves.sample"]] = arrays["moves.label"]
    state.skipped = int(record["skipped"])
    state.relabelled = {int(client): int(round) for client, round in record["relabelled"].items()}
    state.moved = {int(client): int(number) for client, number in record["moved"].items()}
    state.relabel_metrics = {int(client): dict(metrics) for client, metrics in record["relabel_metrics"].items()}
