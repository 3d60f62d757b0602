"""The clients of a Flower grid as the engine's executor: tasks go out as messages, replies come back as uploads.

The engine's own round samples by our client ids, holds exchanges, admits, sums in sorted order and float64, scores at
the server and writes the run folder. A client that is not connected, does not reply in time or fails is left out of the
round. Flower's own ``Strategy`` sums in order of arrival, ends a run with one malformed reply, and waits for ever for a
missing node. To try it without nodes, there is Flower's own simulator.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from flwr.app import Array, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fedrela.engine.client import ClientRunner
from fedrela.engine.tasks import ClientResult, Task, TaskResult, failure_of
from fedrela.files.mapped import Place
from fedrela.flower.codec import CONFIG, TaskMessage, as_arrays, as_content, read_reply
from fedrela.models.runtime import one_thread
from fedrela.records import Failure, FailureKind, RoundRecord

SHORTEST, LONGEST = 0.02, 1.0  # seconds between two looks for replies,
PATIENT = 0.02  # and between them this part of the time waited so far
LOOK_PAUSE = 0.2  # seconds between two looks for clients that connect
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
TYPES = {"train": "train", "ask": "query.ask"}


class FlowerExecutor:
    """Remote clients: any algorithm of ours on a Flower grid.

    Parameters
    ----------
    grid
        What a ``ServerApp`` is given.
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

    def note_rounds(self, records: Iterable[RoundRecord], every: int) -> None:
        """Note who was admitted in these rounds, of which every so many left a checkpoint."""
        for record in records:
            self.admitted |= dict.fromkeys(record.admitted, record.round)
            if record.round % every == 0:
                self.durable = record.round

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


class Roster:
    """Which node is which client. Nodes are asked, since their ids are random and change with every restart."""

    def __init__(self, grid: Grid, fingerprint: str, patience: float) -> None:
        self._grid, self._fingerprint, self._patience = grid, fingerprint, patience
        self.nodes: dict[int, int] = {}
        self._strangers: set[int] = set()
        self._waited: set[int] = set()

    def doubt(self, client: int) -> None:
        """Ask again before the next task whether this client still is at its node."""
        self.nodes.pop(client, None)

    def find(self, clients: set[int]) -> dict[int, int]:
        """Return the nodes of those clients that are connected; each client is waited for once."""
        end = time.monotonic() + (self._patience if clients - self._waited else 0.0)
        self._waited |= clients
        while True:
            self._look(end)
            if clients <= set(self.nodes) or time.monotonic() >= end:
                return {client: node for client, node in self.nodes.items() if client in clients}
            time.sleep(LOOK_PAUSE)

    def _look(self, end: float) -> None:
        """Drop clients whose node has gone, and ask unknown nodes."""
        there = set(self._grid.get_node_ids())
        self.nodes = {client: node for client, node in self.nodes.items() if node in there}
        unknown = sorted(there - set(self.nodes.values()) - self._strangers)
        if not unknown:
            return
        seconds = max(end - time.monotonic(), self._patience / 10)
        asked = [Message(RecordDict(), node, "query.hello", ttl=seconds + 60) for node in unknown]
        for reply in self._grid.send_and_receive(asked, timeout=seconds):
            said: Mapping[str, Any] = {} if reply.has_error() else reply.content.config_records.get(CONFIG, {})
            client, node = said.get("client"), reply.metadata.src_node_id
            if type(client) is int and said.get("fingerprint") == self._fingerprint:
                self.nodes[client] = node
            elif not reply.has_error():
                self._strangers.add(node)


def simulate(work: Callable[[Grid], Any], app: ClientApp, clients: int, cores: int) -> Any:
    """Do some work with a grid of Flower's simulator, and return what it returns; its clients are processes of Ray."""
    from flwr.simulation import run_simulation

    server, done = ServerApp(), dict[str, Any]()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        try:
            done["result"] = work(grid)
        except BaseException as error:  # in a thread of the simulator, which would report it in many lines
            done["error"] = error

    backend: Any = {"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": cores}}
    with _quiet():
        run_simulation(server, app, num_supernodes=clients, backend_config=backend)
    if "error" in done:
        raise done["error"]
    return done["result"]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Flower and Ray from reporting to anybody, from writing to the home folder, and from logging."""
    logger = logging.getLogger("flwr")
    level, before = logger.level, dict(os.environ)
    with tempfile.TemporaryDirectory() as home, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ.update(QUIET | {"FLWR_HOME": os.environ.get("FLWR_HOME", home), "OMP_NUM_THREADS": "1"})
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)
            os.environ.clear()
            os.environ.update(before)
