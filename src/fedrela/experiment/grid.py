"""Many runs below one folder: shared rounds once, nothing twice, and an interrupted grid continues where it stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fedrela.engine.executors import Executor, open_executor
from fedrela.engine.round import RoundResult
from fedrela.errors import DataError, RunFailedError
from fedrela.experiment.arms import Arm
from fedrela.experiment.load import config_sha256
from fedrela.experiment.prefixes import address, finished_prefix, prefix_config, prefix_name, prefix_rounds
from fedrela.experiment.recorded_run import RecordedRun
from fedrela.experiment.result import Result
from fedrela.experiment.runner import begin, resume
from fedrela.experiment.schema import Config
from fedrela.runfolder import RunFolder
from fedrela.runfolder.grids import SUMMARY, GridFolder


@dataclass(frozen=True, eq=False)
class Cell:
    """One run of a grid.

    Attributes
    ----------
    config
        What is run.
    baseline, arm, seed, values
        What it is in the grid: the baseline algorithm's label, the arm, the seed, and values of swept keys.
    """

    config: Config
    baseline: str
    arm: str
    seed: int
    values: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        """The name of its run folder, which follows from its configuration alone."""
        return f"{self.config.algorithm.name}-{Arm.of(self.config).name}-s{self.config.seed}-{address(self.config)}"

    def as_record(self) -> dict[str, Any]:
        """Return what ``grid.json`` says of it."""
        return {
            "folder": f"runs/{self.name}",
            "baseline": self.baseline,
            "arm": self.arm,
            "seed": self.seed,
            "values": dict(self.values),
            "config_sha256": config_sha256(self.config),
        }


@dataclass(frozen=True, eq=False)
class Segment:
    """Rounds of one run: of a cell, or of a prefix that cells continue from.

    Attributes
    ----------
    config, out
        What is run, and where.
    first, last
        The rounds that are this task's own.
    prefix
        The prefix that it continues from, or None.
    cell
        The cell, or None for a prefix; and `baseline` and `seed` of either.
    """

    config: Config
    out: Path
    first: int
    last: int
    prefix: Path | None
    baseline: str
    seed: int
    cell: Cell | None = None

    @property
    def rounds(self) -> int:
        """How many rounds are its own."""
        return self.last - self.first + 1


@dataclass(frozen=True)
class Progress:
    """One round of one task."""

    task: Segment
    done: RoundResult


class Grid:
    """All cells below a folder.

    Parameters
    ----------
    out
        Where ``grid.json`` and the run folders lie, or will lie.
    cells
        The runs; two of one configuration are one run.
    kind, name, facts
        Of the grid: see `GridFolder`.
    base
        Digest of what must be the same to go on in a folder.
    config
        TOML text of what it was made from.
    """

    def __init__(
        self, out: str | Path, cells: Sequence[Cell], *, kind: str, name: str, base: str, config: str,
        facts: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.out, self.cells, self.kind, self.name = Path(out), list(cells), kind, name
        self._base, self._config, self._facts = base, config, dict(facts or {})
        self.failures: dict[str, str] = {}

    def begin(self) -> GridFolder:
        """Write what is to be run, or check that the same is there."""
        return GridFolder.begin(self.out, {
            "kind": self.kind, "name": self.name, "base": self._base, "config": self._config,
            "cells": [cell.as_record() for cell in self.cells], "facts": self._facts,
        })  # fmt: skip

    def place(self, cell: Cell) -> Path:
        """Return the run folder of a cell."""
        return self.out / "runs" / cell.name

    def is_done(self, cell: Cell) -> bool:
        """Whether the run of a cell is finished."""
        return _status(self.place(cell)) == "done"

    def finished(self) -> int:
        """Return how many cells are finished."""
        return sum(map(self.is_done, self.cells))

    def result(self, cell: Cell) -> Result:
        """Return the result of a finished cell."""
        return Result.load(self.place(cell))

    @cached_property
    def tasks(self) -> list[Segment]:
        """What must be done for all cells, prefixes before the cells that continue from them."""
        families: dict[str, list[Cell]] = {}
        for cell in {cell.name: cell for cell in self.cells}.values():
            families.setdefault(address(prefix_config(cell.config)), []).append(cell)
        return [task for family in families.values() for task in self._family(family)]

    def _family(self, cells: Sequence[Cell]) -> Iterator[Segment]:
        """Yield the tasks of cells that share a prefix: ever longer prefixes, and after each the cells that leave it."""
        before, prefix, of = 0, None, cells[0]
        config = prefix_config(of.config)
        for cell in sorted(cells, key=lambda cell: prefix_rounds(cell.config)):
            shared = prefix_rounds(cell.config)
            if shared > before and len(cells) > 1:
                out = self.out / "prefixes" / prefix_name(config, shared)
                yield Segment(config, out, before + 1, shared, prefix, of.baseline, of.seed)
                before, prefix = shared, out
            yield Segment(
                cell.config,
                self.place(cell),
                before + 1,
                cell.config.train.rounds,
                prefix,
                cell.baseline,
                cell.seed,
                cell,
            )

    @property
    def rounds(self) -> int:
        """All rounds, shared ones counted once."""
        return sum(task.rounds for task in self.tasks)

    def run(self, executor: Executor) -> Iterator[Progress]:
        """Carry out what is not done yet, with the folder locked; a run that fails is noted in `failures`."""
        with self.begin().locked():
            for task in self.remaining():
                try:
                    yield from self._carry_out(task, executor)
                except RunFailedError as error:
                    self.failures[task.out.name] = str(error)

    def complete(self, workers: int | str | None = None) -> None:
        """Carry out what is not done yet with workers of its own; by default as many as ``[engine]`` says."""
        engine = self.cells[0].config.engine
        with open_executor(engine.workers if workers is None else workers, engine.device) as (executor, _):
            for _ in self.run(executor):
                pass

    def conclude(self, summary: Mapping[str, Any]) -> GridFolder:
        """Write what all runs say together."""
        folder = self.begin()
        folder.write_json(SUMMARY, summary)
        return folder

    def remaining(self) -> list[Segment]:
        """Return the tasks that are not done, and of the prefixes only those that something continues from."""
        left: list[Segment] = []
        for task in reversed(self.tasks):
            wanted = any(task.out == other.prefix for other in left) and finished_prefix(task.out) is None
            if wanted if task.cell is None else not self.is_done(task.cell):
                left.insert(0, task)
        return left

    def position(self, progress: Progress) -> int:
        """Return how many of all rounds lie behind, those of skipped tasks included."""
        earlier = self.tasks[: self.tasks.index(progress.task)]
        return sum(task.rounds for task in earlier) + progress.done.record.round - progress.task.first + 1

    def _carry_out(self, task: Segment, executor: Executor) -> Iterator[Progress]:
        if task.prefix is not None and task.prefix.name in self.failures:
            raise RunFailedError(f"the rounds before re-labelling failed: {self.failures[task.prefix.name]}")
        with _begin_or_resume(task, executor) as recorded:
            for done in recorded.rounds(task.last):
                yield Progress(task, done)
            if task.cell is not None:
                recorded.finish()


def name_of(config: Config, out: str | Path) -> str:
    """Return how tables call what is made from a configuration: as its file, or without one as the folder."""
    return Path(config.origin.name).stem if config.origin.places else Path(out).name


def _begin_or_resume(task: Segment, executor: Executor) -> contextlib.AbstractContextManager[RecordedRun]:
    """Begin a run, or go on with what was left of it."""
    status = _status(task.out)
    if status == "missing" or (status == "new" and task.prefix is not None):  # a fork that was cut off is made again
        prefix = None if task.prefix is None else RunFolder.open(task.prefix)
        return begin(task.config, out=task.out, executor=executor, prefix=prefix)
    return resume(task.out, executor=executor)


def _status(path: Path) -> str:
    try:
        return RunFolder.open(path).status
    except DataError:
        return "missing"
