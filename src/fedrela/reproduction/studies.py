"""Studies: results that are stored with the code, one record per run, and a check that repeats some of the runs.

A study is a folder with ``study.toml``, the configuration of a comparison or a sweep, or the name of a table of the
paper, and ``summary.json``, which has one record per finished run. The run folders are elsewhere, in a store, and may
be lost: a recorded run is not repeated.

The key ``selection`` of a study names another one beside it, a sweep of baselines alone: each baseline then takes the
values that did best there on the clients' validation samples. Where one baseline chooses for all, keys that another
one sets itself stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from fedrela.arguments import check_choice
from fedrela.engine.executors import Executor
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.experiment.comparison import Compare
from fedrela.experiment.grid import Cell, Grid, Progress, source_of
from fedrela.experiment.load import parse_config
from fedrela.experiment.overlay import nested, overlay
from fedrela.experiment.sweeps import SweepPlan
from fedrela.experiment.toml.reader import parse_toml, read_text
from fedrela.experiment.toml.writer import leaves
from fedrela.files import digest, read_plain, wait_for_lock, write_bytes
from fedrela.reproduction.entries import matching
from fedrela.reproduction.measurement import Reproduction
from fedrela.reproduction.paper_table import paper_table
from fedrela.reproduction.study_records import check_records, run_record
from fedrela.runfolder.json_records import Record
from fedrela.text import listed, plural

STUDY, SUMMARY, QUEUE, FORMAT = "study.toml", "summary.json", "queue.toml", "fedrela-study-1"
LIMIT = 1 << 24  # bytes of any of these
NOT_OF_A_RUN = (  # tables and keys that no single run depends on
    "compare", "sweep", "selection", "engine", "report", "protocol", "seeds", "every",
)  # fmt: skip
TABLE_KEYS = ("reproduce", "scale", "protocol", "seeds", "every")  # of a study that is a table of the paper


@dataclass(frozen=True)
class Queued:
    """A study of the queue: its folder, its question, and about how many minutes of one core it takes.

    With `seeds` only the first seeds are run at this point of the queue; the others come later.
    """

    folder: Path
    title: str = ""
    minutes: float = 0
    page: str = ""  # of docs/results
    short: str = ""  # a title for pictures
    seeds: int | None = None


def read_queue(folder: str | Path) -> list[Queued]:
    """Return the studies below a folder, in the order in which they are to be run: ``queue.toml`` lists them."""
    place = Path(folder) / QUEUE
    if not place.is_file():
        raise DataError(f"{place}: is missing; expected a study with {STUDY}, or a folder of studies with {QUEUE}")
    table, _ = parse_toml(read_text(place), str(place))
    try:
        queued = [Queued(place.parent / each.pop("name"), **each) for each in table["study"]]
    except (KeyError, TypeError, AttributeError):
        queued = []
    if not queued or not all(isinstance(q.minutes, int | float) and isinstance(q.seeds, int | None) for q in queued):
        raise ArgumentError(f"{place}: expected tables [[study]] with name, title, page, minutes and seeds")
    return queued


class Study:
    """A study to be run or checked; its run folders are below `store`, which studies may share."""

    def __init__(self, folder: str | Path, store: str | Path = "runs/results") -> None:
        self.folder, self.store = Path(folder), Path(store)
        if not (self.folder / STUDY).is_file():
            raise DataError(f"{self.folder / STUDY}: is missing; expected the folder of a study")
        self.name = self.folder.resolve().name
        self._asked_by: tuple[Path, ...] = ()  # the studies whose values it selects

    @cached_property
    def _runs(self) -> dict[str, Cell]:
        """Every run by its address, those of the first seed first."""
        name, where = str(self.folder / STUDY), self.store / self.name
        text = read_text(self.folder / STUDY)
        table, _ = parse_toml(text, name)
        labels: dict[str, Any] = {}
        own: dict[str, set[str]] = {}  # the keys that each baseline sets itself
        if "reproduce" in table:
            cells = _table_plan(table, name, where).grid.cells
            table = {**table, "sha256": paper_table(table["reproduce"]).sha256}
        else:
            config = parse_config(text, name=name, folder=self.folder, ignore=["selection"])
            cells = (SweepPlan if config.sweep else Compare)(config, where).grid.cells
            named = (config.compare.baselines if config.compare else None) or ()
            labels = {each.label: table["compare"]["baselines"][i] for i, each in enumerate(named)}
            own = {each.label: {key for key, _ in leaves(each.changes())} for each in named}
        chosen = self._selection(str(table["selection"])).choice() if "selection" in table else {}
        shared = {key: value for key, value in table.items() if key not in NOT_OF_A_RUN}
        seeds, found = list(dict.fromkeys(cell.seed for cell in cells)), {}
        for cell in sorted(cells, key=lambda cell: seeds.index(cell.seed)):
            if len(chosen) > 1 and cell.baseline not in chosen:
                raise DataError(f"{name}: {cell.baseline}: is not among the baselines of {table['selection']}")
            changes = chosen.get(cell.baseline)
            if changes is None:
                first = next(iter(chosen.values()), {})
                changes = {key: value for key, value in first.items() if key not in own.get(cell.baseline, ())}
            said = {"study": shared, "baseline": labels.get(cell.baseline, cell.baseline), "chosen": changes}
            key = digest(json.dumps(_place(cell) | said, sort_keys=True).encode())
            found[key] = replace(cell, config=overlay(cell.config, nested(changes))) if changes else cell
        return found

    def _selection(self, name: str) -> Study:
        """Return the study that selects values for this one."""
        place, what = self.folder.resolve(), f"{self.folder / STUDY}: selection"
        if not (place.parent / name / STUDY).is_file():
            raise ArgumentError(f"{what}: expected the name of a study beside it, got {name!r}")
        other = Study(place.parent / name)
        other._asked_by = (*self._asked_by, place)
        if other.folder.resolve() in other._asked_by:
            raise ArgumentError(f"{what}: {name} waits for this study's own runs; expected another one")
        return other

    @property
    def cells(self) -> list[Cell]:
        """Every run, those of the first seed first."""
        return list(self._runs.values())

    @cached_property
    def records(self) -> dict[str, Record]:
        """The records of the study's runs, by their address.

        The address of a run is the digest of what ``study.toml`` says of it, without defaults: a new key with a default
        changes the digest of every configuration, but no result.
        """
        found = {record["address"]: record for record in self.summary()["cells"]} if self._written else {}
        return {key: record for key, record in found.items() if key in self._runs}

    @property
    def strays(self) -> int:
        """How many records in ``summary.json`` belong to runs that ``study.toml`` no longer has; `write` drops them."""
        return len(self.summary()["cells"]) - len(self.records) if self._written else 0

    @property
    def _written(self) -> bool:
        return (self.folder / SUMMARY).is_file()

    def summary(self) -> Record:
        """Return all of ``summary.json``."""
        place = self.folder / SUMMARY
        if not self._written:
            raise DataError(f"{place}: is missing; fedrela results run {self.folder} writes it")
        try:
            summary: Record = json.loads(read_plain(place, LIMIT), parse_constant=_refuse)
        except ValueError:
            raise IntegrityError("is not JSON; restore it, or remove it and run the study again", path=place) from None
        if not isinstance(summary, dict) or summary.get("format") != FORMAT:
            raise IntegrityError(f"{place}: was written by another version of fedrela")
        return {**summary, "cells": check_records(place, summary.get("cells"))}

    def choice(self) -> dict[str, Record]:
        """Return for each baseline the swept values with the best accuracy on validation samples, over all seeds.

        It is balanced accuracy, of the arm ``baseline`` alone; ties go to the first.
        """
        if left := len(self.remaining()):
            raise DataError(f"{self.folder}: nothing is chosen yet; {plural(left, 'run')} left")
        found: dict[str, dict[str, list[tuple[Cell, Record]]]] = {}
        for cell, record in self.recorded():
            if cell.arm == "baseline":
                if "validation" not in record:
                    raise DataError(f"{self.folder}: nothing can be chosen: data.validation is 0")
                found.setdefault(cell.baseline, {}).setdefault(repr(cell.values), []).append((cell, record))
        best = {label: max(points.values(), key=_validation) for label, points in found.items()}
        return {label: dict(runs[0][0].values) for label, runs in best.items()}

    def remaining(self) -> list[Cell]:
        """Return the runs that are not recorded."""
        return [cell for key, cell in self._runs.items() if key not in self.records]

    def recorded(self) -> list[tuple[Cell, Record]]:
        """Return the runs that are recorded, with their records."""
        return [(cell, self.records[key]) for key, cell in self._runs.items() if key in self.records]

    def grids(self, seeds: int | None = None, only: str = "") -> Iterator[Grid]:
        """Yield what is to be run as grids, one for each of the first `seeds`, whose run folders share the store.

        `only` says which runs, by baseline, arm, seed and swept values; see `fedrela.reproduction.entries.matching`.
        """
        asked = zip(self._runs, matching(only, [_texts(cell) for cell in self.cells]), strict=True)
        left = [self._runs[key] for key, is_asked in asked if is_asked and key not in self.records]
        for seed in list(dict.fromkeys(cell.seed for cell in self.cells))[:seeds]:
            cells = [cell for cell in left if cell.seed == seed]
            if not cells:
                continue
            base = digest(self.name.encode())
            facts = {"kind": "study", "base": base, "config": read_text(self.folder / STUDY)}
            yield Grid(self.store / self.name, cells, name=self.name, shared=True, **facts)

    def run(self, grid: Grid, executor: Executor) -> Iterator[Progress]:
        """Run a grid, and record each run when it ends: its folder is complete before the next task begins."""
        before = None
        for progress in grid.run(executor):
            if progress.task is not before:
                self.record(grid)
            before = progress.task
            yield progress
        self.record(grid)

    def record(self, grid: Grid) -> None:
        """Write the record of every run of a grid that is finished."""
        for key, cell in self._runs.items():
            if key not in self.records and any(cell is each for each in grid.cells) and grid.is_done(cell):
                record = run_record(grid.result(cell))
                self._check_inputs(cell, record)
                self.records[key] = record
        self.write()

    def _check_inputs(self, cell: Cell, new: Record) -> None:
        """Raise if a run had other data, or other code of the user's, than a recorded one."""
        for other, record in self.recorded():
            changed = [
                f"your own code in {module}"
                for module, sha256 in record.get("code", {}).items()
                if new.get("code", {}).get(module, sha256) != sha256
            ]
            same_source = source_of(other.config) == source_of(cell.config)
            if same_source and record.get("data_sha256", new["data_sha256"]) != new["data_sha256"]:
                changed.append("the data")
            if changed:
                what = f"{self.folder}: {cell.name}: {listed(changed)} changed since other runs were recorded"
                raise IntegrityError(f"{what}; restore what was, or remove {SUMMARY} and run the study again")

    def write(self) -> None:
        """Write ``summary.json``, one line per run, in the order of the study, unless it is up to date.

        Records that another process has written since are kept.
        """
        if self._written and read_plain(self.folder / SUMMARY, LIMIT) == self._bytes():
            return
        with wait_for_lock(self.folder / STUDY):
            if self._written:
                since = {record["address"]: record for record in self.summary()["cells"]}
                self.records.update({key: since[key] for key in since.keys() & self._runs.keys() - self.records.keys()})
            write_bytes(self.folder / SUMMARY, self._bytes())

    def _bytes(self) -> bytes:
        lines = []
        for key, cell in self._runs.items():
            if key in self.records:
                known = {**_place(cell), "address": key, **self.records[key]}
                lines.append(json.dumps(known, allow_nan=False))
        text = ",\n".join(lines)
        head = f'"format": "{FORMAT}",\n"study": {json.dumps(self.name)},\n"runs": {len(self.cells)}'
        return f'{{\n{head},\n"cells": [\n{text}\n]\n}}\n'.encode()


def _place(cell: Cell) -> Record:
    """Return what identifies a run of a study."""
    return {"baseline": cell.baseline, "arm": cell.arm, "seed": cell.seed, "values": dict(cell.values)}


def _texts(cell: Cell) -> dict[str, str]:
    """Return what identifies a run of a study as texts."""
    return {key: str(value) for key, value in {**_place(cell), **cell.values}.items() if key != "values"}


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _validation(runs: Sequence[tuple[Cell, Record]]) -> float:
    return fmean(record["validation"]["balanced"] for _, record in runs)


def _table_plan(table: Mapping[str, Any], name: str, where: Path) -> Reproduction:
    """Return the runs of a study that is a table of the paper."""
    for key in table:
        check_choice(f"{name}: key", key, TABLE_KEYS)
    if not isinstance(table["reproduce"], str) or not isinstance(table.get("every", False), bool):
        raise ArgumentError(f"{name}: expected reproduce = the name of a table, and every = true or false")
    options = {key: value for key, value in table.items() if key not in ("reproduce", "scale")}
    return Reproduction(paper_table(table["reproduce"]), table.get("scale", "cpu"), where, **options)
