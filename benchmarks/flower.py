"""What the adapter costs beyond Flower's own FedAvg, as a ratio measured in one run of Flower's simulator (Linux).

Made images of 28 x 28 over 10 clients which all take part, one CPU each of two. Ours is a round as `serve` does it with
clients of ours: the engine's loop, its gate and its run folder here, a state on disk there. Theirs is a round of
Flower's ``FedAvg`` on the same grid: ``configure_train``, ``send_and_receive``, ``aggregate_train``; its client trains
with the same code on the same samples in the same processes, and keeps nothing. Nobody scores. Rounds are interleaved
(ours, theirs, theirs, ours ..) after a pair to warm up, after which both must have the same weights. CPU seconds are
those of this process and of all that descend from it.

usage: python benchmarks/flower.py [--quick] [--rounds 10] [--model mlp cnn_small] [--relabel]

With --relabel our clients re-label while they warm up, and read and keep their labels in every round from then on.
With --quick a smoke run, the ratios of which mean nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is loaded

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import recorddict_to_proto
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from sides import cpu, family

from fedrela.engine.tasks import Task
from fedrela.experiment.flower_app import flower_client, serve
from fedrela.experiment.load import config_toml, parse_config
from fedrela.experiment.recorded_run import RecordedRun
from fedrela.experiment.schema import Config
from fedrela.flower.client_app import FlowerClient, client_of
from fedrela.flower.simulator import simulate
from fedrela.models.runtime import one_thread
from fedrela.records import RoundRecord
from fedrela.streams import stream

SEED, CLIENTS, CORES, SAMPLES = 1, 10, 2, 10_000
LIMIT, SHORTEST = 1.05, 2.0  # of the ratio of wall seconds, and the seconds of a round that it is asked for
EPOCHS = {"mlp": 18, "cnn_small": 3}
CLOSE = 1e-6  # between weights: Flower sums in float32 and in order of arrival


def config_of(folder: Path, model: str, rounds: int, *, relabel: bool, quick: bool) -> Config:
    """Return a configuration of made images, which are written into a folder."""
    samples = 500 if quick else SAMPLES
    x = stream(SEED, "made images").integers(0, 256, (samples, 28, 28)).astype(np.uint8)
    y = np.arange(samples) % 10
    np.savez(folder / "made.npz", x_train=x, y_train=y, x_test=x[:100], y_test=y[:100])
    return parse_config({
        "seed": SEED,
        "data": {
            "source": "npz", "root": str(folder), "options": {"file": "made.npz"},
            "partition": {"kind": "iid", "clients": CLIENTS},
        },
        "model": {"name": model},
        "train": {
            "rounds": rounds, "evaluate_every": rounds, "epochs": 1 if quick else EPOCHS[model], "batch_size": 32,
            "lr": 0.01, "momentum": 0.9,
        },
        "relabel": {"enabled": relabel, "start": 1},
    })  # fmt: skip


def client_app(text: str, state: str) -> ClientApp:
    """Return the app of clients that serve both sides, each process with one model."""
    app, client = ClientApp(), partial(flower_client, text, state)

    @app.query("hello")
    def hello(message: Message, context: Context) -> Message:
        return client().hello(message, context)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        theirs = "server-round" in message.content.config_records["config"]
        return plain_round(client(), message, context) if theirs else client().answer(message, context)

    return app


def plain_round(client: FlowerClient, message: Message, context: Context) -> Message:
    """Train as anybody's client would: load what came, train, send weights and number of samples."""
    config = message.content.config_records["config"]
    weights = message.content.array_records["arrays"]["weights"].numpy()
    broadcast = client.memory.write_broadcast({"weights": weights})
    uploads = client.memory.allocate("uploads", client.runner.arrays.upload)
    with one_thread():
        round = int(str(config["server-round"]))
        samples = client.runner(Task("train", round, client_of(context), broadcast.handle, uploads.handle, 0)).samples
    arrays = ArrayRecord({"weights": Array(uploads.row()["weights"])})
    return Message(RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": samples})}), reply_to=message)


class Match:
    """Rounds of both sides on one grid: `on_round` is called between rounds of ours, and has theirs done.

    Attributes
    ----------
    ours, theirs
        Wall and CPU seconds of each round.
    """

    def __init__(self, grid: Grid, pairs: int) -> None:
        self.grid, self.last = grid, pairs + 1
        self.ours: list[tuple[float, float]] = []
        self.theirs: list[tuple[float, float]] = []
        self.strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=CLIENTS, min_available_nodes=CLIENTS)
        self.arrays = ArrayRecord()
        self.clock = Clock()

    def on_round(self, execution: RecordedRun, done: RoundRecord | None) -> None:
        """Note how long our round took, then do as many of theirs as are due."""
        if done is None:
            self.arrays = ArrayRecord({"weights": Array(execution.run.state.weights)})
        else:
            self.ours.append(self.clock.stop())
            assert len(done.admitted) == CLIENTS, done.excluded
        played = len(self.ours)
        while done and len(self.theirs) < min(played + (played % 2 == 0), self.last):
            self.clock = Clock()
            self.their_round(len(self.theirs) + 1)
            self.theirs.append(self.clock.stop())
        if played == 1 and not execution.run.plan.relabel.enabled:
            self.check_same(execution.run.state.weights)
        self.clock = Clock()

    def their_round(self, number: int) -> None:
        """Do a round of Flower's own strategy."""
        messages = self.strategy.configure_train(number, self.arrays, ConfigRecord(), self.grid)
        replies = list(self.grid.send_and_receive(messages, timeout=600))
        arrays, _ = self.strategy.aggregate_train(number, replies)
        assert arrays is not None
        assert sum(not reply.has_error() for reply in replies) == CLIENTS
        self.arrays = arrays

    def check_same(self, weights: np.ndarray) -> None:
        """Check that both sides did the same work."""
        apart = np.abs(weights - self.arrays["weights"].numpy()).max()
        if not apart <= CLOSE:
            raise SystemExit(f"the sides do not train alike: weights are {apart:.1e} apart after a round")


