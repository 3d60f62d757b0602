"""What the sides of `benchmarks/engine.py` do: rounds of the engine, or the same batches in plain PyTorch.

usage: python benchmarks/engine_sides.py TASK [FILE]    (a `Task` as JSON; one round at once, then one for each line
read; with FILE, only write the task's samples and clients to it)
       python benchmarks/engine_sides.py many CLIENTS    (one round of a run with so many clients)
       python benchmarks/engine_sides.py together|apart ROUNDS    (a comparison of twelve runs for each line read)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrela.data.federation import Federation
    from fedrela.data.sources import Source
    from fedrela.engine.problem import Problem

SEED = 1
BATCH, LR, MOMENTUM, WEIGHT_DECAY = 32, 0.01, 0.9, 1e-5
ENDLESS = 10**6


@dataclass(frozen=True)
class Task:
    """What a process does.

    Attributes
    ----------
    source, samples
        Data set ("made" for small made images), and how many of its training samples are used at most; 0: all.
    model, hidden, clients, chosen, workers
        Model, width of an MLP's hidden layer, number of clients, of those in a round, and of worker processes.
    lots
        Into how many equal lots the samples are split; each client has one of them, and several may have the same.
        0: Dirichlet clients of samples with three minority classes.
    epochs
        Local epochs per round.
    relabel
        "": never; "pass", "collected": every client re-labels in every round, with a pass over its samples or without.
    half
        Which half of a round's clients a bare process trains; None for the engine.
    """

    source: str = "fashion_mnist"
    samples: int = 0
    model: str = "mlp"
    hidden: int = 200
    clients: int = 100
    chosen: int = 100
    workers: int = 2
    lots: int = 0
    epochs: int = 1
    relabel: str = ""
    half: int | None = None

    def command(self) -> list[str]:
        """Return the command that does it."""
        return [sys.executable, __file__, json.dumps(asdict(self))]

    def bare(self) -> list[list[str]]:
        """Return the commands of two bare processes."""
        return [replace(self, half=half).command() for half in (0, 1)]

    def make(self, input_shape: Sequence[int]) -> Any:
        """Return what makes the model."""
        from fedrela.models import build

        options: dict[str, Any] = {"hidden": [self.hidden]} if self.model == "mlp" else {}
        return partial(build, self.model, input_shape, 10, seed=SEED, **options)


def serve_engine(task: Task) -> Iterator[None]:
    """Do a round of the engine at every step."""
    from fedrela.engine.executors import open_executor, start_early

    start_early(task.workers)
    from fedrela.algorithms import ALGORITHMS
    from fedrela.engine.problem import Plan
    from fedrela.engine.round import next_round
    from fedrela.engine.run import Run
    from fedrela.engine.run_options import RelabelPlan, TrainOptions

    data = problem(task)
    train = TrainOptions(
        rounds=ENDLESS, evaluate_every=ENDLESS, participation=task.chosen / task.clients, epochs=task.epochs,
        batch_size=BATCH, lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY,
    )  # fmt: skip
    relabel = RelabelPlan(enabled=bool(task.relabel), start=1, period=1, collected=task.relabel == "collected")
    with open_executor(task.workers) as (executor, _):
        plan = Plan(SEED, train, relabel, ALGORITHMS["fedavg"](), task.make(data.input_shape))
        run = Run(data, plan, executor)
        assert not run.note, run.note
        while True:
            assert len(next_round(run).record.admitted) == task.chosen
            yield


def serve_bare(task: Task) -> Iterator[None]:
    """Train on one half of a round's batches at every step: one model, one optimiser, and nothing federated."""
    import torch
    from torch.nn.functional import cross_entropy

    from fedrela.streams import stream

    torch.set_num_threads(1)
    data = problem(task)
    x, y = data.scaling.apply(torch.tensor(data.x_train)), torch.tensor(data.y_train)
    mine = halves([len(shard.train) for shard in data.shards])[task.half or 0]
    model = in_default_layout(task.make(data.input_shape)())
    optimiser = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    model.train()
    for turn in range(1, ENDLESS):
        for client in mine:
            ids = data.shards[client].train
            order = torch.from_numpy(ids[stream(SEED, "order", turn, client).permutation(len(ids))])
            for at in torch.split(order, BATCH):
                optimiser.zero_grad()
                torch.autograd.backward(cross_entropy(model(x[at]), y[at]))
                optimiser.step()
        yield


