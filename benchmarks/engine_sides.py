"""What the sides of `benchmarks/engine.py` do: rounds of the engine, or the same batches in plain PyTorch.

usage: python benchmarks/engine_sides.py TASK     (a `Task` as JSON; one round at once, then one for each line read)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrela.data.federation import Federation
    from fedrela.data.sources import Source
    from fedrela.engine.problem import Problem

SEED = 1
BATCH, LR, MOMENTUM, WEIGHT_DECAY = 32, 0.01, 0.9, 1e-5
MODELS: dict[str, dict[str, Any]] = {"mlp": {"hidden": [200]}, "cnn_small": {}}


@dataclass(frozen=True)
class Task:
    """What a process does.

    Attributes
    ----------
    quick
        Whether small made images stand in for Fashion-MNIST.
    model, clients, chosen, workers
        Model, number of clients, of those in a round, and of worker processes.
    lots
        Into how many equal lots the samples are split; each client has one of them, and several may have the same.
        0: Dirichlet clients.
    half
        Which half of a round's clients a bare process trains; None for the engine.
    """

    quick: bool
    model: str = "mlp"
    clients: int = 100
    chosen: int = 100
    workers: int = 2
    lots: int = 0
    half: int | None = None

    def command(self) -> list[str]:
        """Return the command that does it."""
        return [sys.executable, __file__, json.dumps(asdict(self))]


def serve_engine(task: Task) -> Iterator[None]:
    """Do a round of the engine at every step."""
    from fedrela.engine.executors.forkserver import warm_up

    warm_up()
    from fedrela.algorithms import ALGORITHMS
    from fedrela.engine.executors.pool import Pool
    from fedrela.engine.options import RelabelPlan, TrainOptions
    from fedrela.engine.problem import Plan
    from fedrela.engine.round import next_round
    from fedrela.engine.state import Run
    from fedrela.models import build

    data = problem(task)
    train = TrainOptions(
        rounds=10**6, evaluate_every=10**6, participation=task.chosen / task.clients, epochs=1, batch_size=BATCH,
        lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY,
    )  # fmt: skip
    make = partial(build, task.model, data.input_shape, 10, seed=SEED, **MODELS[task.model])
    with Pool(task.workers) as pool:
        run = Run(data, Plan(SEED, train, RelabelPlan(enabled=False), ALGORITHMS["fedavg"](), make), pool)
        assert not run.note, run.note
        while True:
            assert len(next_round(run).record.admitted) == task.chosen
            yield


def serve_bare(task: Task) -> Iterator[None]:
    """Train on one half of a round's batches at every step: one model, one optimiser, and nothing federated."""
    import torch
    from torch.nn.functional import cross_entropy

    from fedrela.models import build
    from fedrela.streams import stream

    torch.set_num_threads(1)
    data = problem(task)
    x, y = data.scaling.apply(torch.tensor(data.x_train)), torch.tensor(data.y_train)
    mine = halves([len(shard.train) for shard in data.shards])[task.half or 0]
    model = build(task.model, data.input_shape, 10, seed=SEED, **MODELS[task.model])
    optimiser = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    model.train()
    for turn in range(1, 10**6):
        for client in mine:
            ids = data.shards[client].train
            order = torch.from_numpy(ids[stream(SEED, "order", turn, client).permutation(len(ids))])
            for at in torch.split(order, BATCH):
                optimiser.zero_grad()
                torch.autograd.backward(cross_entropy(model(x[at]), y[at]))
                optimiser.step()
        yield


def halves(sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Split clients into two lists of nearly the same number of samples, largest clients first.

    >>> halves([10, 40, 30])
    ([1], [2, 0])
    """
    parts: tuple[list[int], list[int]] = ([], [])
    for client in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
        min(parts, key=lambda part: sum(sizes[k] for k in part)).append(client)
    return parts


def problem(task: Task) -> Problem:
    """Return the data of a task with its clients."""
    from fedrela.engine.problem import Problem
    from fedrela.experiment.build import groups_of
    from fedrela.models.inputs import Scaling
    from fedrela.records import Shard

    if task.lots:
        found = federation(task, {"kind": "iid", "clients": task.lots})
        lots = [found.shards[k % task.lots] for k in range(task.clients)]
        shards: Sequence[Shard] = [Shard(k, lot.train.copy(), lot.validation) for k, lot in enumerate(lots)]
    else:
        found = federation(task, {"kind": "dirichlet", "clients": task.clients, "alpha": 0.3})
        shards = found.shards
    scaling, groups = Scaling.fit(found.x_train), groups_of(found)
    return Problem(found.x_train, found.y_train, found.x_test, found.y_test, shards, 10, groups, scaling)


def federation(task: Task, partition: dict[str, Any]) -> Federation:
    from fedrela.data.federation import Recipe, build_federation
    from fedrela.data.imbalance import Imbalance
    from fedrela.data.partition import PartitionPlan
    from fedrela.data.sources import load

    imbalance = Imbalance("step", ratio=20, minority=(0, 1, 2))
    source = made() if task.quick else load("fashion_mnist")
    return build_federation(source, Recipe(SEED, imbalance, PartitionPlan(**partition)))


def made() -> Source:
    """Return small images that stand in for Fashion-MNIST."""
    import numpy as np

    from fedrela.data.sources import Source
    from fedrela.streams import stream

    x = stream(SEED, "made images").integers(0, 256, (4000, 1, 28, 28)).astype(np.uint8)
    y = np.arange(4000) % 10
    return Source("made", x, y, x[:1000], y[:1000], tuple("0123456789"))


if __name__ == "__main__":
    told = Task(**json.loads(sys.argv[1]))
    for _ in serve_engine(told) if told.half is None else serve_bare(told):
        print("done", flush=True)
        if not sys.stdin.readline():
            break
