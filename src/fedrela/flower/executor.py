"""The clients of a Flower grid as the engine's executor: tasks go out as messages, replies come back as uploads.

The engine's own round samples by our client ids, holds exchanges, admits, sums in sorted order and float64, scores at
the server and writes the run folder. A client that is not connected, does not reply in time or fails is left out of the
round. Flower's own ``Strategy`` sums in order of arrival, ends a run at one malformed reply, and waits forever for a
missing node.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from flwr.app import Array, Message, RecordDict
from flwr.serverapp import Grid

from fedrela.engine.client import ClientRunner
from fedrela.engine.tasks import ClientResult, Task, TaskResult, failure_of
from fedrela.files.mapped import FileRegion
from fedrela.flower.codec import ARRAYS, Decoded, TaskMessage, as_arrays, as_content, as_declared, read_reply
from fedrela.flower.roster import Roster
from fedrela.flower.simulator import StoppableGrid
from fedrela.models.runtime import one_thread
from fedrela.records import Failure, FailureKind, RoundRecord

SHORTEST_POLL, LONGEST_POLL = 0.02, 1.0  # seconds between two polls for replies,
POLL_FRACTION = 0.02  # and in between, this fraction of the time waited so far
TYPES = {"train": "train", "ask": "query.ask", "score_own": "query.score"}


class FlowerExecutor:
    """Remote clients: any algorithm of ours on a Flower grid.

    Parameters
    ----------
    grid
        The grid that Flower passes to a ``ServerApp``.
    experiment
        The name that clients keep their states under; the same after a restart.
    fingerprint
        Digest of the configuration; clients with another one are ignored.
    timeout
        Seconds to wait for clients to connect, and for replies where the configuration has no deadline.
    keys
        Public keys of clients, with which they prove who they are.

    Examples
    --------
    >>> from flwr.serverapp import ServerApp
    >>> app = ServerApp()
    >>> @app.main()
    ... def main(grid: Grid, context: Context) -> None:
    ...     executor = FlowerExecutor(grid, experiment="icu", fingerprint="0f3a", timeout=60.0)
    """

    remote_clients = True

    def __init__(
        self, grid: Grid, *, experiment: str, fingerprint: str, timeout: float = 600.0,
        keys: Mapping[int, str] | None = None,
    ) -> None:  # fmt: skip
        self._grid, self._experiment, self._timeout = grid, experiment, timeout
        self.roster = Roster(grid, fingerprint, timeout, keys or {})
        self.agreed: Mapping[str, Any] = {}  # statistics of all nodes, which every task carries
        self._runner: ClientRunner | None = None
        self.admitted: dict[int, int] = {}  # the last round in which each client was admitted
        self.durable = 0  # the last round that this server cannot lose: its newest checkpoint may be damaged
        self._newest = 0  # the round of that checkpoint

    def note_rounds(self, records: Iterable[RoundRecord], every: int) -> None:
        """Record who was admitted in these rounds, and the last of them with a checkpoint."""
        for record in records:
            self.admitted |= dict.fromkeys(record.admitted, record.round)
            if record.round % every == 0:
                self.durable, self._newest = self._newest, record.round

    def resume_at(self, round: int, every: int) -> None:
        """Continue after the checkpoint of a round."""
        self.durable, self._newest = max(round - every, 0), round

    @property
    def size(self) -> int:
        """How many clients are connected, as far as is known."""
        return len(self.roster.nodes)

    def load(self, runner: ClientRunner, /) -> None:
        """Have the server's own runner score, and clients do the rest."""
        self._runner = runner

    def run(self, tasks: Sequence[Task], /, deadline: float | None = None) -> Iterator[TaskResult]:
        """Carry out tasks, and yield the result of each as it is ready."""
        remote = {position: task for position, task in enumerate(tasks) if task.kind in TYPES}
        for position, task in enumerate(tasks):
            if position not in remote:
                if isinstance(self._grid, StoppableGrid):
                    self._grid.check()  # scoring sends no message
                yield self._score(position, task)
        if remote:
            yield from self._send(remote, deadline or self._timeout)

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
        nodes = self.roster.find({task.client for task in tasks.values()})
        sent: dict[int, Message] = {}
        broadcasts: dict[FileRegion, dict[str, Array]] = {}  # one per distinct broadcast
        for position, task in tasks.items():
            if task.client not in nodes:
                yield TaskResult(position, failure=self.roster.why_absent(task.client))
                continue
            region = task.broadcast.region
            if region not in broadcasts:
                broadcasts[region] = as_arrays(self._runner.shared(task.broadcast).row())
            admitted = self.admitted.get(task.client, 0)
            message = TaskMessage(
                task.kind, task.round, task.client, task.subject, self._experiment, admitted, self.durable,
                own=task.message, agreed=self.agreed,
            )  # fmt: skip
            sent[position] = Message(
                as_content(message, broadcasts[region]), nodes[task.client], TYPES[task.kind],
                group_id=str(task.round), ttl=seconds + 60,
            )  # fmt: skip
        ids: dict[str, int] = {}
        for name, position in zip(self._grid.push_messages(list(sent.values())), sent, strict=True):
            if name:
                ids[name] = position
            else:  # the node left after it was found
                self.roster.forget(tasks[position].client)
                yield TaskResult(position, failure=Failure(FailureKind.NOT_CONNECTED))
        yield from self._replies(ids, tasks, time.monotonic() + seconds)

    def statistics(self, specs: Mapping[str, tuple[tuple[int, ...], str]]) -> list[dict[str, Any]]:
        """Ask all clients for statistics of their samples; return the declared arrays that each reports, by client."""
        nodes = self.roster.find(set(self.roster.clients or ()))
        asked = [Message(RecordDict(), node, "query.statistics", ttl=self._timeout + 60) for node in nodes.values()]
        reported, client_at = {}, {node: client for client, node in nodes.items()}
        for reply in self._grid.send_and_receive(asked, timeout=self._timeout):
            if not reply.has_error() and reply.metadata.src_node_id in client_at:
                arrays = Decoded(reply.content.array_records.get(ARRAYS, {}))
                reported[client_at[reply.metadata.src_node_id]] = as_declared(arrays, specs)
        return [reported[client] for client in sorted(reported)]

    def _replies(self, positions: dict[str, int], tasks: dict[int, Task], end: float) -> Iterator[TaskResult]:
        left, began = dict(positions), time.monotonic()
        while left and (now := time.monotonic()) < end:
            replies = list(self._grid.pull_messages(list(left)))
            for reply in replies:
                position = left.pop(reply.metadata.reply_to_message_id, None)
                if position is not None:
                    yield self._result(position, tasks[position], reply)
            if not replies:
                pause = min(max(POLL_FRACTION * (now - began), SHORTEST_POLL), LONGEST_POLL)
                time.sleep(min(pause, end - now))
        for position in left.values():
            self.roster.forget(tasks[position].client)
            yield TaskResult(position, failure=Failure(FailureKind.DEADLINE))

    def _result(self, position: int, task: Task, reply: Message) -> TaskResult:
        upload = read_reply(reply)
        if isinstance(upload, Failure):
            self.roster.forget(task.client)
            return TaskResult(position, failure=upload)
        if upload.client != task.client:  # a client may only answer for itself
            return TaskResult(position, failure=Failure(FailureKind.REFUSED, "answers for another client"))
        return TaskResult(position, ClientResult(upload.samples, upload=upload))
