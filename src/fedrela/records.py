"""Frozen records that cross layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import IntegrityError


@dataclass(frozen=True, eq=False)
class Shard:
    """One client's samples, as sorted indices into the training arrays of its data set.

    Attributes
    ----------
    client
        Number of the client, from 0.
    train
        What it trains on.
    validation
        What it holds back, with the original labels, and never trains on.
    """

    client: int
    train: NDArray[np.int64]
    validation: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Upload:
    """What one client sends in one round.

    Attributes
    ----------
    client, round
        Who sent it, and in which round.
    samples
        Number of samples with their original labels, n_k: the weight of the client in an average.
    arrays
        ``"weights"``, the shared arrays after training as one vector, and what else the algorithm declares.
    """

    client: int
    round: int
    samples: int
    arrays: Mapping[str, NDArray[Any]]


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

    @property
    def is_transient(self) -> bool:
        """Whether a second try might not meet it again, so that a resumed run must be told of it."""
        return self in (self.DEADLINE, self.WORKER_DIED, self.NOT_CONNECTED, self.NO_REPLY)


@dataclass(frozen=True)
class Failure:
    """A failed client. `kind` is what decisions are made by, and ``str()`` is for people.

    Attributes
    ----------
    kind
        What went wrong.
    detail
        More about it in words: an error's message, why an upload was refused, what ended a worker.
    exchange
        Name of the exchange in which it happened; empty for training.

    Examples
    --------
    >>> str(Failure(FailureKind.NO_REPLY, "node unavailable", exchange="losses"))
    'exchange losses: no reply: node unavailable'
    >>> str(Failure(FailureKind.ERROR, "ValueError: bad sample"))
    'ValueError: bad sample'
    """

    kind: FailureKind
    detail: str = ""
    exchange: str = ""

    def __str__(self) -> str:
        own = self.kind in (FailureKind.REFUSED, FailureKind.ERROR) and self.detail
        parts = [self.exchange and f"exchange {self.exchange}", "" if own else self.kind.value, self.detail]
        return ": ".join(filter(None, parts))

    def as_record(self) -> dict[str, str]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Failure:
        """Return the failure of a record; one with other keys or an unknown kind is a `ValueError` or `KeyError`."""
        return cls(FailureKind(record["kind"]), str(record["detail"]), str(record["exchange"]))


@dataclass(frozen=True)
class RoundRecord:
    """What happened in one round: a line of ``rounds.jsonl``. Nothing in it depends on time or on the machine's load.

    Attributes
    ----------
    round
        From 1.
    accuracy, loss
        On the test set: overall, balanced, groups, per_class, macro_f1, and the mean cross-entropy; None in a round
        that is not scored.
    chosen, admitted
        Ids of the clients of the round, and of those whose upload counted.
    excluded
        Pairs of id (None for an unknown sender) and reason, which is text for people.
    moved, relabelled
        Labels changed in this round, None where clients keep that to themselves; and pairs of id and number for each
        client that re-labelled.
    skipped
        Whether too few clients were left, so that the model is the one before.
    samples
        n_k of each admitted client: its weight.
    norm_median, norm_max
        Of the admitted clients' changes.
    validation
        Accuracy on what clients hold back, where they do.
    confusion
        Of the model that the first round of re-labelling began with, test samples by true and predicted class; None in
        every other round.
    """

    round: int
    accuracy: dict[str, Any] | None
    loss: float | None
    chosen: list[int]
    admitted: list[int]
    excluded: list[tuple[int | None, str]]
    moved: int | None
    relabelled: list[tuple[int, int]]
    skipped: bool
    samples: list[int]
    norm_median: float | None
    norm_max: float | None
    validation: dict[str, Any] | None = None
    confusion: list[list[int]] | None = None

    def as_record(self) -> dict[str, Any]:
        """Return plain values in a fixed order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> RoundRecord:
        """Return the record of a line; one with other keys is an `IntegrityError`."""
        if set(record) != {field.name for field in fields(cls)}:
            raise IntegrityError("rounds.jsonl: is not of a run of this version of fedrela")
        pairs = {name: [tuple(pair) for pair in record[name]] for name in ("excluded", "relabelled")}
        return cls(**{**record, **pairs})


@dataclass(frozen=True)
class RunManifest:
    """What a run's result depends on, beside the text of its configuration: ``manifest.json``.

    Attributes
    ----------
    version, packages
        Of this package, and of those that compute.
    config_sha256
        Digest of the configuration without ``[engine]``.
    data
        Digests and counts of the federation.
    model
        Names, shapes and kinds of the shared arrays, their dtype, the digest of their first values, the scaling.
    algorithm
        Its name, and what it sends and keeps.
    classes, groups
        Names of the classes, and how they are reported together.
    """

    version: str
    config_sha256: str
    data: dict[str, Any]
    model: dict[str, Any]
    algorithm: dict[str, Any]
    classes: list[str]
    groups: dict[str, Any]
    packages: dict[str, str]
    format: str = "fedrela-run-1"

    def as_record(self) -> dict[str, Any]:
        """Return plain values in a fixed order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> RunManifest:
        """Return the manifest of a record; one of another format or with other keys is an `IntegrityError`."""
        names = {field.name for field in fields(cls)}
        if set(record) != names or record["format"] != "fedrela-run-1":
            raise IntegrityError("manifest.json: is not of a run of this version of fedrela")
        return cls(**record)
