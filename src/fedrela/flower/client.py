"""The client's side: a task comes in, the engine's own station carries it out, an upload goes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict

from fedrela.algorithms.base import ArraySpec
from fedrela.engine.messages import one_line
from fedrela.engine.orders import Answer, Order
from fedrela.engine.run import Run
from fedrela.errors import ArgumentError, FedrelaError
from fedrela.flower.codec import CONFIG, Task, as_failure, as_reply, read_task
from fedrela.flower.turns import Memory, Remembered
from fedrela.models.repeatable import one_thread
from fedrela.records import Upload


class Site:
    """Where a client's tasks are carried out, and where it keeps what is its own.

    Parameters
    ----------
    run
        The run as this process sees it: model, algorithm, plan, and at least this client's samples.
    fingerprint
        Of the configuration; a server of another one is refused.
    root
        Folder of the client's own, which must outlive the process.
    """

    def __init__(self, run: Run, fingerprint: str, root: str | Path) -> None:
        self.run, self.fingerprint, self.root = run, fingerprint, Path(root)

    def hello(self, message: Message, context: Context) -> Message:
        """Say which client this is, and of which configuration."""
        said = ConfigRecord({"client": client_of(context), "fingerprint": self.fingerprint})
        return Message(RecordDict({CONFIG: said}), reply_to=message)

    def answer(self, message: Message, context: Context) -> Message:
        """Carry out the task of a message; what goes wrong is told in one line."""
        try:
            task = read_task(message.content)
            if task.client != client_of(context):
                raise ArgumentError(f"client {client_of(context)}: the task is of client {task.client}")
            memory = Memory(_root(context, self.root), task.experiment, task.client)
            with memory.locked(), one_thread():
                content = as_reply(self._carry_out(task, memory))
        except Exception as error:  # the server hears a reason in place of a traceback
            plain = str(error) if isinstance(error, FedrelaError) else one_line(error)
            content = as_failure(plain)
        return Message(content, reply_to=message)

    def _carry_out(self, task: Task, memory: Memory) -> Upload:
        memory.forget(task.admitted, task.durable)
        before = memory.recall(task.admitted) if self._has_changed(task.admitted) else Remembered(task.admitted)
        self._put_back(task.client, before)
        order = self._order(task, before)
        answer = self.run.runner(order)
        row = self.run.areas["up" if task.kind == "train" else "answer"].views()
        if task.kind == "train":
            if self._has_changed(task.round):
                memory.keep(self._after(task, before, answer, row))
            row = {name: row[name] for name in self.run.sent}
        return Upload(task.client, task.round, answer.samples, row)

    def _has_changed(self, round: int) -> bool:
        """Whether a client may have something to remember after a round: kept arrays, or labels that were moved."""
        plan = self.run.plan
        moved = plan.relabel.enabled and round >= plan.relabel.schedule.first(plan.train.rounds)
        return bool(self.run.kept) or moved

    def _put_back(self, client: int, before: Remembered) -> None:
        """Put labels and kept arrays where the station looks for them."""
        run, index = self.run, self.run.problem.shards[client].train
        run.labels[index] = run.problem.y_train[index] if before.labels is None else before.labels
        for name, place in run.areas["kept"].views(client).items() if before.kept else ():
            place[...] = before.kept[name]

    def _order(self, task: Task, before: Remembered) -> Order:
        run, train = self.run, task.kind == "train"
        fields = {name: ArraySpec(array.shape, str(array.dtype)) for name, array in task.down.items()}
        down = run.area("down", fields)
        for name, place in down.views().items():
            place[...] = task.down[name]
        if train:
            up = run.area("up", run.sent | {f"kept.{name}": field for name, field in run.kept.items()})
        else:
            up = run.area("answer", dict(run.plan.algorithm.answers(task.subject, run.sizes)))
        due = train and run.plan.relabel.due(task.round, run.plan.train.rounds, before.relabelled)
        return Order(
            task.kind, task.round, task.client, down.handle, up.handle, 0, message=task.message,
            known=bool(run.kept) and before.round > 0, relabel=due, subject=task.subject,
        )  # fmt: skip

    def _after(self, task: Task, before: Remembered, answer: Answer, row: dict[str, Any]) -> Remembered:
        kept = {name: np.array(row[f"kept.{name}"]) for name in self.run.kept}
        if answer.moves is None:
            return Remembered(task.round, before.relabelled, before.labels, kept)
        return Remembered(task.round, task.round, np.asarray(answer.moves.ledger.labels, np.int64), kept)


def client_of(context: Context) -> int:
    """Return which client a node is: its ``partition-id``."""
    number = context.node_config.get("partition-id")
    if type(number) is not int or number < 0:
        raise ArgumentError(f"node-config: expected partition-id=NUMBER, got {number!r}")
    return number


def _root(context: Context, default: Path) -> Path:
    return Path(str(context.node_config.get("state-dir", default)))
