"""How long runs will take: the number of training samples times the seconds per sample (`seconds_per_sample`).

The seconds come from a short trial on this machine: `cnn_small` on grey images of 28x28. The registries hold relative
costs: `ModelSpec.cost`, `Algorithm.cost` and `SourceSpec.size`. A model without a known cost, such as your own, gets
its own trial, and a source without a fixed size is read. The scale `paper` is for a GPU, whose throughput is assumed
(`GPU_ASSUMPTION`). The time left that is shown during a run comes from its own rounds instead.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fedrela.data.imbalance import long_tail_counts, step_counts
from fedrela.data.sources import DataSize, Source, find_source, from_arrays, load
from fedrela.engine.executors.forkserver import usable_cores
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from fedrela.engine.run import Run
from fedrela.experiment.build import build_data
from fedrela.experiment.grid import Segment
from fedrela.experiment.load import parse_config
from fedrela.experiment.runner import build_plan
from fedrela.experiment.schema import Config
from fedrela.experiment.toml.writer import toml_text
from fedrela.models import GREY, MODELS, ModelSpec, find_model
from fedrela.models.runtime import one_thread
from fedrela.streams import stream

SAMPLES, FEW, ROUNDS = 800, 64, 4  # of a trial; few samples where the model is not known
CONFIG = {
    "data": {"partition": {"kind": "iid", "clients": 1}},
    "train": {"rounds": 10, "epochs": 1, "batch_size": 32, "lr": 1e-3, "evaluate_every": 10},
    "relabel": {"enabled": False},
}


@functools.cache
def seconds_per_sample() -> float:
    """Return the seconds that a training sample of `cnn_small` on grey images of 28x28 takes in the median round."""
    return _trial_seconds({"name": "cnn_small"}, _made(GREY, 10, SAMPLES))


def _made(shape: tuple[int, ...], classes: int, samples: int) -> Source:
    images = stream(1, "made images").integers(0, 256, (samples, *shape), dtype=np.uint8)
    return from_arrays(images, np.arange(samples) % classes)


def _trial_seconds(model: Mapping[str, Any], source: Source) -> float:
    """Return the seconds that a training sample takes in the median round of a trial."""
    config = parse_config({**CONFIG, "model": model}, name="trial")
    times = []
    with one_thread():
        run = Run(*build_plan(config, build_data(config, source=source)), SerialExecutor())
        for _ in range(ROUNDS):
            began = time.perf_counter()
            next_round(run)
            times.append(time.perf_counter() - began)
        run.close()
    return statistics.median(times[1:]) / sum(len(shard.train) for shard in run.problem.shards)


FORWARD = 1 / 3  # of a training step
ROUND, RUN = 0.03, 0.5  # seconds that a round and a run take besides training


def expected_seconds(
    tasks: Iterable[Segment], workers: int | str | None = None, per_sample: float | None = None
) -> float:
    """Estimate the seconds that tasks take, such as ``grid.remaining()``.

    `per_sample` is the time of one training sample of `cnn_small` on grey images of 28x28; by default it is measured.
    """
    cores = workers if isinstance(workers, int) else usable_cores()
    unit = seconds_per_sample() if per_sample is None else per_sample
    return sum(RUN + task.rounds * (ROUND + round_work(task.config) * unit / cores) for task in tasks)


GPU_SAMPLES, GPU_STEP = 2000, 0.002  # training samples of ResNet-18 at 32x32 per second; the shortest step, in seconds
GPU_ASSUMPTION = (
    f"at {GPU_SAMPLES:,} training samples of ResNet-18 (32x32) per second and at least {1000 * GPU_STEP:g} ms per step"
)


def gpu_hours(tasks: Iterable[Segment]) -> float:
    """Estimate the hours of one GPU that tasks take, see `GPU_ASSUMPTION`.

    That throughput is assumed, not measured: a data-centre GPU in float32, which small batches leave half idle.
    """
    unit = 1 / (GPU_SAMPLES * MODELS["resnet18"].cost[(3, 32, 32)])
    seconds = 0.0
    for task in tasks:
        train = task.config.train
        steps = train.participation * training_samples(task.config) * train.epochs / train.batch_size
        seconds += task.rounds * max(round_work(task.config) * unit, steps * GPU_STEP)
    return seconds / 3600


def round_work(config: Config) -> float:
    """Return the work of one round, in training samples of `cnn_small` on grey images of 28x28."""
    train, size = config.train, data_size(config)
    trained = train.participation * training_samples(config) * train.epochs * config.algorithm.kind().cost
    return _model_cost(config) * (trained + FORWARD * size.test / train.evaluate_every)


def _model_cost(config: Config) -> float:
    """Return the cost of a training sample relative to `cnn_small` on grey images of 28x28."""
    found, shape = find_model(config.model.name), data_size(config).shape
    if isinstance(found, ModelSpec) and shape in found.cost:
        return found.cost[shape]
    return _tried_cost(_source_text(config), toml_text({"model": config.model.as_table()}))


@functools.cache
def _tried_cost(source: str, model: str) -> float:
    """Return a model's cost from a trial with few samples, read from the source if its size is not known."""
    size = find_source(parse_config(source).data.source).size
    if size is not None:
        data = _made(size.shape, size.classes, max(FEW, size.classes))
    else:
        data = _loaded(source)
        data = replace(data, x_train=data.x_train[:FEW], y_train=data.y_train[:FEW], client_train=None)
    return _trial_seconds(parse_config(model).model.as_table(), data) / seconds_per_sample()


def _source_text(config: Config) -> str:
    table = config.data.as_table()
    return toml_text({"data": {key: table[key] for key in ("source", "root", "options") if key in table}})


@functools.cache
def _loaded(text: str) -> Source:
    data = parse_config(text).data
    return load(data.source, data.root, **data.options)


def training_samples(config: Config) -> int:
    """Return how many training samples imbalance leaves, over all clients."""
    wanted, size = config.data.imbalance, data_size(config)
    largest = wanted.largest or size.train // size.classes
    if wanted.ratio is not None:
        return int(step_counts(size.classes, largest, wanted.ratio, wanted.minority).sum())
    if wanted.factor is not None:
        return int(long_tail_counts(size.classes, largest, wanted.factor).sum())
    return size.train


def data_size(config: Config) -> DataSize:
    """Return how large the data set of a configuration is."""
    size = find_source(config.data.source).size
    if size is None:
        source = _loaded(_source_text(config))
        size = DataSize(len(source.y_train), len(source.y_test), source.num_classes, source.x_train.shape[1:])
    return size
