"""What travels between server and clients, as Flower's records: an order down, an upload or a reason up.

A reply is only as good as its sender: nothing in it is trusted here, and whatever is wrong with it becomes a reason for
the gate, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from numpy.typing import NDArray

from fedrela.engine.orders import Kind
from fedrela.errors import DataError
from fedrela.records import Upload

ARRAYS, CONFIG, METRICS = "arrays", "config", "metrics"
OWN = "own."  # before the names of arrays that one client alone receives
LONGEST_REASON = 200  # characters of what a client says went wrong


@dataclass(frozen=True, eq=False)
class Task:
    """An order as a client elsewhere receives it.

    Attributes
    ----------
    kind, round, client, subject
        As of an `Order`.
    experiment
        The name that client states are kept under.
    admitted, durable
        The round of the client's last turn that counted, 0 for none; and the last round that the server cannot lose.
    down, message
        What every client receives, and what this one alone does.
    """

    kind: Kind
    round: int
    client: int
    subject: str
    experiment: str
    admitted: int
    durable: int
    down: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    message: Mapping[str, NDArray[Any]] = field(default_factory=dict)


PLAIN = ("kind", "round", "client", "experiment", "admitted", "durable")


def as_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Array]:
    """Return arrays in Flower's form, which several messages may hold at once."""
    return {name: Array(np.asarray(array, order="C")) for name, array in arrays.items()}


def as_content(task: Task, down: Mapping[str, Array] | None = None) -> RecordDict:
    """Return a task as the content of a message; `down` is the task's own in Flower's form, where it is at hand."""
    shared = as_arrays(task.down) if down is None else down
    own = as_arrays({f"{OWN}{name}": array for name, array in task.message.items()})
    subject = {"subject": task.subject} if task.subject else {}  # Flower cannot count the bytes of an empty text
    return RecordDict({
        ARRAYS: ArrayRecord({**shared, **own}),
        CONFIG: ConfigRecord({name: getattr(task, name) for name in PLAIN} | subject),
    })  # fmt: skip


def read_task(content: RecordDict) -> Task:
    """Return the task in a message's content; `DataError` where there is none."""
    try:
        config, record = content.config_records[CONFIG], content.array_records[ARRAYS]
        arrays = {name: array.numpy() for name, array in record.items()}
        plain: dict[str, Any] = {name: config[name] for name in PLAIN} | {"subject": config.get("subject", "")}
    except Exception as error:
        raise DataError(f"message: no task of a fedrela server: {type(error).__name__}: {error}") from None
    down = {name: array for name, array in arrays.items() if not name.startswith(OWN)}
    own = {name.removeprefix(OWN): array for name, array in arrays.items() if name.startswith(OWN)}
    return Task(**plain, down=down, message=own)


def as_reply(upload: Upload) -> RecordDict:
    """Return what a client sends: its arrays, and who, when and how many samples."""
    return RecordDict({
        ARRAYS: ArrayRecord(as_arrays(upload.arrays)),
        METRICS: MetricRecord({"num-examples": upload.samples, "client": upload.client, "round": upload.round}),
    })  # fmt: skip


def as_failure(reason: str) -> RecordDict:
    """Return what a client sends that could not do its task."""
    return RecordDict({CONFIG: ConfigRecord({"failed": reason[:LONGEST_REASON]})})


def read_reply(message: Message) -> Upload | str:
    """Return the upload of a reply, or why there is none; its arrays are decoded when they are looked at."""
    if message.has_error():
        return f"no reply: {str(message.error.reason)[:LONGEST_REASON]}"
    content = message.content
    failed = content.config_records[CONFIG].get("failed") if CONFIG in content.config_records else None
    if failed is not None:
        return str(failed)[:LONGEST_REASON]
    said: Mapping[str, Any] = content.metric_records.get(METRICS, {})
    client, round, samples = (said.get(name) for name in ("client", "round", "num-examples"))
    return Upload(client, round, samples, Decoded(content.array_records.get(ARRAYS, {})))  # type: ignore[arg-type]


class Decoded(Mapping[str, "NDArray[Any]"]):
    """Arrays of a record, each decoded at every look; what cannot be decoded raises then."""

    def __init__(self, record: Mapping[str, Array]) -> None:
        self._record = record

    def __getitem__(self, name: str) -> NDArray[Any]:
        array = self._record[name].numpy()
        if not array.dtype.isnative:
            raise ValueError("foreign byte order")
        return array

    def __contains__(self, name: object) -> bool:
        return name in self._record  # without a look at the array itself

    def __iter__(self) -> Iterator[str]:
        return iter(self._record)

    def __len__(self) -> int:
        return len(self._record)
