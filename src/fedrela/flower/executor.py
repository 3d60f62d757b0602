"""The clients of a Flower grid as the engine's executor: tasks go out as messages, replies come back as uploads.

Scoring stays at the server. A client that is not connected, does not reply in time or fails is left out of the round:
nothing waits for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flwr.app import Array, Message
from flwr.serverapp import Grid

from fedrela.engine.client import ClientRunner
from fedrela.engine.tasks import ClientResult, Task, TaskResult, failure_of
from fedrela.files.mapped import Place
from fedrela.flower.codec import TaskMessage, as_arrays, as_content, read_reply
from fedrela.flower.roster import Roster
from fedrela.models.runtime import one_thread
from fedrela.records import Failure, FailureKind

SHORTEST, LONGEST = 0.02, 1.0  # seconds between two looks for replies,
PATIENT = 0.02  # and between them this part of the time waited so far
TYPES = {"train": "train", "ask": "query.ask"}


class FlowerExecutor:
    """Remote clients.

    Parameters
    ----------
    grid
        Flower's way to them.
    experiment
        The name that clients keep their states under; the same after a restart.
    fingerprint
        Of the configuration; clients with another one are ignored.
    patience
        Seconds to wait for clients to connect, and for replies where the configuration has no deadline.
    """

    remote_clients = True

    def __init__(self, grid: Grid, *, experiment: str, fingerprint: str, patience: float = 600.0) -> None:
        self._grid, self._experiment, self._patience = grid, experiment, patience
        self._roster = Roster(grid, fingerprint, patience)
        self._runner: ClientRunner | None = None
        self.admitted: dict[int, int] = {}  # the last round in which each client was admitted
        self.durable = 0  # the last round that this server cannot lose

    @property
    def size(self) -> int:
        """How many clients are connected, as far as is known."""
        return len(self._roster.nodes)

    def load(self, make: Callable[[Any], ClientRunner], setup: Any, /) -> None:
        """Take the server's own runner, which scores."""
        self._runner = make(setup)

    def run(self, tasks: Sequence[Task], /, deadline: float | None = None) -> Iterator[TaskResult]:
        """Carry out tasks, and yield the result of each as it is ready."""
        remote = {position: task for position, task in enumerate(tasks) if task.kind in TYPES}
        for position, task in enumerate(tasks):
            if position not in remote:
                yield self._score(position, task)
        if remote:
            yield from self._send(remote, deadline or self._patience)

    def _score(self, position: int, task: Task) -> TaskResult:
        assert self._runner is not None  # a run loads its runner before it gives a task
        if task.kind == "score_local":
            reason = "train.local_test: remote clients do not score for themselves; leave it out"
            return TaskResult(position, failure=Failure(FailureKind.ERROR, reason))
        try:
            with one_thread():
                return TaskResult(position, self._runner(task))
        except Exception as error:
            return TaskResult(position, failure=failure_of(error))

    def _send(self, tasks: dict[int, Task], seconds: float) -> Iterator[TaskResult]:
        """Send tasks to the clients that are connected, and yield their results."""
        assert self._runner is not None
        nodes = self._roster.find({task.client for task in tasks.values()})
        sent: dict[int, Message] = {}
        broadcasts: dict[Place, dict[str, Array]] = {}  # one for all that are sent the same
        for position, task in tasks.items():
            if task.client not in nodes:
                yield TaskResult(position, failure=Failure(FailureKind.NOT_CONNECTED))
                continue
            place = task.broadcast.place
            if place not in broadcasts:
                broadcasts[place] = as_arrays(self._runner.shared(task.broadcast).row())
            admitted = self.admitted.get(task.client, 0)
            message = TaskMessage(
                task.kind, task.round, task.client, task.subject, self._experiment, admitted, self.durable,
                own=task.message,
            )  # fmt: skip
            sent[position] = Message(
                as_content(message, broadcasts[place]), nodes[task.client], TYPES[task.kind],
                group_id=str(task.round), ttl=seconds + 60,
            )  # fmt: skip
        ids = dict(zip(self._grid.push_messages(list(sent.values())), sent, strict=True))
        yield from self._replies(ids, tasks, time.monotonic() + seconds)

    def _replies(self, positions: dict[str, int], tasks: dict[int, Task], end: float) -> Iterator[TaskResult]:
        left, began = dict(positions), time.monotonic()
        while left and (now := time.monotonic()) < end:
            came = list(self._grid.pull_messages(list(left)))
            for reply in came:
                position = left.pop(reply.metadata.reply_to_message_id, None)
                if position is not None:
                    yield self._result(position, tasks[position], reply)
            if not came:
                pause = min(max(PATIENT * (now - began), SHORTEST), LONGEST)
                time.sleep(min(pause, end - now))
        for position in left.values():
            self._roster.doubt(tasks[position].client)
            yield TaskResult(position, failure=Failure(FailureKind.DEADLINE))

    def _result(self, position: int, task: Task, reply: Message) -> TaskResult:
        said = read_reply(reply)
        if isinstance(said, Failure):
            self._roster.doubt(task.client)
            return TaskResult(position, failure=said)
        if said.client != task.client:  # a client may answer for itself only
            return TaskResult(position, failure=Failure(FailureKind.REFUSED, "answers for another client"))
        return TaskResult(position, ClientResult(said.samples, upload=said))