def in_default_layout(module: Any) -> Any:
    """Return a model as it is usually written: channels come first, as PyTorch has them where it is told nothing.

    Pooling stays before ReLU, which is faster than the usual order.
    """
    from torch import nn

    from fedrela.models.networks import ChannelsLast, Flatten

    for name, part in module.named_children():
        layers = nn.Sequential(*part) if isinstance(part, ChannelsLast) else part
        layers = nn.Flatten() if isinstance(part, Flatten) else layers
        module.add_module(name, in_default_layout(layers))
    return module


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

    imbalance = Imbalance() if task.lots else Imbalance("step", ratio=20, minority=(0, 1, 2))
    source = made((4000, 1, 28, 28)) if task.source == "made" else load(task.source)
    if task.samples:
        source = replace(source, x_train=source.x_train[: task.samples], y_train=source.y_train[: task.samples])
    return build_federation(source, Recipe(SEED, imbalance, PartitionPlan(**partition)))


def made(shape: tuple[int, ...]) -> Source:
    """Return made samples of ten classes."""
    import numpy as np

    from fedrela.data.sources import Source
    from fedrela.streams import stream

    x = stream(SEED, "made images").integers(0, 256, shape).astype(np.uint8)
    y = np.arange(len(x)) % 10
    return Source("made", x, y, x[:1000], y[:1000], tuple("0123456789"))


def run_many(clients: int) -> None:
    """Train one round of a run, folder and all, with 100 of so many clients of ten made samples each."""
    import tempfile

    from fedrela.experiment import run, start_early

    start_early()
    config = {
        "seed": SEED,
        "data": {"partition": {"kind": "iid", "clients": clients}},
        "model": {"name": "mlp", "hidden": [32]},
        "train": {"rounds": 1, "participation": 100 / clients, "epochs": 1, "batch_size": 10},
        "relabel": {"enabled": False},
    }
    with tempfile.TemporaryDirectory() as folder:
        run(config, out=f"{folder}/run", source=made((10 * clients, 1, 4, 4)), workers=2)
    print("done", flush=True)
    sys.stdin.readline()


def serve_comparison(side_by_side: bool, rounds: int) -> Iterator[None]:
    """Compare four arms with three seeds at every step; runs go on side by side, or each has all workers to itself."""
    import tempfile

    from fedrela.experiment import open_executor, start_early

    start_early()
    from fedrela.experiment.comparison import DEMO, Compare
    from fedrela.experiment.load import parse_config

    config = parse_config(DEMO | {"train": {**DEMO["train"], "rounds": rounds}})
    with open_executor(2) as (pool, _):
        while True:
            with tempfile.TemporaryDirectory() as folder:
                grid = Compare(config, f"{folder}/grid").grid
                grid.begin()
                for task in [] if side_by_side else grid.tasks:
                    for _ in grid._carry_out(task, pool):
                        pass
                for _ in grid.run(pool):
                    pass
                assert grid.finished() == len(grid.cells) == 12
            yield


def write_clients(task: Task, path: str) -> None:
    """Write a task's inputs, labels and clients, for programs that know nothing of this package."""
    import numpy as np
    import torch

    data = problem(task)
    parts = [np.asarray(shard.train) for shard in data.shards]
    x = data.scaling.apply(torch.tensor(data.x_train)).flatten(1).numpy()
    np.savez(path, x=x, y=data.y_train, ids=np.concatenate(parts), sizes=[len(part) for part in parts])


def main() -> None:
    if sys.argv[1] == "many":
        run_many(int(sys.argv[2]))
        return
    if sys.argv[1] in ("together", "apart"):
        rounds = serve_comparison(sys.argv[1] == "together", int(sys.argv[2]))
    else:
        told = Task(**json.loads(sys.argv[1]))
        if sys.argv[2:]:
            write_clients(told, sys.argv[2])
            return
        rounds = serve_engine(told) if told.half is None else serve_bare(told)
    for _ in rounds:
        print("done", flush=True)
        if not sys.stdin.readline():
            break


if __name__ == "__main__":
    main()
