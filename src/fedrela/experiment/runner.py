"""Run a configuration: `run` from beginning to end, `begin` and `resume` for callers that watch progress.

`build_plan` is the step between a federation and the engine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms import Algorithm
from fedrela.core.reallocators import REALLOCATORS
from fedrela.data.cache import Progress
from fedrela.data.federation import Federation, rebuild
from fedrela.data.sources import Source
from fedrela.engine.executors import Executor, open_executor
from fedrela.engine.problem import Plan, Problem
from fedrela.engine.run import Run
from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.build import build_data, errors_at, first_of_each, groups_of, numbers_of
from fedrela.experiment.load import config_sha256, load_config, parse_config
from fedrela.experiment.manifests import (
    check_comparable,
    check_same,
    check_same_config,
    machine_facts,
    manifest_of,
    run_toml,
)
from fedrela.experiment.private import PrivateFederation
from fedrela.experiment.recorded_run import RecordedRun
from fedrela.experiment.result import Result
from fedrela.experiment.schema import Config, check_fits
from fedrela.experiment.schema.config_table import Fault
from fedrela.experiment.schema.problems import WrongConfigError
from fedrela.models import MODELS, build, contract
from fedrela.models.contract import Model
from fedrela.models.inputs import Scaling
from fedrela.models.runtime import device_of, dtype_of, one_thread, refused_precision, seeded
from fedrela.records import RunManifest
from fedrela.runfolder import RunFolder, RunStatus
from fedrela.runfolder.names import CONFIG, MACHINE
from fedrela.text import printable

Configuration = str | Path | Mapping[str, Any] | Config


def run(
    config: Configuration,
    *,
    out: str | Path,
    workers: int | str | None = None,
    model: Model | None = None,
    source: Source | None = None,
    algorithm: Algorithm | None = None,
) -> Result:
    """Run a configuration in a new folder.

    Parameters
    ----------
    config
        A TOML file, or the same as a dictionary.
    out
        The run folder, new or empty.
    workers
        Processes, or ``"auto"``; by default what ``[engine]`` says. The result is the same, byte for byte.
    model
        A `torch.nn.Module` of your own, or a function of input shape and number of classes that makes one.
    source
        A data source of your own, see `fedrela.data.sources.from_arrays`.
    algorithm
        An algorithm of your own, see `fedrela.algorithms.Algorithm`.

    Examples
    --------
    >>> import tempfile
    >>> small = {"train": {"rounds": 2, "epochs": 1}, "data": {"partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(small, out=folder + "/run", workers=1)
    >>> done.rounds, done.accuracy["overall"] > 0.5
    (2, True)
    """
    with begin(config, out=out, workers=workers, model=model, source=source, algorithm=algorithm) as recorded:
        return recorded.complete()


class Overrides(TypedDict, total=False):
    """Objects that replace parts of a configuration: those of `run`, an executor, a server's part."""

    workers: int | str | None
    model: Model | None
    source: Source | None
    algorithm: Algorithm | None
    executor: Executor | None
    federation: PrivateFederation | None  # with private nodes


@contextlib.contextmanager
def begin(
    config: Configuration, *, out: str | Path, progress: Progress | None = None, prefix: RunFolder | None = None,
    beside: Path | None = None, **given: Unpack[Overrides],
) -> Iterator[RecordedRun]:  # fmt: skip
    """Yield a run at its beginning, its folder locked; parameters as for `run`.

    `executor` is used instead of one for this run alone; `progress` is called while data are read. `prefix` is a run
    that is the same up to its newest checkpoint: this one continues from there. `beside` is the folder of a run with
    which this one will be compared, so it must have the same data.
    """
    config = as_config(config)
    with one_thread(), contextlib.ExitStack() as stack:
        federation = given.get("federation") or build_data(config, source=given.get("source"), progress=progress)
        made = _make(config, federation, stack, given)
        manifest = manifest_of(config, federation, made).as_record()
        if prefix is not None:
            same = ("packages", "code", "data", "model")
            check_same(prefix.path, {key: prefix.manifest[key] for key in same if key in prefix.manifest}, manifest)
        if beside is not None:
            check_comparable(beside, manifest)
        create = RunFolder.create if prefix is None else prefix.fork
        folder = create(out, manifest, run_toml(config), machine_facts(config, made.executor))
        stack.enter_context(folder.locked())
        yield _restored(config, made, folder)


@contextlib.contextmanager
def resume(folder: str | Path, **given: Unpack[Overrides]) -> Iterator[RecordedRun]:
    """Yield an interrupted run at its newest checkpoint, its folder locked.

    Parameters
    ----------
    folder
        The run folder.
    given
        ``workers``, ``model``, ``source`` and ``algorithm`` as for `run`: your own objects must be given again.

    Examples
    --------
    >>> import tempfile
    >>> small = {"train": {"rounds": 2, "epochs": 1}, "data": {"partition": {"kind": "iid", "clients": 2}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with begin(small, out=folder + "/run", workers=1) as interrupted:
    ...         _ = next(interrupted.rounds())
    ...     with resume(folder + "/run", workers=1) as resumed:
    ...         done = resumed.complete()
    >>> done.rounds
    2
    """
    run_folder = RunFolder.open(folder)
    config, source = config_of(run_folder), given.get("source")
    with one_thread(), run_folder.locked(), contextlib.ExitStack() as stack:
        wanted = RunManifest.from_record(run_folder.manifest)
        federation: Federation | PrivateFederation | None = given.get("federation")
        if federation is None and source is None and wanted.data.get("origin") is None:
            advice = "resume it in Python, fedrela.experiment.resume(folder, source=...)"
            raise ArgumentError(f"{folder}: was started with a source of your own; {advice}")
        federation = federation or rebuild(wanted.data, source=source, root=config.data.root)
        made = _make(config, federation, stack, given)
        check_same(run_folder.path, wanted.as_record(), manifest_of(config, federation, made).as_record())
        yield _restored(config, made, run_folder)


def begin_or_resume(
    config: Config,
    *,
    out: str | Path,
    executor: Executor,
    prefix: Path | None = None,
    beside: Path | None = None,
    federation: PrivateFederation | None = None,
) -> contextlib.AbstractContextManager[RecordedRun]:
    """Start a run as `begin` does, `prefix` being a folder, or resume it."""
    status = run_status(out)
    is_interrupted_fork = status is RunStatus.NEW and prefix is not None  # it is repeated
    if status is RunStatus.MISSING or is_interrupted_fork:
        before = None if prefix is None else RunFolder.open(prefix)
        return begin(config, out=out, executor=executor, prefix=before, beside=beside, federation=federation)
    check_same_config(RunFolder.open(out), config)
    return resume(out, executor=executor, federation=federation)


def run_status(folder: str | Path) -> RunStatus:
    """Return the status of the run in a folder; ``MISSING`` where there is none."""
    try:
        return RunFolder.open(folder).status
    except DataError:
        return RunStatus.MISSING


def as_config(config: Configuration) -> Config:
    """Return a checked configuration from a file, a dictionary or one that is checked already."""
    if isinstance(config, Config):
        return config
    return parse_config(config) if isinstance(config, Mapping) else load_config(config)


def _make(
    config: Config, federation: Federation | PrivateFederation, stack: contextlib.ExitStack, given: Overrides
) -> Run:
    """Return the run itself; `stack` closes it, and its executor unless one was given."""
    problem, plan = build_plan(config, federation, given.get("model"), given.get("algorithm"))
    executor, note, workers = given.get("executor"), "", given.get("workers")
    if executor is None:
        wanted = config.engine.workers if workers is None else workers
        executor, note = stack.enter_context(open_executor(wanted, config.engine.device, len(federation.shards)))
    made = Run(problem, plan, executor)
    made.note = made.note or note
    stack.callback(made.close)
    return made


def build_plan(
    config: Config,
    federation: Federation | PrivateFederation,
    model: Model | None = None,
    algorithm: Algorithm | None = None,
) -> tuple[Problem, Plan]:
    """Return the problem and the plan for the engine; model and algorithm may be user-defined.

    A model is a module, or a function of input shape and number of classes that makes one.
    """
    device = checked_device(config)
    algorithm = algorithm or config.algorithm.make()
    if isinstance(federation, PrivateFederation):  # a node has checked its own rows
        problem, ids = federation.problem, frozenset[str]()
        rows = None if any(len(shard.train) for shard in problem.shards) else len(problem.y_train)
    else:
        problem, ids = _problem(config, federation, algorithm), _ids(federation.source)
        rows = len(problem.y_train)
    keys = {"model": ("model", "name"), **{name: ("model", name) for name in config.model.options}}
    with errors_at(config, keys, ("model", "name")):
        make = _maker(config, problem, model)
        make()
    check_fits(config, clients=len(problem.shards), classes=problem.class_names, rows=rows, ids=ids)
    for table, wanted in (("train", config.train.augment), ("relabel", config.relabel.augment)):
        if wanted and not problem.is_image:
            what = "crops and flips need images of bytes; these samples are not"
            raise WrongConfigError([Fault((table, "augment"), what)], config.origin)
    if config.train.local_test and not len(problem.y_test):
        raise WrongConfigError([Fault(("train", "local_test"), "there are no test samples")], config.origin)
    relabel = config.relabel.numbered(problem.class_names)
    if ids:
        relabel = replace(relabel, keep=numbers_of(relabel.keep, problem.ids))
    if relabel.method not in REALLOCATORS:  # workers get the object, since they may not find it by its name
        relabel = replace(relabel, method=relabel.reallocator(), params=None)
    return problem, Plan(config.seed, config.train, relabel, algorithm, make, device)


def _ids(source: Source) -> frozenset[str]:
    """Return the ids of all samples, also of those held out for testing."""
    return frozenset((*source.ids_train, *source.ids_test))


def checked_device(config: Config) -> str:
    """Return the device of a configuration; a missing one, or a precision it lacks, is an error at its position."""
    with errors_at(config, {"device": ("engine", "device")}, ("engine", "device")):
        device = device_of(config.engine.device)
    if reason := refused_precision(config.train.precision, device):
        raise WrongConfigError([Fault(("train", "precision"), f"{reason}; use float32")], config.origin)
    return device


def _problem(config: Config, federation: Federation, algorithm: Algorithm) -> Problem:
    names, trained = federation.source.class_names, np.concatenate([shard.train for shard in federation.shards])
    if len(names) < 2:
        with errors_at(config, {}, ("data", "source")):
            raise DataError(
                f"every sample is of the class {printable(names[0])}; expected samples of two classes or more"
            )
    return Problem(
        x_train=federation.x_train,
        y_train=np.asarray(federation.y_train, np.int64),
        x_test=federation.x_test,
        y_test=np.asarray(federation.y_test, np.int64),
        shards=federation.shards,
        num_classes=federation.source.num_classes,
        groups=groups_of(federation, config.data.protocol),
        scaling=_scaling(config, federation, trained),
        class_names=tuple(names),
        ids=federation.source.ids_train,
        auxiliary=first_of_each(federation.y_train, algorithm.auxiliary) if algorithm.auxiliary else None,
    )


def _scaling(config: Config, federation: Federation, trained: NDArray[np.int64]) -> Scaling:
    """Return how samples are scaled to inputs: by the clients' own statistics, as ``[data]`` says, or not at all."""
    x, wanted, pixel_max = federation.x_train, config.data.scaling, federation.source.pixel_max
    if wanted == "fit":
        return Scaling.fit(x, trained, pixel_max=pixel_max)
    unit = pixel_max if x.dtype == np.uint8 else 1
    with errors_at(config, {}, ("data", "scaling")):
        if wanted == "local":
            raise ArgumentError("'local' is for private nodes, each of which scales by its own samples")
        if isinstance(wanted, str):
            return Scaling(pixel_max=pixel_max)
        if x.ndim < 3 or x.dtype == np.int64 or len(wanted["mean"]) != x.shape[1]:
            raise ArgumentError(f"expected one value per channel of samples {x.shape[1:]}, got {len(wanted['mean'])}")
        mean, std = (tuple(float(value) * unit for value in wanted[name]) for name in ("mean", "std"))
        return Scaling(mean, std, pixel_max, x.ndim - 1)


def _maker(config: Config, problem: Problem, model: Model | None) -> Callable[[], Any]:
    table, sizes = config.model, (problem.input_shape, problem.num_classes)
    integers = problem.x_train.dtype == np.int64
    options = {"projection": table.projection, "dtype": dtype_of(table.dtype), **table.options}
    make = partial(build, table.name, *sizes, seed=config.seed, **options)
    if model is None and table.name in MODELS:
        if integers:
            what = "expected floats, got integer samples such as token ids"
            raise ArgumentError(f"{table.name}: {what}; convert them, or name a model of your own")
        return make
    with seeded(config.seed, "model"):  # the given object, since workers may not find one of the user's own by its name
        return contract.model_factory(make() if model is None else model, *sizes, integers)


def _restored(config: Config, made: Run, folder: RunFolder) -> RecordedRun:
    shown = made.problem.is_image or made.problem.x_train.ndim == 2
    gallery = config.report.gallery_size if config.report.samples and shown else 0
    recorded = RecordedRun(made, folder, config.engine.checkpoint_every, gallery, config_sha256(config))
    recorded.restore()
    return recorded


def config_of(folder: RunFolder) -> Config:
    """Return the configuration of a run, with the ``[engine]`` it started with."""
    text = folder.read(CONFIG).decode()
    config = parse_config(text, name=str(folder.path / CONFIG), folder=folder.path)
    engine = folder.read_json(MACHINE).get("engine", {})
    return parse_config({**config.as_table(), "engine": engine}, name=str(folder.path / CONFIG))
