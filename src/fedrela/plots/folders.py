"""What plots and pages read: the folder of a run, a comparison, a sweep or a reproduction."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import DataError, IntegrityError
from fedrela.files import read_arrays, read_plain
from fedrela.metrics.groups import Groups
from fedrela.records import RoundRecord, RunManifest, first_round
from fedrela.runfolder import RunFolder, RunStatus
from fedrela.runfolder.grids import SUMMARY, GridFolder
from fedrela.runfolder.names import CONFIG, GALLERY, LIMIT, MACHINE, MANIFEST, RELABELLING, RESULT

Record = dict[str, Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
GALLERY_ARRAYS = ("samples", "client", "old", "new", "posterior", "rho")


def lost_model(folder: RunFolder) -> str:
    """Return why the final model of a finished run is lost; empty if it is not."""
    try:
        folder.final_checkpoint()
    except IntegrityError as error:
        return error.reason
    return ""


class RunData:
    """A run, finished or not, read once; raises `IntegrityError` if its folder was changed after it finished.

    ``relabelling``, ``result``, ``gallery`` and ``drawn`` are None before a run has finished, and if they were not
    stored.
    """

    def __init__(self, folder: RunFolder, *, samples: bool = True) -> None:
        self.status = folder.status
        if self.status is RunStatus.DONE:
            folder.check()
        self.manifest = RunManifest.from_record(folder.manifest)
        self.classes, of = self.manifest.classes, self.manifest.groups
        self.groups = Groups(tuple(of["names"]), np.array(of["of_class"], np.int64), of["protocol"])
        self.samples = int(sum(self.manifest.data["client_sizes"]))  # training samples of all clients
        self.toml = folder.read(CONFIG).decode()
        self.config = tomllib.loads(self.toml)
        self.all_rounds = int(self.config["train"]["rounds"])  # how many are planned
        self.enabled = bool(self.config["relabel"]["enabled"])  # whether clients re-label
        self.rounds = [RoundRecord.from_record(record) for record in folder.rounds()]  # those finished so far
        self.timing = folder.timing()
        self.relabelling = _optional(folder, RELABELLING)
        self.result = _optional(folder, RESULT)
        self.gallery = _gallery(folder) if samples else None  # the most probable moves
        self.drawn = _gallery(folder, "drawn_") if samples else None  # moves drawn at random
        self.machine = _optional(folder, MACHINE) or {}
        self.ledgers = dict(folder.ledgers())
        self.lost = lost_model(folder) if self.status is RunStatus.DONE else ""

    @property
    def method(self) -> str:
        """The name of the re-allocator."""
        return str(self.config["relabel"].get("method", "fedrela"))

    @property
    def first(self) -> int:
        """T, the first round of re-labelling."""
        return first_round(self.config["relabel"]["start"], self.all_rounds)

    @property
    def accuracy(self) -> Mapping[str, Any] | None:
        """Accuracy of the final model, or of the last evaluated round; None without a test set."""
        if self.result is not None:
            return self.result["accuracy"] or None
        return self.rounds[self.last_scored - 1].accuracy if self.last_scored else None

    @property
    def last_scored(self) -> int:
        """The round that `accuracy` refers to."""
        if self.result is not None:
            return int(self.result["rounds"])
        return max((record.round for record in self.rounds if record.accuracy), default=0)

    @property
    def accuracy_before(self) -> Mapping[str, Any] | None:
        """The accuracies of round T - 1, if it was evaluated and rounds came after it."""
        number = self.first - 1
        return self.rounds[number - 1].accuracy if 0 < number < min(len(self.rounds), self.last_scored) else None

    @property
    def recalls_before(self) -> list[float | None] | None:
        """Each class's accuracy of the model that round T started from, None for a class without test samples."""
        if self.accuracy_before is not None:
            return list(self.accuracy_before["per_class"])
        rows = self.confusion_before
        return None if rows is None else [row[c] / sum(row) if any(row) else None for c, row in enumerate(rows)]

    @property
    def confusion_before(self) -> list[list[int]] | None:
        """Confusion matrix of the model that round T started from, if the run got that far."""
        return next((record.confusion for record in self.rounds if record.confusion is not None), None)

    @property
    def headline(self) -> str:
        """The accuracy to name first."""
        return "overall" if self.result is None else str(self.result["headline"])

    @property
    def moved(self) -> int | None:
        """How many labels were changed, over all clients; None if clients do not report it."""
        latest = dict(pair for record in self.rounds for pair in record.relabelled)
        return None if any(record.moved is None for record in self.rounds) else sum(latest.values())

    @property
    def label_moves(self) -> Record:
        """The record of re-labelling; raises a `DataError` if the run is unfinished or keeps it private."""
        if self.relabelling is None or self.relabelling.get("moved") is None:
            raise DataError("this run has no record of moved labels")
        return self.relabelling

    @property
    def bound(self) -> int | None:
        """The most labels that can move into one class; None if the threshold chosen sets no limit."""
        is_set = self.config["relabel"].get("threshold") in (None, "higher", "order")
        return int(self.label_moves["bound"]) if is_set else None

    @property
    def client_counts(self) -> Ints | None:
        """Training samples of each client by original class, (clients, classes); None if unknown."""
        rows, ids = (self.relabelling or {}).get("counts"), range(len(self.classes))
        return None if not rows else np.array([[counts.get(c, 0) for c in ids] for counts in map(dict, rows)], np.int64)

    def moves_of(self, client: int) -> tuple[Ints, Ints]:
        """Return the old and the new labels of the samples that a client re-labelled, from its ledger."""
        place = self.ledgers.get(client)
        if place is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        try:
            moves = json.loads(read_plain(place, LIMIT))["moves"]
            return np.array(moves["old"], np.int64), np.array(moves["new"], np.int64)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise IntegrityError(f"{place}: not a sound ledger") from None


