"""What plots and pages read: a run folder, and the folder of a comparison, a sweep or a reproduction."""

from __future__ import annotations

import io
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import DataError, IntegrityError
from fedrela.metrics.groups import Groups
from fedrela.records import RoundRecord, RunManifest
from fedrela.runfolder import RunFolder
from fedrela.runfolder.grids import SUMMARY, GridFolder
from fedrela.runfolder.names import CONFIG, GALLERY, MACHINE, MANIFEST, RELABELLING, RESULT

Record = dict[str, Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
GALLERY_ARRAYS = ("samples", "client", "old", "new", "posterior", "rho")


@dataclass(frozen=True, eq=False)
class RunData:
    """A run, finished or not, read once and checked.

    ``relabelling``, ``result`` and ``gallery`` are None before a run has finished, and where they were not kept.
    """

    status: str  # "done", or where the run stands
    manifest: RunManifest
    classes: list[str]
    groups: Groups
    samples: int  # training samples of all clients
    toml: str
    config: Record  # what `toml` says
    all_rounds: int  # how many there are to be
    enabled: bool  # whether clients re-label
    rounds: list[RoundRecord]  # those finished so far
    timing: list[Record]
    relabelling: Record | None
    result: Record | None
    gallery: dict[str, NDArray[Any]] | None
    machine: Record
    ledgers: dict[int, Path]

    @classmethod
    def read(cls, folder: RunFolder, *, samples: bool = True) -> RunData:
        """Read a folder; one that was changed after its run had finished is an `IntegrityError`."""
        status = folder.status
        if status == "done":
            folder.check()
        manifest, toml = RunManifest.from_record(folder.manifest), folder.read(CONFIG).decode()
        groups, config = manifest.groups, tomllib.loads(toml)
        return cls(
            status, manifest, manifest.classes,
            groups=Groups(tuple(groups["names"]), np.array(groups["of_class"], np.int64), groups["protocol"]),
            samples=int(sum(manifest.data["client_sizes"])), toml=toml, config=config,
            all_rounds=int(config["train"]["rounds"]), enabled=bool(config["relabel"]["enabled"]),
            rounds=[RoundRecord.from_record(record) for record in folder.rounds()], timing=folder.timing(),
            relabelling=_optional(folder, RELABELLING), result=_optional(folder, RESULT),
            gallery=_gallery(folder) if samples else None, machine=_optional(folder, MACHINE) or {},
            ledgers=dict(folder.ledgers()),
        )  # fmt: skip

    @property
    def first(self) -> int:
        """T, the first round of re-labelling: ``start`` where that is a round, else max(1, round(start * R))."""
        start = self.config["relabel"]["start"]
        return start if isinstance(start, int) else max(1, round(start * self.all_rounds))

    @property
    def accuracy(self) -> Mapping[str, Any] | None:
        """Of the final model, or of the last evaluated round; None where there is no test set."""
        if self.result is not None:
            return self.result["accuracy"] or None
        return self.rounds[self.last_scored - 1].accuracy if self.last_scored else None

    @property
    def last_scored(self) -> int:
        """The round that `accuracy` is of."""
        if self.result is not None:
            return int(self.result["rounds"])
        return max((record.round for record in self.rounds if record.accuracy), default=0)

    @property
    def accuracy_before(self) -> Mapping[str, Any] | None:
        """The accuracies of round T - 1, where it was evaluated and rounds came after it."""
        number = self.first - 1
        return self.rounds[number - 1].accuracy if 0 < number < min(len(self.rounds), self.last_scored) else None

    @property
    def recalls_before(self) -> list[float | None] | None:
        """Each class's accuracy of the model that round T began with, None for a class without test samples."""
        if self.accuracy_before is not None:
            return list(self.accuracy_before["per_class"])
        rows = self.confusion_before
        return None if rows is None else [row[c] / sum(row) if any(row) else None for c, row in enumerate(rows)]

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
        """How many labels were changed, over all clients; None where clients keep that to themselves."""
        latest = dict(pair for record in self.rounds for pair in record.relabelled)
        return None if any(record.moved is None for record in self.rounds) else sum(latest.values())

    @property
    def label_moves(self) -> Record:
        """What is known of re-labelling; a run that has not finished, or keeps it private, is a `DataError`."""
        if self.relabelling is None or self.relabelling.get("moved") is None:
            raise DataError("this run says nothing about where labels went")
        return self.relabelling

    @property
    def client_counts(self) -> Ints | None:
        """Training samples of each client by original class, (clients, classes); None before a run has finished."""
        rows, ids = (self.relabelling or {}).get("counts"), range(len(self.classes))
        return rows and np.array([[counts.get(c, 0) for c in ids] for counts in map(dict, rows)], np.int64)

    def moves_of(self, client: int) -> tuple[Ints, Ints]:
        """Return the old and the new labels of the samples that a client re-labelled, from its ledger."""
        place = self.ledgers.get(client)
        moves = {"old": [], "new": []} if place is None else json.loads(place.read_bytes())["moves"]
        return np.array(moves["old"], np.int64), np.array(moves["new"], np.int64)


@dataclass(frozen=True, eq=False)
class GridData:
    """All cells of a comparison, sweep or reproduction, the finished runs among them, and their summary."""

    cells: Sequence[Mapping[str, Any]]
    runs: Sequence[RunData | None]
    summary: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, folder: GridFolder) -> GridData:
        """Read every finished run, and the summary where there is one."""
        found: dict[str, RunData | None] = {}
        for cell in folder.cells:
            if cell["folder"] not in found:  # two cells of one configuration are one run
                done = (folder.place(cell) / RESULT).exists()
                found[cell["folder"]] = RunData.read(folder.run_folder(cell), samples=False) if done else None
        summary = folder.read_json(SUMMARY) if (folder.path / SUMMARY).exists() else None
        return cls(folder.cells, [found[cell["folder"]] for cell in folder.cells], summary)

    @property
    def any(self) -> RunData | None:
        """The first finished run."""
        return next((run for run in self.runs if run is not None), None)

    @property
    def missing(self) -> int:
        """How many runs are not finished."""
        return sum(run is None for run in self.runs)

    def of(self, baseline: str, arm: str) -> list[RunData]:
        """Return the finished runs of a baseline and arm, one per seed."""
        found = zip(self.cells, self.runs, strict=True)
        return [run for cell, run in found if run is not None and (cell["baseline"], cell["arm"]) == (baseline, arm)]