class Clock:
    """Wall and CPU seconds from now on, of this process and of all that descend from it."""

    def __init__(self) -> None:
        self.members = family([os.getpid()])
        self.used, self.began = self.cpu(), time.perf_counter()

    def stop(self) -> tuple[float, float]:
        """Return the seconds until now."""
        return time.perf_counter() - self.began, self.cpu() - self.used

    def cpu(self) -> float:
        """Return the CPU seconds so far."""
        total = 0.0
        for process in self.members:
            with contextlib.suppress(OSError):  # it has ended
                total += cpu(process)
        return total


class Scales:
    """Lays aside the messages of the first pair of rounds on a grid, ours and then theirs, to be weighed at the end."""

    def __init__(self, grid: Grid) -> None:
        self.down: list[Message] = []
        self.up: list[Message] = []
        push, pull = grid.push_messages, grid.pull_messages

        def pushed(messages: Iterable[Message]) -> Iterable[str]:
            return push(self.aside(messages, self.down))

        def pulled(message_ids: Iterable[str]) -> Iterable[Message]:
            return self.aside(pull(message_ids), self.up)

        vars(grid).update(push_messages=pushed, pull_messages=pulled)

    @staticmethod
    def aside(messages: Iterable[Message], kept: list[Message]) -> list[Message]:
        """Return the messages, of which those of training are kept as well."""
        messages = list(messages)
        if len(kept) < 2 * CLIENTS:
            kept += [message for message in messages if message.metadata.message_type == "train"]
        return messages

    def __str__(self) -> str:
        sizes = (
            [recorddict_to_proto(kept[k].content).ByteSize() for k in (0, CLIENTS)] for kept in (self.down, self.up)
        )
        return ", ".join(f"{way} {o:,} / {t:,}" for way, (o, t) in zip(("down", "up"), sizes, strict=True))


def compare(model: str, pairs: int, *, relabel: bool, quick: bool) -> None:
    """Let both sides do rounds in turn, and print the ratio of the medians and the quartiles of the pairs' ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rounds = pairs + 2  # a pair to warm up; the last round of ours scores
        config = config_of(folder, model, rounds, relabel=relabel, quick=quick)
        app = client_app(config_toml(config), str(folder / "clients"))

        def work(grid: Grid) -> tuple[Match, Scales]:
            scales, match = Scales(grid), Match(grid, pairs)
            serve(config, grid, out=folder / "run", experiment="benchmark", on_round=match.on_round)
            return match, scales

        match, scales = simulate(work, app, CLIENTS, CORES)
    played = list(zip(match.ours[1 : pairs + 1], match.theirs[1:], strict=True))
    for k, unit in enumerate(("wall", "CPU")):
        ours, theirs = [pair[0][k] for pair in played], [pair[1][k] for pair in played]
        ratio = statistics.median(ours) / statistics.median(theirs)
        quartiles = statistics.quantiles(a / b for a, b in zip(ours, theirs, strict=True))
        seconds = f"{statistics.median(ours):6.3f} s / {statistics.median(theirs):6.3f} s"
        spread = f"from {min(ours):.2f} to {max(ours):.2f} s, from {min(theirs):.2f} to {max(theirs):.2f} s"
        between = ", ".join(f"{quartile:.3f}" for quartile in quartiles)
        print(f"{model:<9} {unit:<4} {seconds}   {ratio:.3f} ({between})   {spread}")
        if unit == "wall":
            print(f"{model:<9} at most {LIMIT:.2f}: {verdict(ratio, quartiles, min(theirs))}")
    print(f"{model:<9} bytes of a message, ours / theirs: {scales}", flush=True)


def verdict(ratio: float, quartiles: Sequence[float], shortest: float) -> str:
    if shortest < SHORTEST:
        return f"not told by rounds of less than {SHORTEST:.0f} s"
    if quartiles[2] - quartiles[0] > 2 * (LIMIT - 1):
        return "not told by pairs that differ so much; repeat when the machine is idle"
    return "kept" if ratio <= LIMIT else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of each side, at least 10")
    parser.add_argument("--model", nargs="+", choices=EPOCHS, default=list(EPOCHS))
    parser.add_argument("--relabel", action="store_true", help="clients re-label in their first round")
    told = parser.parse_args()
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before this run")
    for model in told.model:
        compare(model, 2 if told.quick else max(told.rounds, 10), relabel=told.relabel, quick=told.quick)


if __name__ == "__main__":
    main()
