"""Many runs below one folder: shared rounds are trained once, and an interrupted grid continues where it stopped.

Nothing in ``[relabel]`` has an effect before its first round, except that posteriors may be collected. So all runs that
differ in nothing else continue from one prefix, up to the round before they first re-label, and equal the same runs
done alone, byte for byte. A longer prefix continues from a shorter one.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from fedrela.arms import Arm
from fedrela.engine.executors import Executor, open_executor
from fedrela.engine.executors.pool import Pool
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.executors.worker import CannotSendError
from fedrela.engine.round_result import RoundResult
from fedrela.engine.run_options import RelabelPlan
from fedrela.engine.tasks import TaskResult
from fedrela.errors import ArgumentError, DataError, FedrelaError, IntegrityError, RunFailedError
from fedrela.experiment.load import config_sha256
from fedrela.experiment.manifests import check_code, check_comparable, code_of
from fedrela.experiment.overlay import overlay
from fedrela.experiment.result import Result
from fedrela.experiment.runner import begin_or_resume, run_status
from fedrela.experiment.schema import Config, ReportConfig
from fedrela.options import options_of
from fedrela.runfolder import RunFolder, RunStatus
from fedrela.runfolder.grids import SUMMARY, GridFolder
from fedrela.runfolder.json_records import Record

FORMAT = "fedrela-summary-1"


@dataclass(frozen=True)
class GridSummary:
    """The results of many runs: their folder, and all of ``summary.json``."""

    kind: ClassVar[str]
    folder: Path
    record: Record

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read the results; raise a `DataError` if not all runs are finished."""
        opened = GridFolder.open(folder)
        return cls(opened.path, opened.summary(cls.kind))

    def to_dict(self) -> Record:
        """Return a copy of ``summary.json`` as plain numbers, strings, lists and dictionaries."""
        return dict(json.loads(json.dumps(self.record)))


def address(config: Config) -> str:
    """Return the address of a run: the beginning of its configuration's digest."""
    return config_sha256(config)[:12]


def prefix_rounds(config: Config) -> int:
    """Return the number of rounds before the first round of re-labelling."""
    return config.relabel.schedule.first(config.train.rounds) - 1


def file_name(config: Config) -> str:
    """Return the name of the algorithm, which may be user-defined, in folder names."""
    return config.algorithm.name.replace(":", ".")


def prefix_config(config: Config) -> Config:
    """Return the configuration of the prefix that a run continues from: it would re-label in its last round only."""
    plan = RelabelPlan(start=config.train.rounds, collected=config.relabel.collected)
    relabel = {each.name: getattr(plan, each.name) for each in options_of(RelabelPlan)}
    return overlay(config, {"relabel": relabel, "report": ReportConfig().model_dump()})


@dataclass(frozen=True, eq=False)
class Cell:
    """One run of a grid: its configuration, the label of its baseline, its arm and seed, and values of swept keys."""

    config: Config
    baseline: str
    arm: str
    seed: int
    values: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def sha256(self) -> str:
        """The digest of its configuration."""
        return config_sha256(self.config)

    @cached_property
    def name(self) -> str:
        """The name of its run folder, which follows from its configuration alone."""
        relabel = self.config.relabel
        arm = Arm(relabel.enabled, relabel.lr_scale != 1, relabel.enabled and relabel.moves == "random")
        return f"{file_name(self.config)}-{arm.name}-s{self.config.seed}-{self.sha256[:12]}"

    def as_record(self) -> dict[str, Any]:
        """Return its entry in ``grid.json``."""
        return {
            "folder": f"runs/{self.name}",
            "baseline": self.baseline,
            "arm": self.arm,
            "seed": self.seed,
            "values": dict(self.values),
            "config_sha256": self.sha256,
        }


@dataclass(frozen=True, eq=False)
class Segment:
    """The rounds `first` to `last` of one run: of a cell, or of a prefix that cells continue from.

    `prefix` is the folder that it continues from, and `beside` that of a finished run on the same data, or None;
    `cell` is None for a prefix.
    """

    config: Config
    out: Path
    first: int
    last: int
    prefix: Path | None
    baseline: str
    beside: Path | None
    cell: Cell | None = None

    @property
    def rounds(self) -> int:
        """How many rounds are its own."""
        return self.last - self.first + 1


class Progress(NamedTuple):
    """One round of one task, or its last `rounds` at once if tasks ran in parallel; `later` are those not done yet."""

    task: Segment
    done: RoundResult
    rounds: int = 1
    later: Sequence[Segment] | None = None


