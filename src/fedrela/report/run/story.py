"""Everything a run folder says, read once and checked, for the sections of its page."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import IntegrityError
from fedrela.metrics.groups import Groups
from fedrela.records import RoundRecord, RunManifest
from fedrela.runfolder import RunFolder
from fedrela.runfolder.records import GALLERY, MACHINE, RELABELLING, RESULT

Record = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Story:
    """A run, finished or not.

    Attributes
    ----------
    status
        ``done``, or where the run stands.
    manifest, config, toml
        What was to be run; the configuration as values and as its text.
    rounds, timing
        One record a round that was done.
    relabelling, result, gallery
        What is there once a run has finished; None before, and where it was not kept.
    machine
        Facts of the machine.
    """

    status: str
    manifest: RunManifest
    config: Record
    toml: str
    rounds: list[RoundRecord]
    timing: list[Record]
    relabelling: Record | None
    result: Record | None
    gallery: dict[str, NDArray[Any]] | None
    machine: Record

    @classmethod
    def read(cls, folder: RunFolder, *, samples: bool = True) -> Story:
        """Read a folder; one that was changed after its run had finished is an `IntegrityError`."""
        status = folder.status
        if status == "done":
            folder.check()
        toml = folder.read("config.toml").decode()
        return cls(
            status=status,
            manifest=RunManifest.from_record(folder.manifest),
            config=tomllib.loads(toml),
            toml=toml,
            rounds=[RoundRecord.from_record(record) for record in folder.rounds()],
            timing=folder.timing(),
            relabelling=_optional(folder, RELABELLING),
            result=_optional(folder, RESULT),
            gallery=_gallery(folder) if samples else None,
            machine=_optional(folder, MACHINE) or {},
        )

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return self.manifest.classes

    @property
    def groups(self) -> Groups:
        """How classes are reported together."""
        record = self.manifest.groups
        return Groups(tuple(record["names"]), np.array(record["of_class"], np.int64), record["protocol"])

    @property
    def all_rounds(self) -> int:
        """How many rounds there are to be."""
        return int(self.config["train"]["rounds"])

    @property
    def enabled(self) -> bool:
        """Whether clients re-label."""
        return bool(self.config["relabel"]["enabled"])

    @property
    def first(self) -> int:
        """T, the first round of re-labelling: ``start`` where that is a round, else max(1, round(start * R))."""
        start = self.config["relabel"]["start"]
        return start if isinstance(start, int) else max(1, round(start * self.all_rounds))

    @property
    def accuracy(self) -> Mapping[str, Any] | None:
        """Of the final model, or of the last round that was scored; None where there is no test set."""
        if self.result is not None:
            return self.result["accuracy"] or None
        return next((record.accuracy for record in reversed(self.rounds) if record.accuracy), None)

    @property
    def last_scored(self) -> int:
        """The round that `accuracy` is of."""
        if self.result is not None:
            return int(self.result["rounds"])
        return next((record.round for record in reversed(self.rounds) if record.accuracy), 0)

    @property
    def confusion_before(self) -> list[list[int]] | None:
        """Of the model that round T began with, where the run got that far."""
        return next((record.confusion for record in self.rounds if record.confusion is not None), None)

    @property
    def headline(self) -> str:
        """The accuracy to name first."""
        return "overall" if self.result is None else str(self.result["headline"])

    @property
    def moved(self) -> int | None:
        """Labels that are other ones now, over all clients; None where clients keep that to themselves."""
        if any(record.moved is None for record in self.rounds):
            return None
        latest = dict(pair for record in self.rounds for pair in record.relabelled)
        return sum(latest.values())

    @property
    def samples(self) -> int:
        """Training samples of all clients."""
        return int(sum(self.manifest.data["client_sizes"]))


def _optional(folder: RunFolder, name: str) -> Record | None:
    return folder.read_json(name) if (folder.path / name).exists() else None


def _gallery(folder: RunFolder) -> dict[str, NDArray[Any]] | None:
    if not (folder.path / GALLERY).exists():
        return None
    try:
        with np.load(io.BytesIO(folder.read(GALLERY)), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in ("samples", "client", "old", "new", "posterior", "rho")}
    except (BadZipFile, KeyError, ValueError):
        raise IntegrityError(f"{folder.path / GALLERY}: is damaged") from None
