"""The client's side: a task arrives, the engine's own `ClientRunner` carries it out, an upload is returned.

After each round that may still count, a client stores its state on disk. A round counts only when the server says so
in a later message; until then several candidates are stored. A restarted server names an earlier round, and the client
continues from there. So a restarted client never re-labels a second time, and a round that the server lost has no
effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import NDArray

from fedrela.algorithms.base import ArraySpec
from fedrela.core import Ledger, Provenance
from fedrela.core.limits import OwnerLimits
from fedrela.engine.client import SCORE_BATCH, ClientRunner
from fedrela.engine.problem import STATE
from fedrela.engine.shared_memory import SharedMemory
from fedrela.engine.tasks import NoSamplesError, Task, failure_of
from fedrela.errors import ArgumentError, DataError, FedrelaError, IntegrityError
from fedrela.files import (
    array_bytes,
    digest,
    hold_lock,
    make_folders,
    read_arrays,
    read_plain,
    remove_temporary,
    safe_join,
    write_bytes,
)
from fedrela.files.atomic import remove_if_exists
from fedrela.flower.codec import (
    ARRAYS,
    CONFIG,
    LONGEST_REASON,
    TaskMessage,
    as_arrays,
    as_failure,
    as_reply,
    read_task,
)
from fedrela.flower.mod import LOG
from fedrela.metrics import score
from fedrela.models.runtime import one_thread
from fedrela.options import options_of
from fedrela.records import Failure, FailureKind, Upload

Arrays = Mapping[str, NDArray[Any]]
LARGEST = 1 << 34  # bytes of a file
_STATE, _LEDGER = re.compile(r"round-(\d{6,9})"), re.compile(r"ledger-(\d{6,9})\.json")


@dataclass(eq=False)
class FlowerClient:
    """Carries out the tasks of one client, or of several in one process, and stores their states."""

    fingerprint: str  # of the configuration; a server with another one is refused
    root: str | Path  # the client's own folder, which outlives the process
    make: Callable[[Arrays], tuple[ClientRunner, SharedMemory]]  # from the statistics of all nodes, if any
    client: int | None = None  # which client it is; None: its node says so, with partition-id
    data_sha256: str = ""  # of the data of all clients, reported to the server if they should be the same
    private: PrivateNode | None = None
    ids: tuple[str, ...] = ()  # names of all training samples, if they have any
    sign: Callable[[bytes], bytes] | None = None  # with its private key
    refusal: str = ""  # why it takes no part; empty if it does
    _made: tuple[str, ClientRunner, SharedMemory] | None = None

    def hello(self, message: Message, context: Context) -> Message:
        """Report which client this is, and its configuration, or why it takes no part."""
        client = self._client(context)
        answer = ConfigRecord({"client": client, "fingerprint": self.fingerprint})
        if self.data_sha256:
            answer["data"] = self.data_sha256
        if self.refusal:
            answer["refused"] = self.refusal[:LONGEST_REASON]
        if self.sign is not None:
            question: Mapping[str, Any] = message.content.config_records.get(CONFIG, {})
            nonce = str(question.get("nonce", ""))
            answer["signature"] = self.sign(challenge(nonce, client, self.fingerprint, context.node_id))
        return Message(RecordDict({CONFIG: answer}), reply_to=message)

    def report_statistics(self, message: Message, context: Context) -> Message:
        """Report what the configuration requests from every node before the first round, if the policy permits."""
        try:
            answers = {} if self.private is None or self.refusal else dict(self.private.statistics())
            content = RecordDict({ARRAYS: ArrayRecord(as_arrays(answers))})
        except Exception as error:  # as below
            content = as_failure(self._reported(failure_of(error), error))
        return Message(content, reply_to=message)

    def _client(self, context: Context) -> int:
        return client_of(context) if self.client is None else self.client

    def answer(self, message: Message, context: Context) -> Message:
        """Carry out the task of a message; an error is reported in one line."""
        try:
            task = read_task(message.content)
            client = self._client(context)
            if task.client != client:
                raise ArgumentError(f"client {client}: the task is for client {task.client}")
            if self.refusal:
                raise DataError(self.refusal)
            experiment = f"{task.experiment}-{self.fingerprint[:12]}"  # never the state of another configuration
            store = StateStore(str(context.node_config.get("state-dir", self.root)), experiment, task.client)
            with store.locked(), one_thread():
                content = as_reply(self._carry_out(task, store))
        except Exception as error:  # the server gets a reason, not a traceback
            failure = failure_of(error)
            content = as_failure(self._reported(failure, error))
        return Message(content, reply_to=message)

    def _reported(self, failure: Failure, error: Exception) -> Failure:
        """Return what the server may learn of an error: of a private node's, no text that may hold its data."""
        if failure.kind is not FailureKind.ERROR:
            return failure
        if isinstance(error, FedrelaError):
            return Failure(FailureKind.ERROR, str(error))
        if self.private is None:
            return failure
        LOG.error("fedrela: %s", failure.detail)
        return Failure(FailureKind.ERROR, "an unexpected error; its own log says which")

    def _prepare(self, agreed: Arrays) -> None:
        """Create the runner, at the first task or if the statistics have changed since."""
        key = digest(b"".join(name.encode() + np.asarray(array).tobytes() for name, array in sorted(agreed.items())))
        if self._made is None or self._made[0] != key:
            self._made = (key, *self.make(agreed))
        _, self.runner, self.memory = self._made

    def _carry_out(self, message: TaskMessage, store: StateStore) -> Upload:
        self._prepare(message.agreed)
        if self.private is not None:
            store.check_data(self.private.sha256)
        if message.kind == "score_own":
            return self._score(message)
        store.remove_outdated(message.admitted, message.durable)
        stored = self._may_have_state(message.admitted)
        before = store.read(message.admitted) if stored else StoredState(message.admitted)
        self._restore(message.client, before, store)
        task = self._task(message, before)
        result = self.runner(task)
        row = self.runner.shared(task.output).row()
        if message.kind == "train":
            if self._may_have_state(message.round):
                arrays = {name: np.array(row[f"{STATE}{name}"]) for name in self.runner.arrays.client_state}
                after = replace(before, round=message.round, arrays=arrays)
                if result.relabelling is not None:
                    labels = np.asarray(result.relabelling.ledger.labels, np.int64)
                    confirmed = result.relabelling.agreement
                    after = replace(after, relabelled=message.round, labels=labels, agreement=confirmed)
                    ids = tuple(self.ids[row] for row in self.runner.samples_of(message.client)) if self.ids else ()
                    named = replace(result.relabelling.ledger, ids=ids)
                    named.save(store.ledger_path(message.round), overwrite=True)
                store.write(after)
            row = {name: row[name] for name in self.runner.arrays.upload}
        return Upload(message.client, message.round, result.samples, row)

    def _score(self, message: TaskMessage) -> Upload:
        """Score the global model on the client's own test samples; its policy limits what is reported."""
        runner, labels = self.runner, None if self.private is None else self.private.test_labels
        if labels is None or not len(labels):
            raise NoSamplesError("no test samples")
        broadcast = self.memory.write_broadcast(message.broadcast).handle
        classes = runner.arrays.sizes.classes
        output = self.memory.allocate("scores", {"scores": ArraySpec((len(labels), classes))})
        for row in range(-(-len(labels) // SCORE_BATCH)):
            runner(Task("score", message.round, 0, broadcast, output.handle, row, subject="test"))
        confusion = score(output.row()["scores"], labels).confusion
        silent = np.bincount(labels, minlength=classes) - confusion.sum(axis=1)
        hits = np.array([confusion.trace(), len(labels)], np.int64)
        rows = np.column_stack([confusion, silent]).astype(np.int64)
        reported = rows if self.private is not None and self.private.reports_confusion else np.zeros_like(rows)
        return Upload(message.client, message.round, len(labels), {"confusion": reported, "hits": hits})

    def _may_have_state(self, round: int) -> bool:
        """Whether a client may have something to store after a round: its state, or labels that were changed.

        A private node stores from T on whatever its policy says now, since its owner may change that.
        """
        plan = self.runner.plan
        relabels = plan.relabel.enabled or self.private is not None
        collects = self.private is not None and plan.relabel.collected  # logits of the rounds before T
        relabelled = relabels and (collects or round >= plan.relabel.schedule.first(plan.train.rounds))
        return bool(self.runner.arrays.client_state) or relabelled

    def _restore(self, client: int, before: StoredState, store: StateStore) -> None:
        """Write labels and state where the runner reads them; the original labels if the policy rules others out."""
        runner, index = self.runner, self.runner.samples_of(client)
        changed = before.labels is not None and runner.plan.relabel.enabled
        if changed and self.private is not None and before.relabelled is not None:
            limits = {each.name: getattr(runner.plan.relabel, each.name) for each in options_of(OwnerLimits)}
            ledger = Ledger.load(store.ledger_path(before.relabelled))
            ledger = replace(ledger, ids=(), provenance=Provenance(agreement=before.agreement))  # limits have numbers
            if limit := OwnerLimits(**limits).broken_by(ledger):
                message = "fedrela: the labels of round %d violate the current %s: training on the original labels"
                LOG.warning(message, before.relabelled, limit)
                changed = False
        runner.current_labels[index] = before.labels if changed else runner.labels[index]
        for name in runner.arrays.client_state if before.round else ():
            # Logits are not collected while re-labelling is off; NaN stands for none.
            self.memory["client_state"].row(client)[name][...] = before.arrays.get(name, np.nan)

    def _task(self, message: TaskMessage, before: StoredState) -> Task:
        plan, arrays, train = self.runner.plan, self.runner.arrays, message.kind == "train"
        broadcast = self.memory.write_broadcast(message.broadcast)
        if train:
            output = self.memory.allocate("uploads", arrays.upload_row(with_state=True))
        else:
            output = self.memory.allocate("answer", dict(plan.algorithm.answers(message.subject, arrays.sizes)))
        due = train and plan.relabel.due(message.round, plan.train.rounds, before.relabelled)
        return Task(
            message.kind, message.round, message.client, broadcast.handle, output.handle, 0, message=message.own,
            has_state=bool(arrays.client_state) and before.round > 0, relabel=due, subject=message.subject,
        )  # fmt: skip


def client_app(client: Callable[[Mapping[str, Any]], FlowerClient]) -> ClientApp:
    """Return the app of every client.

    `client` is called with the node's configuration at every message, so it should cache what it returns.
    """
    app = ClientApp()

    def answer(message: Message, context: Context) -> Message:
        return client(context.node_config).answer(message, context)

    app.train()(answer)
    app.query("ask")(answer)
    app.query("score")(answer)
    app.query("statistics")(lambda message, context: client(context.node_config).report_statistics(message, context))
    app.query("hello")(lambda message, context: client(context.node_config).hello(message, context))
    return app


def client_of(context: Context) -> int:
    """Return which client a node is: its ``partition-id``."""
    number = context.node_config.get("partition-id")
    if type(number) is not int or number < 0:
        raise ArgumentError(f"expected partition-id=NUMBER, got {number!r}", argument="node-config")
    return number


@dataclass(frozen=True, eq=False)
class PrivateNode:
    """The parts that only a private node has."""

    sha256: str  # of its samples; stored beside its state, so that changed data are detected
    statistics: Callable[[], Arrays]  # what it reports before the first round
    test_labels: NDArray[np.int64]  # of its own test samples, which are the test part of its runner
    reports_confusion: bool = False  # else hits and number of samples


def challenge(nonce: str, client: int, fingerprint: str, node: int) -> bytes:
    """Return what a node signs to prove its identity; useless to another node or in another run."""
    return f"fedrela hello\n{nonce}\n{client}\n{fingerprint}\n{node}".encode()


@dataclass(frozen=True, eq=False)
class StoredState:
    """A client's state after a round."""

    round: int = 0  # 0 before the first
    relabelled: int | None = None  # the round in which it re-labelled last
    labels: NDArray[np.int64] | None = None  # current ones of all its samples; None while they are the original ones
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # what the algorithm keeps
    agreement: float | None = None  # share of the original labels that the model confirmed then; None: unknown


class StateStore:
    """The stored states of one client in one experiment, below the client's own folder."""

    def __init__(self, root: str | Path, experiment: str, client: int) -> None:
        self.path = safe_join(safe_join(root, experiment), f"client-{client}")
        make_folders(self.path)

    def locked(self) -> Any:
        """Hold a lock that excludes other processes of this client."""
        return hold_lock(self.path / "lock")

    def read(self, admitted: int) -> StoredState:
        """Return the state after the last round that counted; `IntegrityError` if it is lost."""
        if admitted == 0:
            return StoredState()
        path = self._path(admitted)
        try:
            data = read_plain(path, LARGEST)
        except OSError:
            what = f"{path}: is missing, though this round counted; restore the client's folder"
            raise IntegrityError(what) from None
        sha256, _, body = data.partition(b"\n")
        if sha256.decode("ascii", "replace") != digest(body):
            raise IntegrityError(f"{path}: does not match its digest; it was changed or damaged")
        read = read_arrays(body, LARGEST)
        relabelled, labels = int(read.pop("relabelled")), read.pop("labels", None)
        agreement = read.pop("agreement", None)
        return StoredState(admitted, relabelled or None, labels, read, None if agreement is None else float(agreement))

    def write(self, state: StoredState) -> None:
        """Write the state after a round; it is on disk when this returns, and only its owner may read it."""
        own = {"labels": state.labels, "agreement": state.agreement, "relabelled": np.int64(state.relabelled or 0)}
        known = {name: np.asarray(value) for name, value in own.items() if value is not None}
        body = array_bytes({**known, **state.arrays})
        write_bytes(self._path(state.round), digest(body).encode() + b"\n" + body, private=True)

    def check_data(self, sha256: str) -> None:
        """Raise if the client's samples are not those that it started with, to which its labels belong."""
        path = self.path / "data.sha256"
        if not path.exists():
            write_bytes(path, sha256.encode(), private=True)
        elif (first := read_plain(path, 128).decode("ascii", "replace")) != sha256:
            what = f"its data changed since it joined ({sha256[:8]}, not {first[:8]}); its labels are of the old data"
            raise IntegrityError(f"{what}; restore the data, or use another experiment name")

    def remove_outdated(self, admitted: int, durable: int) -> None:
        """Remove what can never count again: later states and ledgers, and states before the last durable one."""
        names = [path.name for path in self.path.iterdir()]
        states, ledgers = (
            sorted(int(match[1]) for name in names if (match := kind.fullmatch(name))) for kind in (_STATE, _LEDGER)
        )
        last = max((r for r in states if r <= min(admitted, durable)), default=0)
        outdated = [self._path(r) for r in states if r > admitted or r < last]
        for path in outdated + [self.ledger_path(r) for r in ledgers if r > admitted]:
            remove_if_exists(path)
        remove_temporary(self.path)

    def ledger_path(self, round: int) -> Path:
        """Return the path of the ledger of a re-labelling in a round."""
        return self.path / f"ledger-{round:06}.json"

    def _path(self, round: int) -> Path:
        return self.path / f"round-{round:06}"
