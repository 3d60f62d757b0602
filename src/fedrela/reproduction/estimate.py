"""How long runs will take: work counted in samples, its price from a short trial on this machine (`price_here`).

The trial trains `cnn_small` on grey images of 28x28. The registries say what everything else costs in that unit:
`ModelSpec.cost`, `Algorithm.cost` and `SourceSpec.size`. The scale `paper` is for a GPU, whose throughput is assumed
(`GPU_WORDS`). The time left that is shown during a run comes from its own rounds instead.
"""

from __future__ import annotations

import functools
import statistics
import time

import numpy as np

from fedrela.data.imbalance import long_tail_counts, step_counts
from fedrela.data.sources import SOURCES, DataSize, from_arrays
from fedrela.engine.executors.forkserver import usable_cores
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from fedrela.engine.state import Run
from fedrela.errors import ArgumentError
from fedrela.experiment.build import build_data
from fedrela.experiment.grid import Grid, Segment
from fedrela.experiment.load import parse_config
from fedrela.experiment.runner import build_plan
from fedrela.experiment.schema import Config
from fedrela.models import MODELS
from fedrela.models.runtime import one_thread
from fedrela.streams import stream

SAMPLES, ROUNDS = 800, 4
CONFIG = {
    "data": {"partition": {"kind": "iid", "clients": 1}},
    "model": {"name": "cnn_small"},
    "train": {"rounds": 10, "epochs": 1, "batch_size": 32, "lr": 1e-3, "evaluate_every": 10},
    "relabel": {"enabled": False},
}


@functools.cache
def price_here() -> float:
    """Return the seconds that a training sample of `cnn_small` on grey images of 28x28 takes in the median round."""
    config = parse_config(CONFIG, name="trial")
    images = stream(config.seed, "made images").integers(0, 256, (SAMPLES, 1, 28, 28), dtype=np.uint8)
    source = from_arrays(images, np.arange(SAMPLES) % 10)
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
ROUND, RUN = 0.03, 0.5  # seconds that a round and a run take beside the training


def expected_seconds(grid: Grid, workers: int | str | None = None, price: float | None = None) -> float:
    """Return about how many seconds the runs of a grid take which are not done yet, shared rounds counted once.

    `price` is that of one training sample of `cnn_small` on grey images of 28x28, in seconds; by default `price_here`.
    """
    cores, price = workers if isinstance(workers, int) else usable_cores(), price_here() if price is None else price
    return sum(RUN + task.rounds * (ROUND + round_work(task.config) * price / cores) for task in _left(grid))


GPU_SAMPLES, GPU_STEP = 2000, 0.002  # training samples of ResNet-18 at 32x32 a second; the shortest step, in seconds
GPU_WORDS = (
    f"at {GPU_SAMPLES:,} training samples of ResNet-18 (32x32) a second and {1000 * GPU_STEP:g} ms a step at least"
)


def gpu_hours(grid: Grid) -> float:
    """Return about how many hours of one GPU the runs of a grid take which are not done yet, see `GPU_WORDS`.

    That throughput is assumed, not measured: a data-centre GPU in float32, which small batches leave half idle.
    """
    price = 1 / (GPU_SAMPLES * MODELS["resnet18"].cost[(3, 32, 32)])
    seconds = 0.0
    for task in _left(grid):
        train = task.config.train
        steps = train.participation * training_samples(task.config) * train.epochs / train.batch_size
        seconds += task.rounds * max(round_work(task.config) * price, steps * GPU_STEP)
    return seconds / 3600


def _left(grid: Grid) -> list[Segment]:
    return [task for task in grid.tasks if task.cell is None or not grid.is_done(task.cell)]


def round_work(config: Config) -> float:
    """Return the work of one round, in training samples of `cnn_small` on grey images of 28x28."""
    train, size = config.train, data_size(config)
    trained = train.participation * training_samples(config) * train.epochs * config.algorithm.kind().cost
    return MODELS[config.model.name].cost[size.shape] * (trained + FORWARD * size.test / train.evaluate_every)


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
    size = SOURCES[config.data.source].size
    if size is None:
        raise ArgumentError(f"{config.data.source}: of no fixed size, so that its time cannot be estimated")
    return size
