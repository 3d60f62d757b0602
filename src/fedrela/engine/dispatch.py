"""Tasks for the clients of a run: what the server sends them, and what they return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from fedrela.algorithms.base import Algorithm, ArraySpecs
from fedrela.engine.run import Run
from fedrela.engine.shared_memory import RowsHandle, SharedArrays
from fedrela.engine.tasks import ClientRelabelling, ClientResult, Task, TaskKind
from fedrela.models.runtime import torch_stream
from fedrela.records import Failure, FailureKind, Upload


@dataclass
class Collected:
    """What clients returned: uploads, re-labellings and rows of shared memory by client; or why they failed."""

    uploads: list[Upload] = field(default_factory=list)
    relabellings: dict[int, ClientRelabelling] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    failed: dict[int, Failure] = field(default_factory=dict)


def broadcast_arrays(run: Run) -> dict[str, NDArray[Any]]:
    """Return what every client receives: the weights, and what the algorithm adds."""
    runner, plan, state = run.runner, run.plan, run.state
    with torch_stream(runner.device, plan.seed, "broadcast", state.round, own_code=runner.own_code):
        return {"weights": state.weights, **plan.algorithm.broadcast(state.server)}


def message_arrays(run: Run, client: int) -> dict[str, NDArray[Any]]:
    """Return what this client alone receives."""
    plan, state = run.plan, run.state
    if type(plan.algorithm).message is Algorithm.message:
        return {}
    with torch_stream(run.runner.device, plan.seed, "message", state.round, client):
        return dict(plan.algorithm.message(state.server, client))


def write_broadcast(run: Run) -> RowsHandle:
    """Write what every client receives to shared memory."""
    return run.memory.write_broadcast(broadcast_arrays(run)).handle


def make_tasks(
    run: Run, kind: TaskKind, round: int, clients: Iterable[int], output: SharedArrays, subject: str = ""
) -> list[Task]:
    """Write what clients receive to shared memory, and return a task with a row of `output` for each of them."""
    plan, state, broadcast = run.plan, run.state, write_broadcast(run)
    return [
        Task(
            kind, round, client, broadcast, output.handle, row, subject=subject,
            message=message_arrays(run, client),
            has_state=bool(state.has_state[client]),
            relabel=kind == "train" and plan.relabel.due(round, plan.train.rounds, state.relabelled.get(client)),
        )
        for row, client in enumerate(clients)
    ]  # fmt: skip


def collect(run: Run, tasks: Sequence[Task], output: SharedArrays, specs: ArraySpecs, deadline: float) -> Collected:
    """Have clients carry out tasks, and return their results."""
    collected = Collected()
    for position, value, failure in run.executor.run(tasks, deadline=deadline or None):
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
