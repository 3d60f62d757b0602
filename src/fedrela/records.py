"""Frozen records that cross layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
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
        Pairs of id (None for an unknown sender) and reason.
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
