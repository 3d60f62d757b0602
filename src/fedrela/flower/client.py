"""The client's side: a task comes in, the engine's own `ClientRunner` carries it out, an upload goes back.

A client keeps on its disk its state after each round that may still count. A round counts only when the server says
so in a later message; until then it is one of several that may. A server that was restarted names an earlier round, and
the client continues from there. So a restarted client never re-labels anew, and a round that the server lost leaves
nothing behind.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import NDArray

from fedrela.engine.client import ClientRunner
from fedrela.engine.problem import STATE
from fedrela.engine.shared_memory import SharedMemory
from fedrela.engine.tasks import Task, failure_of
from fedrela.errors import ArgumentError, FedrelaError, IntegrityError
from fedrela.files import alone, digest, make_folders, read_plain, safe_join, sweep, write_bytes
from fedrela.files.atomic import remove_if_there
from fedrela.flower.codec import CONFIG, TaskMessage, as_failure, as_reply, read_task
from fedrela.models.runtime import one_thread
from fedrela.records import Failure, FailureKind, Upload

LARGEST = 1 << 34  # bytes of a file
_FILE = re.compile(r"round-(\d{6,9})")


class FlowerClient:
    """Carries out the tasks of one client, or of several in one process, and keeps what is their own.

    The runner, whose shared memory is `memory`, has at least this client's samples. A server with another
    `fingerprint` of its configuration is refused. `root` is a folder of the client's own, which outlives the process.
    """

    def __init__(self, runner: ClientRunner, memory: SharedMemory, fingerprint: str, root: str | Path) -> None:
        self.runner, self.memory, self.fingerprint, self.root = runner, memory, fingerprint, Path(root)

    def hello(self, message: Message, context: Context) -> Message:
        """Say which client this is, and of which configuration."""
        said = ConfigRecord({"client": client_of(context), "fingerprint": self.fingerprint})
        return Message(RecordDict({CONFIG: said}), reply_to=message)

    def answer(self, message: Message, context: Context) -> Message:
        """Carry out the task of a message; an error is reported in one line."""
        try:
            task = read_task(message.content)
            if task.client != client_of(context):
                raise ArgumentError(f"client {client_of(context)}: the task is for client {task.client}")
            experiment = f"{task.experiment}-{self.fingerprint[:12]}"  # never the state of another configuration
            store = StateStore(str(context.node_config.get("state-dir", self.root)), experiment, task.client)
            with store.locked(), one_thread():
                content = as_reply(self._carry_out(task, store))
        except Exception as error:  # the server is told a reason, not a traceback
            failure = failure_of(error)
            if failure.kind is FailureKind.ERROR and isinstance(error, FedrelaError):
                failure = Failure(FailureKind.ERROR, str(error))
            content = as_failure(failure)
        return Message(content, reply_to=message)

    def _carry_out(self, message: TaskMessage, store: StateStore) -> Upload:
        store.remove_outdated(message.admitted, message.durable)
        stored = self._may_have_state(message.admitted)
        before = store.read(message.admitted) if stored else StoredState(message.admitted)
        self._restore(message.client, before)
        task = self._task(message, before)
        result = self.runner(task)
        row = self.runner.shared(task.output).row()
        if message.kind == "train":
            if self._may_have_state(message.round):
                arrays = {name: np.array(row[f"{STATE}{name}"]) for name in self.runner.arrays.client_state}
                after = replace(before, round=message.round, arrays=arrays)
                if result.relabelling is not None:
                    labels = np.asarray(result.relabelling.ledger.labels, np.int64)
                    after = replace(after, relabelled=message.round, labels=labels)
                store.write(after)
            row = {name: row[name] for name in self.runner.arrays.upload}
        return Upload(message.client, message.round, result.samples, row)

    def _may_have_state(self, round: int) -> bool:
        """Whether a client may have something to store after a round: its state, or labels that were changed."""
        plan = self.runner.plan
        relabelled = plan.relabel.enabled and round >= plan.relabel.schedule.first(plan.train.rounds)
        return bool(self.runner.arrays.client_state) or relabelled

    def _restore(self, client: int, before: StoredState) -> None:
        """Put labels and state where the runner reads them."""
        runner, index = self.runner, self.runner.samples_of(client)
        runner.current_labels[index] = runner.labels[index] if before.labels is None else before.labels
        for name, array in self.memory["client_state"].row(client).items() if before.arrays else ():
            array[...] = before.arrays[name]

    def _task(self, message: TaskMessage, before: StoredState) -> Task:
        plan, arrays, train = self.runner.plan, self.runner.arrays, message.kind == "train"
        broadcast = self.memory.write_broadcast(message.broadcast)
        if train:
            output = self.memory.make("uploads", arrays.upload_row(with_state=True))
        else:
            output = self.memory.make("answer", dict(plan.algorithm.answers(message.subject, arrays.sizes)))
        due = train and plan.relabel.due(message.round, plan.train.rounds, before.relabelled)
        return Task(
            message.kind, message.round, message.client, broadcast.handle, output.handle, 0, message=message.own,
            has_state=bool(arrays.client_state) and before.round > 0, relabel=due, subject=message.subject,
        )  # fmt: skip


def client_app(client: Callable[[], FlowerClient]) -> ClientApp:
    """Return the app of every client; `client` is called with every message, so it should cache what it returns."""
    app = ClientApp()
    app.train()(lambda message, context: client().answer(message, context))
    app.query("ask")(lambda message, context: client().answer(message, context))
    app.query("hello")(lambda message, context: client().hello(message, context))
    return app


def client_of(context: Context) -> int:
    """Return which client a node is: its ``partition-id``."""
    number = context.node_config.get("partition-id")
    if type(number) is not int or number < 0:
        raise ArgumentError(f"expected partition-id=NUMBER, got {number!r}", argument="node-config")
    return number


@dataclass(frozen=True, eq=False)
class StoredState:
    """A client's state after a round."""

    round: int = 0  # 0 before the first
    relabelled: int | None = None  # the round in which it re-labelled last
    labels: NDArray[np.int64] | None = None  # current ones of all its samples; None while they are the original ones
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # what the algorithm keeps


