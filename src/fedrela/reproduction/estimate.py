"""How long runs will take: work counted in samples, its price from a short trial on this machine (`price_here`).

The trial trains `cnn_small` on grey images of 28x28. `RELATIVE` says how many times that a sample of another network or
image size costs, and `Algorithm.cost` the same for another algorithm's round: measured once beside that same network,
on one core, save those of ``resnet50``, which are estimated from its operations. The time left that is shown during a
run comes from its own rounds instead.
"""

from __future__ import annotations

import functools
import statistics
import time

import numpy as np

from fedrela.data.imbalance import long_tail_counts, step_counts
from fedrela.data.sources import from_arrays
from fedrela.engine.executors.forkserver import usable_cores
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from fedrela.engine.state import Run
from fedrela.experiment.build import build_data
from fedrela.experiment.grid import Grid
from fedrela.experiment.load import parse_config
from fedrela.experiment.plan import build_plan
from fedrela.experiment.schema import Config
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


# source -> training samples, test samples, classes
SIZES = {
    "cifar10": (50_000, 10_000, 10),
    "cifar100": (50_000, 10_000, 100),
    "digits": (1_437, 360, 10),
    "fashion_mnist": (60_000, 10_000, 10),
    "imagenet_lt": (115_846, 50_000, 1000),
}
# (network, channels and side of its images) -> price of a training sample; cnn_small on 1x28 is 1
RELATIVE = {
    ("cnn_small", "1x28"): 1.0,
    ("cnn_small", "3x32"): 2.3,
    ("convnet", "1x28"): 7.8,
    ("convnet", "3x32"): 10.7,
    ("mlp", "1x8"): 0.11,
    ("resnet18", "3x32"): 400.0,
    ("resnet34", "3x32"): 760.0,
    ("resnet50", "3x224"): 2_800.0,
    ("resnet8", "3x32"): 100.0,
    ("simple_cnn", "1x28"): 0.9,
    ("simple_cnn", "3x32"): 1.2,
}
IMAGES = {"digits": "1x8", "fashion_mnist": "1x28", "cifar10": "3x32", "cifar100": "3x32", "imagenet_lt": "3x224"}
FORWARD = 1 / 3  # of a training step
ROUND, RUN = 0.03, 0.5  # seconds that a round and a run take beside the training


def expected_seconds(grid: Grid, workers: int | str | None = None, price: float | None = None) -> float:
    """Return about how many seconds the runs of a grid take which are not done yet, shared rounds counted once.

    `price` is that of one training sample of `cnn_small` on grey images of 28x28, in seconds; by default `price_here`.
    """
    cores, price = workers if isinstance(workers, int) else usable_cores(), price_here() if price is None else price
    left = [task for task in grid.tasks if task.cell is None or not grid.is_done(task.cell)]
    return sum(RUN + task.rounds * (ROUND + round_work(task.config) * price / cores) for task in left)


def round_work(config: Config) -> float:
    """Return the work of one round, in training samples of `cnn_small` on grey images of 28x28."""
    train, data = config.train, config.data
    _, tested, _ = SIZES[data.source]
    trained = train.participation * training_samples(config) * train.epochs * config.algorithm.kind().cost
    return RELATIVE[config.model.name, IMAGES[data.source]] * (trained + FORWARD * tested / train.evaluate_every)


def training_samples(config: Config) -> int:
    """Return how many training samples imbalance leaves, over all clients."""
    wanted = config.data.imbalance
    samples, _, classes = SIZES[config.data.source]
    largest = wanted.largest or samples // classes
    if wanted.ratio is not None:
        return int(step_counts(classes, largest, wanted.ratio, wanted.minority).sum())
    if wanted.factor is not None:
        return int(long_tail_counts(classes, largest, wanted.factor).sum())
    return samples