class Grid:
    """All cells below the folder `out`; two cells of one configuration are one run.

    `name` and `about` are the rest of ``grid.json``, see `GridFolder`: ``name`` and ``kind``; ``base``, the digest
    of what must be the same to continue in a folder; ``config``, the TOML text that it was made from; and ``facts``.
    With `shared` the runs are in the folder above, which several grids share.
    """

    def __init__(
        self, out: str | Path, cells: Iterable[Cell], *, name: str, shared: bool = False, **about: Any
    ) -> None:
        self.out, self.cells, self.name = Path(out), list(cells), name
        self.store = self.out.parent if shared else self.out
        self._about = {"name": name, "facts": {}, **({"shared": True} if shared else {}), **about}
        self.failures: dict[str, FedrelaError] = {}

    def begin(self) -> GridFolder:
        """Write the list of runs to the folder, or check that the folder belongs to the same grid."""
        return GridFolder.begin(self.out, {**self._about, "cells": [cell.as_record() for cell in self.cells]})

    def place(self, cell: Cell) -> Path:
        """Return the run folder of a cell."""
        return self.store / "runs" / cell.name

    def is_done(self, cell: Cell) -> bool:
        """Whether the run of a cell is finished."""
        return run_status(self.place(cell)) is RunStatus.DONE

    def finished(self) -> int:
        """Return how many cells are finished."""
        return sum(map(self.is_done, self.cells))

    def result(self, cell: Cell) -> Result:
        """Return the result of a finished cell."""
        result = Result.load(self.place(cell))
        if result.config_sha256 != cell.sha256:
            raise IntegrityError("is the run of another configuration; was the folder renamed?", path=self.place(cell))
        return result

    @cached_property
    def tasks(self) -> list[Segment]:
        """What must be done for all cells, prefixes before the cells that continue from them."""
        families: dict[str, list[Cell]] = {}
        done = self._finished_by_source()
        for cell in {cell.name: cell for cell in self.cells}.values():
            families.setdefault(address(prefix_config(cell.config)), []).append(cell)
        return [task for family in families.values() for task in self._family(family, done)]

    def _finished_by_source(self) -> dict[str, Path]:
        """Return a finished run for each data source; raise if those of one source had different data or packages.

        It is an error, too, if the user's own code is no longer that of a finished run.
        """
        found: dict[str, Path] = {}
        for cell in filter(self.is_done, self.cells):
            place = self.place(cell)
            manifest = RunFolder.open(place).manifest
            check_code(place, manifest.get("code", {}), code_of(cell.config))
            check_comparable(found.setdefault(source_of(cell.config), place), manifest)
        return found

    def _family(self, cells: Sequence[Cell], done: Mapping[str, Path]) -> Iterator[Segment]:
        """Yield the tasks of cells that share a prefix: ever longer prefixes, each before the cells that leave it."""
        before, prefix, config = 0, None, prefix_config(cells[0].config)
        beside = done.get(source_of(config))
        name = f"{file_name(config)}-s{config.seed}-{address(config)}"
        for cell in sorted(cells, key=lambda cell: prefix_rounds(cell.config)):
            shared, rounds = prefix_rounds(cell.config), cell.config.train.rounds
            out = self.store / "prefixes" / f"{name}-to-{shared}"
            if shared > before and (len(cells) > 1 or out.is_dir()):
                yield Segment(config, out, before + 1, shared, prefix, cells[0].baseline, beside)
                before, prefix = shared, out
            yield Segment(cell.config, self.place(cell), before + 1, rounds, prefix, cell.baseline, beside, cell)

    @property
    def rounds(self) -> int:
        """All rounds, shared ones counted once."""
        return sum(task.rounds for task in self.tasks)

    def run(self, executor: Executor) -> Iterator[Progress]:
        """Run what is not done yet, with the folder locked; a run that fails or cannot begin is noted in `failures`.

        While at least as many tasks are ready as a pool has workers, each worker does whole tasks, and takes the next
        one as soon as it is done; the remaining tasks run one by one, their clients spread over the workers. Either way
        the results are the same, byte for byte.
        """
        with self.begin().locked():
            left = self.remaining()
            while left:
                waiting = {task.out for task in left}
                ready = [task for task in left if task.prefix not in waiting]
                tasks = ready[:1]
                sound = [task for task in ready if task.prefix is None or task.prefix.name not in self.failures]
                if isinstance(executor, Pool) and len(sound) >= executor.size:
                    tasks = sound[: len(left) // executor.size * executor.size]
                    yield from self._in_parallel(tasks, left, executor)
                for task in [task for task in tasks if task in left]:
                    left.remove(task)
                    try:
                        yield from self._carry_out(task, executor)
                    except (RunFailedError, ArgumentError, DataError) as error:
                        self._note(task, error)

    def _in_parallel(self, tasks: list[Segment], left: list[Segment], pool: Pool) -> Iterator[Progress]:
        """Run tasks in parallel and remove them from `left`; a task that a worker cannot do stays there.

        When a prefix is done, the tasks that continue from it are added to `tasks`, as long as all workers get the same
        number.
        """
        try:
            pool.load(_run_alone)
        except CannotSendError:
            return
        most = len(left) // pool.size * pool.size

        def continued(result: TaskResult) -> list[Segment]:
            if not isinstance(result.value, tuple):
                return []
            done = tasks[result.position].out
            further = [task for task in left if task.prefix == done and task not in tasks][: most - len(tasks)]
            tasks.extend(further)
            return further

        with contextlib.closing(pool.run(list(tasks), then=continued)) as results:
            for result in results:
                if result.failure is not None:  # tried again in this process, which raises its error
                    continue
                task, outcome = tasks[result.position], result.value
                left.remove(task)
                if isinstance(outcome, RunFailedError):
                    self._note(task, outcome)
                elif outcome[0] is not None:
                    yield Progress(task, outcome[0], outcome[1], tuple(left))

    def _note(self, task: Segment, error: FedrelaError) -> None:
        self.failures[task.out.name] = error.with_traceback(None)  # which would keep the run in memory

    def failure(self, what: str) -> FedrelaError:
        """Return the error of a grid in which every run failed: `what`, the first reason, the code that all share.

        If no run could begin, all for one reason, it is that one.
        """
        first, codes = next(iter(self.failures.values())), {error.exit_code for error in self.failures.values()}
        if not isinstance(first, RunFailedError) and len(set(map(str, self.failures.values()))) == 1:
            return first
        error = RunFailedError(f"{self.out}: {what}: {first}", exit_code=codes.pop() if len(codes) == 1 else None)
        error.__cause__ = first
        return error

    def executor(self, workers: int | str | None = None) -> AbstractContextManager[tuple[Executor, str]]:
        """Open an executor for these runs, as `open_executor` does; by default as ``[engine]`` says."""
        engine = self.cells[0].config.engine
        return open_executor(engine.workers if workers is None else workers, engine.device)

    def complete(self, workers: int | str | None = None) -> None:
        """Run what is not done yet with its own workers; by default as many as ``[engine]`` says."""
        with self.executor(workers) as (executor, note):
            if note:
                warnings.warn(f"{self.out}: {note}", stacklevel=3)
            for _ in self.run(executor):
                pass

    def conclude(self, found: Record) -> Record:
        """Write ``summary.json``, the joint results of all runs, and return it."""
        summary = {"format": FORMAT, "kind": self._about["kind"], "name": self.name, **found}
        self.begin().write_json(SUMMARY, summary)
        return summary

    def remaining(self) -> list[Segment]:
        """Return the tasks that are not done; prefixes only if a remaining run continues from them."""
        left: list[Segment] = []
        for task in reversed(self.tasks):
            if task.cell is not None:
                wanted = not self.is_done(task.cell)
            else:
                wanted = any(task.out == other.prefix for other in left) and not _has_checkpoint(task)
            if wanted:
                left.insert(0, task)
        return left

    def position(self, progress: Progress) -> int:
        """Return how many of all rounds are done, those of skipped tasks included."""
        if progress.later is not None:
            return self.rounds - sum(task.rounds for task in progress.later)
        earlier = self.tasks[: self.tasks.index(progress.task)]
        return sum(task.rounds for task in earlier) + progress.done.record.round - progress.task.first + 1

    def _carry_out(self, task: Segment, executor: Executor) -> Iterator[Progress]:
        if task.prefix is not None and (cause := self.failures.get(task.prefix.name)) is not None:
            if not isinstance(cause, RunFailedError):  # it could not begin, and so cannot this one
                raise cause
            what = f"the rounds before re-labelling failed: {cause}"
            raise RunFailedError(what, exit_code=cause.exit_code) from cause
        for done in _rounds(task, executor):
            yield Progress(task, done)


def _rounds(task: Segment, executor: Executor) -> Iterator[RoundResult]:
    """Begin or resume the run of a task, and yield its rounds as they are done."""
    started = begin_or_resume(task.config, out=task.out, executor=executor, prefix=task.prefix, beside=task.beside)
    with started as recorded:
        yield from recorded.rounds(task.last)
        if task.cell is not None:
            recorded.finish()


def _run_alone(task: Segment) -> tuple[RoundResult | None, int] | RunFailedError:
    """Run a task in this process alone, and return its last round and the number of rounds done, or why it failed."""
    try:
        with SerialExecutor() as executor:
            done = [replace(each, ledgers={}) for each in _rounds(task, executor)]
    except RunFailedError as error:
        return error
    return (done[-1] if done else None), len(done)


def _has_checkpoint(task: Segment) -> bool:
    """Whether a prefix has all its rounds."""
    saved = None if run_status(task.out) is RunStatus.MISSING else RunFolder.open(task.out).load_checkpoint()
    return saved is not None and saved.round == task.last


def source_of(config: Config) -> str:
    """Return what identifies the data source of a run."""
    return json.dumps([config.data.source, config.data.options, config.data.root], default=str, sort_keys=True)
