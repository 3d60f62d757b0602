"""Messages between server and clients, as Flower's records: a task to a client, an upload or a failure back.

Nothing in a reply is trusted here: an error in it becomes a failure, or is left to admission, but never an exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from numpy.typing import NDArray

from fedrela.engine.tasks import TaskKind
from fedrela.errors import DataError
from fedrela.records import Failure, FailureKind, Upload

ARRAYS, CONFIG, METRICS = "arrays", "config", "metrics"
OWN, AGREED = "own.", "agreed."  # prefixes of arrays that only one client receives, and of statistics
LONGEST_REASON = 200  # characters of a client's error message


@dataclass(frozen=True, eq=False)
class TaskMessage:
    """A task as a remote client receives it; see `fedrela.engine.tasks.Task`."""

    kind: TaskKind
    round: int
    client: int
    subject: str
    experiment: str  # the name under which client states are stored
    admitted: int  # the last round in which the client was admitted, 0 for none
    durable: int  # the last round that the server cannot lose
    broadcast: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    own: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # what this client alone receives
    agreed: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # statistics of all nodes, by which inputs scale


PLAIN = ("kind", "round", "client", "experiment", "admitted", "durable")


def as_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Array]:
    """Return arrays in Flower's form, which several messages may hold at once."""
    return {name: Array(np.asarray(array, order="C")) for name, array in arrays.items()}


def as_content(task: TaskMessage, broadcast: Mapping[str, Array] | None = None) -> RecordDict:
    """Return a task as the content of a message; `broadcast` is the task's own in Flower's form, if available."""
    shared = as_arrays(task.broadcast) if broadcast is None else broadcast
    own = as_arrays({f"{OWN}{name}": array for name, array in task.own.items()})
    own |= as_arrays({f"{AGREED}{name}": array for name, array in task.agreed.items()})
    subject = {"subject": task.subject} if task.subject else {}  # Flower cannot count the bytes of an empty string
    return RecordDict({
        ARRAYS: ArrayRecord({**shared, **own}),
        CONFIG: ConfigRecord({name: getattr(task, name) for name in PLAIN} | subject),
    })  # fmt: skip


def read_task(content: RecordDict) -> TaskMessage:
    """Return the task in a message's content; raise a `DataError` if there is none."""
    try:
        config, record = content.config_records[CONFIG], content.array_records[ARRAYS]
        arrays = {name: array.numpy() for name, array in record.items()}
        plain: dict[str, Any] = {name: config[name] for name in PLAIN} | {"subject": config.get("subject", "")}
    except Exception as error:
        raise DataError(f"message: no task of a fedrela server: {type(error).__name__}: {error}") from None
    broadcast = {name: array for name, array in arrays.items() if not name.startswith((OWN, AGREED))}
    own, agreed = (
        {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        for prefix in (OWN, AGREED)
    )
    return TaskMessage(**plain, broadcast=broadcast, own=own, agreed=agreed)


def as_reply(upload: Upload) -> RecordDict:
    """Return a client's reply: its arrays, its id, the round, and its number of samples."""
    return RecordDict({
        ARRAYS: ArrayRecord(as_arrays(upload.arrays)),
        METRICS: MetricRecord({"num-examples": upload.samples, "client": upload.client, "round": upload.round}),
    })  # fmt: skip


def as_failure(failure: Failure) -> RecordDict:
    """Return the reply of a client that could not do its task."""
    record = ConfigRecord({"failed": failure.kind.value})
    if failure.detail:
        record["detail"] = failure.detail[:LONGEST_REASON]
    return RecordDict({CONFIG: record})


def read_reply(message: Message) -> Upload | Failure:
    """Return the upload of a reply, or why there is none; its arrays are decoded on access."""
    if message.has_error():
        return Failure(FailureKind.NO_REPLY, str(message.error.reason)[:LONGEST_REASON])
    content = message.content
    config: Mapping[str, Any] = content.config_records.get(CONFIG, {})
    if "failed" in config:
        if config["failed"] in (FailureKind.NO_STEP, FailureKind.NO_SAMPLES):
            return Failure(FailureKind(config["failed"]))
        return Failure(FailureKind.ERROR, str(config.get("detail", "no reason given"))[:LONGEST_REASON])
    metrics: Mapping[str, Any] = content.metric_records.get(METRICS, {})
    client, round, samples = (metrics.get(name) for name in ("client", "round", "num-examples"))
    # The values may be of any type: admission checks them.
    return Upload(client, round, samples, Decoded(content.array_records.get(ARRAYS, {})))  # type: ignore[arg-type]


def as_declared(arrays: Mapping[str, Any], specs: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, Any]:
    """Return the arrays that have a declared name, shape and kind and are finite; anything else is left out."""
    read = {}
    for name, (shape, kind) in specs.items():
        try:
            array = np.asarray(arrays[name])
        except Exception:  # missing, or malformed in any way
            continue
        if array.shape == shape and array.dtype.kind == kind and np.isfinite(array).all():
            read[name] = array
    return read


class Decoded(Mapping[str, "NDArray[Any]"]):
    """Arrays of a record, each decoded at every access, which raises if it cannot be decoded."""

    def __init__(self, record: Mapping[str, Array]) -> None:
        self._record = record

    def __getitem__(self, name: str) -> NDArray[Any]:
        array = self._record[name].numpy()
        if not array.dtype.isnative:
            raise ValueError("foreign byte order")
        return array

    def __contains__(self, name: object) -> bool:
        return name in self._record  # without decoding the array

    def __iter__(self) -> Iterator[str]:
        return iter(self._record)

    def __len__(self) -> int:
        return len(self._record)
