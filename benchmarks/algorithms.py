"""What a round of each algorithm costs beside a round of FedAvg, and whether that is what its method must cost.

Made images of 28 x 28, three minority classes and IR 20, Dirichlet 0.3 over 10 clients which all take part,
`cnn_small`, one local epoch, batches of 32; every algorithm with its default parameters, but for those in `PARAMS`. All
is done in this process on one thread. A round of an algorithm stands between rounds of FedAvg, so that a busy moment of
the machine meets both; shown is the median of the ratios of their CPU seconds.

The expected cost is FedAvg's 1 and what the method adds to it by the formulas of `EXPECTED`. They count pieces of work,
such as a forward pass over all samples; `Pieces` does each of them alone, without algorithm or engine, measured beside
FedAvg likewise. No algorithm may take more than 1.3 times its expected cost. For an algorithm without a formula the
expected cost is the one it declares, `Algorithm.cost`.

usage: python benchmarks/algorithms.py [--quick] [--rounds 7] [--only moon fedrod]

With --quick a smoke run of seconds, the ratios of which mean nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is loaded

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms import ALGORITHMS, Algorithm
from fedrela.data.federation import Recipe, build_federation
from fedrela.data.imbalance import Imbalance
from fedrela.data.partition import PartitionPlan
from fedrela.data.sources import Source
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.problem import Plan, Problem
from fedrela.engine.round import next_round
from fedrela.engine.run import Run
from fedrela.engine.run_options import RelabelPlan, TrainOptions
from fedrela.experiment.build import groups_of
from fedrela.models import build
from fedrela.models.augment import strong, weak
from fedrela.models.flat_model import FlatModel
from fedrela.models.inputs import Scaling
from fedrela.models.sgd import Sgd
from fedrela.streams import stream

SEED, CLASSES, CLIENTS, PROBE = 1, 10, 10, 63
BATCH, LR, MOMENTUM, WEIGHT_DECAY = 32, 0.01, 0.9, 1e-5
LARGE = 256  # samples of a forward pass without gradients
MADE, WIDTH, RETRAIN, MATCH = 1000, 64, 30, 100  # CReFF: its features, their width, epochs and steps on them
LIMIT = 1.3
PARAMS: dict[str, dict[str, Any]] = {
    "climb": {"primal_steps": 1},  # the exchange before every round, and not before every fifth
    "creff": {"retrain_epochs": RETRAIN},  # of 300, so that its clients are seen beside its server
    "fedloge": {"frame_steps": 20},  # the frame is made before the first round
}


@dataclass(frozen=True, eq=False)
class Work:
    """Samples of each client by class, (K, C), and what the pieces of work cost in rounds of FedAvg, see `Pieces`."""

    counts: NDArray[np.int64]
    forward: float
    twice: float
    head: float
    large_head: float
    vector: float
    views: float
    neighbours: float

    @property
    def samples(self) -> int:
        """Samples of all clients."""
        return int(self.counts.sum())

    @property
    def steps(self) -> int:
        """Batches of all clients."""
        return int((-(-self.counts.sum(axis=1) // BATCH)).sum())

    @property
    def blocks(self) -> int:
        """Classes of all clients."""
        return int((self.counts > 0).sum())

    @property
    def filled(self) -> float:
        """Samples where each class of a client is as frequent as its most frequent one, relative to the real ones."""
        return float(((self.counts > 0).sum(axis=1) * self.counts.max(axis=1)).sum() / self.samples)

    def part(self, steps: float, price: float) -> float:
        """Return the cost of so many steps, from the price of one at every step of the clients."""
        return steps / self.steps * price


# Of the three units of a step one is the forward pass, one the gradient by activations, one that by weights.
EXPECTED: dict[str, tuple[Callable[[Work], float], str]] = {
    "climb": (lambda w: 1 + w.forward + 5 * w.vector, "F_i of all samples; nu, pull and clipping in the gradient"),
    "creff": (
        lambda w: 1 + w.forward + w.part(w.blocks + RETRAIN * MADE / BATCH, w.head) + w.part(3 * MATCH, w.large_head),
        "features; a head's gradient a class; the server's steps on a head, and on features through a head's gradient",
    ),
    "fedavg": (lambda w: 1, "itself"),
    "feddyn": (lambda w: 1 + 3 * w.vector, "the linear part and clipping in the gradient"),
    "fedetf": (lambda w: 1 + w.head, "BatchNorm, normalisation and fixed vectors in place of a linear layer"),
    "fedetf_original": (lambda w: 1 + w.head, "normalisation and fixed vectors behind the linear layer"),
    "fedgrab": (lambda w: 1 + w.head, "a second gradient by the logits, multiplied and counted"),
    "fedlc": (lambda w: 1, "a number added to each logit"),
    "fedloge": (lambda w: 1 + 2 * w.head, "two heads more"),
    "fedmix": (lambda w: 1 + 3 / 3, "one unit for the gradient by the input, two to go back through it"),
    "fednova": (lambda w: 1, "two numbers per client"),
    "fedprox": (lambda w: 1 + 2 * w.vector, "the pull: a difference, added to the gradient"),
    "fedrod": (lambda w: 1 + w.head, "one head more"),
    "fedyoyo": (
        lambda w: w.twice + w.views + w.forward + 2 * w.head,
        "two views a sample; features for the prior; two losses more",
    ),
    "moon": (lambda w: 1 + 2 * w.forward + w.head, "features under two frozen models; a loss on them"),
    "oversample": (lambda w: w.filled, "as many samples more"),
    "ratioloss": (lambda w: 1 + w.part(2 * CLASSES, w.twice), "two steps per class of 63 samples at the server"),
    "reweight": (lambda w: 1, "a weighted mean of the losses"),
    "scaffold": (lambda w: 1 + w.vector, "the correction of the gradient"),
    "smote": (
        lambda w: 1 + w.forward + w.neighbours + w.head,
        "features; their neighbours; the head on made features as well",
    ),
}


def problem(size: int) -> Problem:
    """Return a federation of images that are noise around a picture of their class, and a probe set."""
    rng = stream(SEED, "made images")
    y = np.arange(size) % CLASSES
    x = np.clip(rng.normal(110, 40, (CLASSES, 1, 28, 28))[y] + rng.normal(0, 60, (size, 1, 28, 28)), 0, 255)
    images = x.astype(np.uint8)
    source = Source("made", images, y, images[:100], y[:100], tuple(map(str, range(CLASSES))))
    imbalance = Imbalance("step", ratio=20, minority=(0, 1, 2))
    made = build_federation(source, Recipe(SEED, imbalance, PartitionPlan("dirichlet", clients=CLIENTS, alpha=0.3)))
    probe = np.arange(PROBE * CLASSES)
    scaling = Scaling.fit(images)
    return Problem(images, y, made.x_test, made.y_test, made.shards, CLASSES, groups_of(made), scaling, auxiliary=probe)


def begin(data: Problem, algorithm: Algorithm) -> Run:
    train = TrainOptions(
        rounds=10**6, evaluate_every=10**6, epochs=1, batch_size=BATCH, lr=LR, momentum=MOMENTUM,
        weight_decay=WEIGHT_DECAY,
    )  # fmt: skip
    make = partial(build, "cnn_small", data.input_shape, CLASSES, seed=SEED)
    return Run(data, Plan(SEED, train, RelabelPlan(enabled=False), algorithm, make), SerialExecutor())


def one_round(run: Run) -> None:
    assert len(next_round(run).record.admitted) == CLIENTS


class Pieces:
    """What does each piece of work once over, for all clients of a round; the names are those of `Work`."""

    def __init__(self, data: Problem) -> None:
        self.raw, self.labels = torch.from_numpy(data.x_train), torch.from_numpy(data.y_train)
        self.scaling, self.lots = data.scaling, [torch.from_numpy(shard.train) for shard in data.shards]
        self.batches = [at for lot in self.lots for at in torch.split(lot, BATCH)]
        self.model, self.sgd = stepped(build("cnn_small", data.input_shape, CLASSES, seed=SEED))
        self.extra, self.its_sgd = stepped(nn.Linear(WIDTH, CLASSES))
        self.rng = stream(SEED, "pieces")
        self.features = torch.from_numpy(self.rng.standard_normal((len(self.raw), WIDTH), np.float32))

    def forward(self) -> None:
        """Compute the features of all samples, without gradients."""
        split: Any = self.model.module
        with torch.no_grad():
            for at in (part for lot in self.lots for part in torch.split(lot, LARGE)):
                split.features(self.scaling.apply(self.raw.index_select(0, at)))

    def twice(self) -> None:
        """Train on batches of twice as many samples."""
        for at in self.batches:
            both = at.repeat(2)
            x = self.scaling.apply(self.raw.index_select(0, both))
            step(self.model, self.sgd, x, self.labels[both])

    def head(self) -> None:
        """At every step, train a small part beside the model: a linear head on features at hand."""
        for at in self.batches:
            step(self.extra, self.its_sgd, self.features[at], self.labels[at])

    def large_head(self) -> None:
        """The same on as many features as CReFF has."""
        for _ in self.batches:
            step(self.extra, self.its_sgd, self.features[:MADE], self.labels[:MADE])

    def vector(self) -> None:
        """At every step, do one operation on a vector as long as the weights."""
        for _ in self.batches:
            self.model.gradient.add_(self.model.weights, alpha=0.0)

    def views(self) -> None:
        """Make a weak and a strong view of every sample."""
        for at in self.batches:
            images = self.raw.index_select(0, at)
            torch.cat([weak(images, self.rng), strong(images, self.rng)])

    def neighbours(self) -> None:
        """Find each sample's neighbours among the features of its class at its client."""
        for lot in self.lots:
            of = self.labels[lot]
            for group in (lot[of == c] for c in range(CLASSES)):
                if len(group) > 1:
                    rows = self.features[group].numpy()
                    NearestNeighbors(n_neighbors=min(6, len(group))).fit(rows).kneighbors(rows)