class StateStore:
    """The stored states of one client in one experiment, below a folder of the client's own."""

    def __init__(self, root: str | Path, experiment: str, client: int) -> None:
        self.path = safe_join(safe_join(root, experiment), f"client-{client}")
        make_folders(self.path)

    def locked(self) -> Any:
        """Hold a lock that no other process of this client can hold."""
        return alone(self.path / "lock")

    def read(self, admitted: int) -> StoredState:
        """Return the state after the round that counted last; `IntegrityError` where it is lost."""
        if admitted == 0:
            return StoredState()
        path = self._path(admitted)
        try:
            data = read_plain(path, LARGEST)
        except OSError:
            what = f"{path}: is missing, though this round counted; restore the client's folder"
            raise IntegrityError(what) from None
        seal, _, body = data.partition(b"\n")
        if seal.decode("ascii", "replace") != digest(body):
            raise IntegrityError(f"{path}: does not match its digest; it was changed or damaged")
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            read = {name: arrays[name] for name in arrays.files}
        relabelled, labels = int(read.pop("relabelled")), read.pop("labels", None)
        return StoredState(admitted, relabelled or None, labels, read)

    def write(self, state: StoredState) -> None:
        """Write the state after a round; on disk before this returns."""
        labels = {} if state.labels is None else {"labels": state.labels}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, relabelled=np.int64(state.relabelled or 0), **labels, **state.arrays)
        body = buffer.getvalue()
        write_bytes(self._path(state.round), digest(body).encode() + b"\n" + body)

    def remove_outdated(self, admitted: int, durable: int) -> None:
        """Remove states that can never count again: later ones that did not, and all before the last durable one."""
        rounds = sorted(int(found[1]) for path in self.path.iterdir() if (found := _FILE.fullmatch(path.name)))
        safe = max((r for r in rounds if r <= min(admitted, durable)), default=0)
        for r in rounds:
            if r > admitted or r < safe:
                remove_if_there(self._path(r))
        sweep(self.path)

    def _path(self, round: int) -> Path:
        return self.path / f"round-{round:06}"