def mean_over_seeds(rows: Any) -> tuple[Floats, Floats]:
    """Return mean and standard deviation over rows of values; NaN where a value is None, or where one row is all."""
    found = np.array(rows, np.float64)
    return found.mean(axis=0), found.std(axis=0, ddof=1) if len(found) > 1 else np.full(found.shape[1], np.nan)


def is_source(source: object) -> bool:
    """Whether something names a folder of ours, or is what was read from one; else it is plain numbers."""
    known = (str, os.PathLike, RunFolder, GridFolder, RunData, GridData)
    return isinstance(source, known) or hasattr(source, "folder")


def open_folder(path: str | Path) -> RunFolder | GridFolder:
    """Open the folder of a run, or of runs that belong together."""
    if GridFolder.is_one(path):
        return GridFolder.open(path)
    if not (Path(path) / MANIFEST).exists():
        raise DataError(f"{path}: no run found; name a folder that has a {MANIFEST} or a grid.json")
    return RunFolder.open(path)


def read_source(source: Any) -> RunData | GridData:
    """Read a run, a comparison, a sweep or a reproduction from its folder, or from an object that has a ``folder``."""
    if isinstance(source, RunData | GridData):
        return source
    folder = source if isinstance(source, RunFolder | GridFolder) else open_folder(getattr(source, "folder", source))
    return RunData.read(folder) if isinstance(folder, RunFolder) else GridData.read(folder)


def read_run(source: Any) -> RunData | None:
    """Read a run, as `read_source` does; None where `source` is plain numbers, a `DataError` where it is many runs."""
    if not is_source(source):
        return None
    found = read_source(source)
    if isinstance(found, GridData):
        raise DataError("this plot is of one run; name one of the folders in runs/")
    return found


def read_summary(source: Any, kind: str) -> Mapping[str, Any] | None:
    """Return the summary, or that of the folder, of a finished ``compare``, ``sweep`` or ``reproduce``.

    None where `source` is plain numbers: neither a folder nor a mapping.
    """
    if is_source(source):
        data = read_source(source)
        source = data.summary if isinstance(data, GridData) else {}
    elif not isinstance(source, Mapping):
        return None
    if not source or source.get("kind") != kind:
        raise DataError(f"expected the summary of a finished {kind}")
    found: Mapping[str, Any] = source
    return found


def _optional(folder: RunFolder, name: str) -> Record | None:
    return folder.read_json(name) if (folder.path / name).exists() else None


def _gallery(folder: RunFolder) -> dict[str, NDArray[Any]] | None:
    if not (folder.path / GALLERY).exists():
        return None
    try:
        with np.load(io.BytesIO(folder.read(GALLERY)), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in GALLERY_ARRAYS}
    except (BadZipFile, KeyError, ValueError):
        raise IntegrityError(f"{folder.path / GALLERY}: is damaged") from None