def stepped(module: nn.Module) -> tuple[FlatModel, Sgd]:
    model = FlatModel(module)
    return model, Sgd(model.weights, model.gradient, lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)


def step(model: FlatModel, sgd: Sgd, x: Tensor, y: Tensor) -> None:
    model.zero_grad()
    torch.autograd.backward(cross_entropy(model.module(x), y))
    sgd.step()


def cpu(action: Callable[[], None]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def ratio(action: Callable[[], None], fedavg: Callable[[], None], rounds: int) -> tuple[float, float, float]:
    """Return the median and the quartiles of the ratios of rounds that follow one another."""
    base, own = zip(*((cpu(fedavg), cpu(action)) for _ in range(rounds)), strict=True)
    low, middle, high = statistics.quantiles([b / a for a, b in zip(base, own, strict=True)])
    return middle, low, high


def priced(data: Problem, fedavg: Callable[[], None], rounds: int) -> Work:
    """Measure the pieces and print them."""
    counts = np.array([np.bincount(data.y_train[shard.train], minlength=CLASSES) for shard in data.shards])
    at_hand, prices = Pieces(data), {}
    for name in (field.name for field in fields(Work) if field.name != "counts"):
        piece = getattr(at_hand, name)
        piece()  # once to warm up
        prices[name] = ratio(piece, fedavg, rounds)[0]
    work = Work(counts, **prices)
    print(f"a round: {work.samples} samples of {CLIENTS} clients in {work.steps} steps. Pieces in rounds of FedAvg:")
    print("  " + ", ".join(f"{name} {price:.3f}" for name, price in prices.items()))
    return work


def compare(name: str, data: Problem, work: Work, fedavg: Callable[[], None], rounds: int) -> None:
    """Print what an algorithm costs and should cost."""
    run = begin(data, ALGORITHMS[name](**PARAMS.get(name, {})))
    own = partial(one_round, run)
    own()  # with what is asked but once; from their second turn on clients have states
    found, low, high = ratio(own, fedavg, rounds)
    run.close()
    formula, reason = EXPECTED.get(name, (lambda _: ALGORITHMS[name].cost, "as the algorithm declares"))
    expected = formula(work)
    verdict = "kept" if found <= LIMIT * expected else "MISSED"
    shown = f"{found:5.2f} ({low:5.2f} to {high:5.2f})   {expected:5.2f}   {found / expected:5.2f}"
    print(f"{name:<16} {shown}  {verdict:<6}  {reason}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each algorithm, at least 5")
    parser.add_argument("--only", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    told = parser.parse_args()
    rounds = 2 if told.quick else max(told.rounds, 5)
    torch.set_num_threads(1)
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before this run")
    data = problem(700 if told.quick else 3000)
    base = begin(data, ALGORITHMS["fedavg"]())
    fedavg = partial(one_round, base)
    fedavg()
    work = priced(data, fedavg, rounds)
    print(f"{'round / FedAvg':<16} ratio  (quartiles)   expected  quotient, at most {LIMIT}")
    for name in told.only:
        compare(name, data, work, fedavg, rounds)
    base.close()


if __name__ == "__main__":
    main()
