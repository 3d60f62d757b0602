"""What a training sample costs on this machine: a few rounds of the engine itself, on noise, in one process."""

from __future__ import annotations

import functools
import statistics
import time

import numpy as np

from fedrela.data.sources import from_arrays
from fedrela.engine.loop import next_round
from fedrela.engine.run import Run
from fedrela.engine.serial import SerialPool
from fedrela.experiment.build import build_data
from fedrela.experiment.load import parse_config
from fedrela.experiment.plan import build_algorithm, build_plan, build_problem
from fedrela.models.repeatable import one_thread
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
        federation, algorithm = build_data(config, source=source), build_algorithm(config)
        problem = build_problem(config, federation, algorithm)
        run = Run(problem, build_plan(config, problem, algorithm), SerialPool())
        for _ in range(ROUNDS):
            began = time.perf_counter()
            next_round(run)
            times.append(time.perf_counter() - began)
        run.close()
    return statistics.median(times[1:]) / sum(len(shard.train) for shard in problem.shards)
