"""Frozen records that cross layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import IntegrityError
from fedrela.text import plural, printable

LONGEST_REASON = 60  # characters of the reason why an update was excluded


@dataclass(frozen=True, eq=False)
class Shard:
    """One client's samples, as sorted indices into the training arrays of its data set."""

    client: int  # from 0
    train: NDArray[np.int64]  # what it trains on
    validation: NDArray[np.int64]  # validation samples: original labels, never trained on


@dataclass(frozen=True, eq=False)
class Upload:
    """What one client sends in one round."""

    client: int  # who sent it
    round: int
    samples: int  # n_k, with their original labels: the weight of the client in an average
    arrays: Mapping[str, NDArray[Any]]  # "weights", the shared arrays as one vector, and what the algorithm adds


class FailureKind(StrEnum):
    """Why a client's work in a round did not count."""

    DEADLINE = "deadline"
    WORKER_DIED = "worker died"
    NOT_CONNECTED = "not connected"
    NO_REPLY = "no reply"
    NO_SAMPLES = "no samples"
    NO_STEP = "no step"
    REFUSED = "refused"
    ERROR = "error"
    # Uploads that arrived and are not admitted.
    UNKNOWN_SENDER = "unknown sender"
    NOT_CHOSEN = "sender not chosen"
    WRONG_ROUND = "wrong round"
    WRONG_SAMPLES = "wrong number of samples"
    MALFORMED = "malformed"
    NOT_FINITE = "not finite"
    TOO_LARGE = "values too large"
    SENT_TWICE = "sent twice"
    NORM_TOO_LARGE = "norm too large"

    @property
    def is_transient(self) -> bool:
        """Whether a retry might not fail in the same way, so that a resumed run must know about it."""
        return self in (self.DEADLINE, self.WORKER_DIED, self.NOT_CONNECTED, self.NO_REPLY)


@dataclass(frozen=True)
class Failure:
    """A failed client, or an upload that is not admitted. Decisions depend on `kind`; ``str()`` is for people.

    Examples
    --------
    >>> str(Failure(FailureKind.NO_REPLY, "node unavailable", exchange="losses"))
    'exchange losses: no reply: node unavailable'
    >>> str(Failure(FailureKind.ERROR, "ValueError: bad sample"))
    'ValueError: bad sample'
    >>> str(Failure(FailureKind.NOT_FINITE, "weights"))
    'not finite: weights'
    """

    kind: FailureKind
    detail: str = ""  # an error's message, which array of an upload is bad, what killed a worker
    exchange: str = ""  # name of the exchange in which it happened; empty for training

    def __str__(self) -> str:
        detail_says_all = self.kind in (FailureKind.REFUSED, FailureKind.ERROR, FailureKind.MALFORMED) and self.detail
        parts = [self.exchange and f"exchange {self.exchange}", "" if detail_says_all else self.kind.value, self.detail]
        return ": ".join(filter(None, parts))

    def as_record(self) -> dict[str, str]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Failure:
        """Return the failure of a record; raise `ValueError` or `KeyError` for other keys or an unknown kind."""
        return cls(FailureKind(record["kind"]), str(record["detail"]), str(record["exchange"]))


@dataclass(frozen=True)
class PlainRecord:
    """A record that a run folder stores as plain values."""

    file: ClassVar[str]

    def as_record(self) -> dict[str, Any]:
        """Return plain values in a fixed order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the record of plain values; raise an `IntegrityError` for another format or other keys."""
        same_keys = set(record) == {field.name for field in fields(cls)}
        if not same_keys or record.get("format") != getattr(cls, "format", None):
            raise IntegrityError(f"{cls.file}: was not written by this version of fedrela")
        return cls(**record)


@dataclass(frozen=True)
class RoundRecord(PlainRecord):
    """What happened in one round: a line of ``rounds.jsonl``. Nothing in it depends on time or load."""

    file: ClassVar[str] = "rounds.jsonl"
    round: int  # from 1
    accuracy: dict[str, Any] | None  # of the test set: overall, balanced, groups, per_class, macro_f1; None: not scored
    loss: float | None  # mean cross-entropy on the test set
    chosen: list[int]  # ids of the clients of the round
    admitted: list[int]  # ids of those whose upload counted
    excluded: list[tuple[int | None, str]]  # id (None for an unknown sender) and reason, which is text for people
    moved: int | None  # labels changed in this round; None if clients do not report it
    relabelled: list[tuple[int, int]]  # id and number of changed labels of each client that re-labelled
    skipped: bool  # whether too few clients were left, so that the model is unchanged
    samples: list[int]  # n_k of each admitted client: its weight
    norm_median: float | None  # of the admitted clients' changes
    norm_max: float | None
    validation: dict[str, Any] | None = None  # accuracy on the clients' validation samples, if any
    confusion: list[list[int]] | None = None  # test samples by true and predicted class, when re-labelling begins

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the record of a line; raise an `IntegrityError` for other keys."""
        read = super().from_record(record)
        pairs: dict[str, Any] = {name: [tuple(pair) for pair in record[name]] for name in ("excluded", "relabelled")}
        return replace(read, **pairs)


@dataclass(frozen=True)
class RunManifest(PlainRecord):
    """What a run's result depends on, besides its configuration: ``manifest.json``."""

    file: ClassVar[str] = "manifest.json"
    version: str  # of this package
    config_sha256: str  # of the configuration without [engine]
    data: dict[str, Any]  # digests and counts of the federation
    model: dict[str, Any]  # names, shapes, kinds and dtype of the shared arrays, digest of their first values, scaling
    algorithm: dict[str, Any]  # its name, and what it sends and keeps
    classes: list[str]
    groups: dict[str, Any]  # how classes are reported together
    packages: dict[str, str]  # versions of the packages that compute
    format: str = "fedrela-run-1"
    code: dict[str, str] = field(default_factory=dict)  # digests of the files of the user's own modules that it names

    def as_record(self) -> dict[str, Any]:
        """Return plain values in a fixed order; ``code`` only if there is any."""
        return {key: value for key, value in super().as_record().items() if value or key != "code"}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the record of plain values, perhaps without ``code``; raise an `IntegrityError` for other keys."""
        return super().from_record({**record, "code": record.get("code", {})})


GROUP_PROTOCOLS = ("counts", "fedloge", "fedrela-release")  # of grouping classes: `fedrela.metrics.evaluation_groups`


def first_round(start: float, rounds: int) -> int:
    """Return T, the first round of re-labelling: `start` itself if it is an integer, else that share of all rounds.

    >>> first_round(48, 60), first_round(0.8, 60)
    (48, 48)
    """
    return start if isinstance(start, int) else max(1, round(start * rounds))


def lost_updates(lost: Sequence[tuple[int, int | None, str]], skipped: int) -> str:
    """Return how many updates were excluded, by round, client and reason, and why the last one was; empty if none was.

    >>> lost_updates([(1, 4, "no samples"), (2, 4, "no samples")], 0), lost_updates([], 0)
    ('excluded 2 updates of 1 client, last client 4 in round 2: no samples', '')
    """
    if not lost:
        return ""
    round, client, reason = lost[-1]
    updates, clients = plural(len(lost), "update"), plural(len({of for _, of, _ in lost}), "client")
    rounds = f"; {plural(skipped, 'round')} skipped" if skipped else ""
    who = "an unknown client" if client is None else f"client {client}"
    return f"excluded {updates} of {clients}, last {who} in round {round}: {printable(reason, LONGEST_REASON)}{rounds}"