@dataclass(frozen=True, eq=False)
class GridData:
    """All cells of a comparison, sweep or reproduction, the finished runs among them, and their summary."""

    cells: Sequence[Mapping[str, Any]]
    runs: Sequence[RunData | None]
    summary: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, folder: GridFolder) -> GridData:
        """Read every finished run, and the summary if there is one."""
        found: dict[str, RunData | None] = {}
        for cell in folder.cells:
            if cell["folder"] not in found:  # two cells of one configuration are one run
                done = (folder.place(cell) / RESULT).exists()
                found[cell["folder"]] = RunData(folder.run_folder(cell), samples=False) if done else None
        summary = folder.read_json(SUMMARY) if (folder.path / SUMMARY).exists() else None
        return cls(folder.cells, [found[cell["folder"]] for cell in folder.cells], summary)

    @property
    def any(self) -> RunData | None:
        """The first finished run."""
        return next((run for run in self.runs if run is not None), None)

    def of(self, baseline: str, arm: str) -> list[RunData]:
        """Return the finished runs of a baseline and arm, one per seed."""
        found = zip(self.cells, self.runs, strict=True)
        return [run for cell, run in found if run is not None and (cell["baseline"], cell["arm"]) == (baseline, arm)]


def mean_over_seeds(rows: Any) -> tuple[Floats, Floats]:
    """Return mean and standard deviation over rows of values; NaN if a value is None, or if there is only one row."""
    found = np.array(rows, np.float64)
    return found.mean(axis=0), found.std(axis=0, ddof=1) if len(found) > 1 else np.full(found.shape[1], np.nan)


def open_folder(path: str | Path) -> RunFolder | GridFolder:
    """Open the folder of a run, or of a grid of runs."""
    if GridFolder.is_one(path):
        return GridFolder.open(path)
    if not (Path(path) / MANIFEST).exists():
        raise DataError(f"{path}: no run found; name a folder that has a {MANIFEST} or a grid.json")
    return RunFolder.open(path)


def read_source(source: Any) -> RunData | GridData | None:
    """Read a run, a comparison, a sweep or a reproduction from its folder, or from an object that has a ``folder``.

    None if `source` is plain numbers.
    """
    if isinstance(source, RunData | GridData):
        return source
    folder = getattr(source, "folder", source)
    if isinstance(folder, str | os.PathLike):
        folder = open_folder(Path(folder))
    if isinstance(folder, RunFolder):
        return RunData(folder)
    return GridData.read(folder) if isinstance(folder, GridFolder) else None


def read_run(source: Any) -> RunData | None:
    """Read a run, as `read_source` does; raise a `DataError` for a folder of several runs."""
    found = read_source(source)
    if isinstance(found, GridData):
        raise DataError("this plot shows one run; name one of the folders in runs/")
    return found


def read_summary(source: Any, kind: str) -> Mapping[str, Any] | None:
    """Return the summary of a finished ``compare``, ``sweep`` or ``reproduce``, given as it is or by its folder.

    None if `source` is plain numbers: neither a folder nor a mapping.
    """
    data = read_source(source)
    summary = data.summary if isinstance(data, GridData) else source if data is None else {}
    if not isinstance(summary, Mapping | None):
        return None
    if not summary or summary.get("kind") != kind:
        raise DataError(f"expected the summary of a finished {kind}")
    return summary


def _optional(folder: RunFolder, name: str) -> Record | None:
    return folder.read_json(name) if (folder.path / name).exists() else None


def _gallery(folder: RunFolder, prefix: str = "") -> dict[str, NDArray[Any]] | None:
    if not (folder.path / GALLERY).exists():
        return None
    try:
        arrays = read_arrays(folder.read(GALLERY), LIMIT)
        known = not prefix or f"{prefix}old" in arrays  # earlier versions have none
        return {name: arrays[prefix + name] for name in GALLERY_ARRAYS} if known else None
    except (KeyError, ValueError):
        raise IntegrityError(f"{folder.path / GALLERY}: is damaged") from None
