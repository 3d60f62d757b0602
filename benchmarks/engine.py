"""What the engine costs beyond plain PyTorch, as ratios measured in one run (Linux).

Fashion-MNIST (`fedrela data fetch fashion_mnist`, or Debian's package dataset-fashion-mnist) with three minority classes
and IR 20, Dirichlet 0.3 over 100 clients, one local epoch, batches of 32. Each side is a process of its own that does a
round when it is told to; rounds are interleaved, so that a busy moment of the machine meets both. CPU seconds and memory
are those of a side's process and all that descend from it.

usage: python benchmarks/engine.py [--quick] [--rounds 9] [--only rounds start clients memory]

rounds    a training round with two workers against two bare processes with half of the batches each
start     from the command to the end of round 1
clients   100 of 10,000 clients a round against 100 of 100 with as many samples each
memory    peak with 10 clients a round, of 10 to 10,000, and with one and two workers

With --quick a smoke run of seconds on made data, the ratios of which mean nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrela.data.federation import Federation
    from fedrela.data.sources import Source
    from fedrela.engine.problem import Problem

SEED = 1
BATCH, LR, MOMENTUM, WEIGHT_DECAY = 32, 0.01, 0.9, 1e-5
MODELS: dict[str, dict[str, Any]] = {"mlp": {"hidden": [200]}, "cnn_small": {}}
NAMES = [str(label) for label in range(10)]
WALL_LIMIT, CPU_LIMIT, CLIENTS_LIMIT, START_LIMIT = 1.15, 1.10, 1.10, 4.0
SAMPLING = 0.02  # seconds between two looks at the memory
CONFIG = """
seed = 1
[data]
source = "{source}"
imbalance = {{ kind = "step", ratio = 20, minority = [0, 1, 2] }}
partition = {{ kind = "dirichlet", clients = {clients}, alpha = 0.3, min_size = 1 }}
[model]
name = "mlp"
hidden = [200]
[train]
rounds = 2
epochs = 1
batch_size = 32
evaluate_every = 2
[relabel]
enabled = false
[engine]
workers = 2
"""


def made() -> Source:
    """Return small images that stand in for Fashion-MNIST."""
    import numpy as np

    from fedrela.data.sources import Source
    from fedrela.streams import stream

    x = stream(SEED, "made images").integers(0, 256, (4000, 1, 28, 28)).astype(np.uint8)
    y = np.arange(4000) % 10
    return Source("made", x, y, x[:1000], y[:1000], tuple(NAMES))


def federation(task: dict[str, Any], partition: dict[str, Any]) -> Federation:
    from fedrela.data.federation import Recipe, build_federation
    from fedrela.data.imbalance import Imbalance
    from fedrela.data.partition.plan import PartitionPlan
    from fedrela.data.sources import load

    imbalance = Imbalance("step", ratio=20, minority=(0, 1, 2))
    source = made() if task["quick"] else load("fashion_mnist")
    return build_federation(source, Recipe(SEED, imbalance, PartitionPlan(**partition)))


def problem(task: dict[str, Any]) -> Problem:
    """Return Dirichlet clients, or with ``equal`` any number of clients with a hundredth of the samples each."""
    from fedrela.engine.problem import Problem
    from fedrela.experiment.build import groups_of
    from fedrela.models.inputs import Scaling
    from fedrela.records import Shard

    if task["equal"]:
        found = federation(task, {"kind": "iid", "clients": 100})
        lots = [found.shards[k % 100] for k in range(task["clients"])]
        shards: Sequence[Shard] = [Shard(k, lot.train.copy(), lot.validation) for k, lot in enumerate(lots)]
    else:
        found = federation(task, {"kind": "dirichlet", "clients": task["clients"], "alpha": 0.3})
        shards = found.shards
    scaling, groups = Scaling.fit(found.x_train), groups_of(found)
    return Problem(found.x_train, found.y_train, found.x_test, found.y_test, shards, 10, groups, scaling)


def serve_engine(task: dict[str, Any]) -> Iterator[None]:
    """Do a round of the engine at every step."""
    from fedrela.engine.forkserver import warm_up

    warm_up()
    from fedrela.algorithms import ALGORITHMS
    from fedrela.engine.loop import next_round
    from fedrela.engine.plan import RelabelPlan, TrainPlan
    from fedrela.engine.pool import Pool
    from fedrela.engine.run import Plan, Run
    from fedrela.models import build

    data = problem(task)
    train = TrainPlan(
        rounds=10**6, evaluate_every=10**6, participation=task["chosen"] / task["clients"], epochs=1, batch_size=BATCH,
        lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY,
    )  # fmt: skip
    make = partial(build, task["model"], data.input_shape, 10, seed=SEED, **MODELS[task["model"]])
    with Pool(task["workers"]) as pool:
        run = Run(data, Plan(SEED, train, RelabelPlan(enabled=False), ALGORITHMS["fedavg"](), make), pool)
        assert not run.note, run.note
        while True:
            assert len(next_round(run).record.admitted) == task["chosen"]
            yield


def serve_bare(task: dict[str, Any]) -> Iterator[None]:
    """Train on one half of a round's batches at every step: one model, one optimiser, and nothing federated."""
    import torch
    from torch.nn.functional import cross_entropy

    from fedrela.models import build
    from fedrela.streams import stream

    torch.set_num_threads(1)
    data = problem(task)
    x, y = data.scaling.apply(torch.tensor(data.x_train)), torch.tensor(data.y_train)
    halves: list[list[int]] = [[], []]
    load = [0, 0]
    for client in sorted(range(len(data.shards)), key=lambda k: -len(data.shards[k].train)):
        lighter = load.index(min(load))
        halves[lighter].append(client)
        load[lighter] += len(data.shards[client].train)
    model = build(task["model"], data.input_shape, 10, seed=SEED, **MODELS[task["model"]])
    optimiser = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    model.train()
    for turn in range(1, 10**6):
        for client in halves[task["half"]]:
            ids = data.shards[client].train
            order = torch.from_numpy(ids[stream(SEED, "order", turn, client).permutation(len(ids))])
            for at in order.split(BATCH):
                optimiser.zero_grad()
                cross_entropy(model(x[at]), y[at]).backward()
                optimiser.step()
        yield


def serve(task: dict[str, Any]) -> None:
    """Do a round, say so, and wait to be told to go on."""
    for _ in {"engine": serve_engine, "bare": serve_bare}[task["role"]](task):
        print("done", flush=True)
        if not sys.stdin.readline():
            return


class Side:
    """Processes of one role, which do their rounds at the same time."""

    def __init__(self, *tasks: dict[str, Any]) -> None:
        self.began, self.peak = time.perf_counter(), 0
        command = [sys.executable, __file__, "--serve"]
        self.processes = [
            subprocess.Popen([*command, json.dumps(task)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for task in tasks
        ]

    def wait(self, *, watch: bool = False) -> float:
        """Return the seconds from the beginning of the round until all have done it."""
        for process in self.processes:
            assert process.stdout is not None
            while watch and not select.select([process.stdout], [], [], SAMPLING)[0]:
                self.peak = max(self.peak, sum(map(pss, self.family())))
            if process.stdout.readline() != "done\n":
                raise SystemExit(f"{process.args}: it ended before its time")
        return time.perf_counter() - self.began

    def round(self, *, watch: bool = False) -> tuple[float, float]:
        """Do a round and return its wall and CPU seconds."""
        family = self.family()
        before, self.began = sum(map(cpu, family)), time.perf_counter()
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return self.wait(watch=watch), sum(map(cpu, family)) - before

    def family(self) -> list[int]:
        """Return the ids of the processes and of all that descend from them."""
        parents: dict[int, int] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it has ended
                parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        found = [process.pid for process in self.processes]
        for member in found:
            found += [child for child, parent in parents.items() if parent == member]
        return found

    def close(self) -> None:
        for process in self.processes:
            process.communicate()


def cpu(process: int) -> float:
    """Return the CPU seconds of a process, by the clock that Linux has for each: /proc counts in hundredths only."""
    return time.clock_gettime(~process << 3 | 2)


def pss(process: int) -> int:
    """Return the memory of a process in bytes, what it shares with others divided among them."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
    return 0


def compare(what: str, ours: Side, theirs: Side, rounds: int, limits: tuple[float, float]) -> None:
    """Let both sides do rounds in turn and print the ratios of the medians, with the quartiles of the single ratios."""
    ours.wait()
    theirs.wait()
    pairs = [(ours.round(), theirs.round()) for _ in range(rounds)]
    for k, (unit, limit) in enumerate(zip(("wall", "CPU"), limits, strict=True)):
        mine, other = [pair[0][k] for pair in pairs], [pair[1][k] for pair in pairs]
        ratio = statistics.median(mine) / statistics.median(other)
        low, _, high = statistics.quantiles([a / b for a, b in zip(mine, other, strict=True)])
        seconds = f"{statistics.median(mine):6.2f} s / {statistics.median(other):6.2f} s"
        print(f"{what:<34} {unit:<4} {seconds}   {ratio:5.2f} ({low:.2f} to {high:.2f}){verdict(ratio, limit)}")
    ours.close()
    theirs.close()


def verdict(value: float, limit: float) -> str:
    return f"   at most {limit:.2f}: {'kept' if value <= limit else 'MISSED'}"


def training_rounds(task: dict[str, Any], rounds: int) -> None:
    for model in MODELS:
        chosen = task | {"model": model}
        bare = Side(*({**chosen, "role": "bare", "half": half} for half in (0, 1)))
        compare(f"{model}: engine / bare PyTorch", Side(chosen), bare, rounds, (WALL_LIMIT, CPU_LIMIT))


def first_round(task: dict[str, Any], rounds: int) -> None:
    def library() -> float:
        side = Side(task)
        seconds = side.wait()
        side.close()
        return seconds

    runs: dict[str, Callable[[], float | None]] = {"from Python": library, "fedrela run": partial(command_line, task)}
    for name, start in runs.items():
        seconds = [start() for _ in range(3)]
        told = [value for value in seconds if value is not None]
        if told:
            shown = f"{statistics.median(told):6.2f} s ({min(told):.2f} to {max(told):.2f})"
            print(f"{'to the end of round 1, ' + name:<40}{shown}{verdict(statistics.median(told), START_LIMIT)} (idle)")
        else:
            print(f"{'to the end of round 1, ' + name:<40}not measured: the verb is missing or fails")


def command_line(task: dict[str, Any]) -> float | None:
    """Return the seconds until `fedrela run` has written its first round."""
    with tempfile.TemporaryDirectory() as folder:
        config, out = Path(folder, "config.toml"), Path(folder, "run")
        config.write_text(CONFIG.format(source="digits" if task["quick"] else "fashion_mnist", clients=task["clients"]))
        program = Path(sys.executable).with_name("fedrela")
        began = time.perf_counter()
        process = subprocess.Popen(
            [program, "run", config, "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        written = out / "rounds.jsonl"
        while process.poll() is None and not (written.exists() and written.stat().st_size):
            time.sleep(0.005)
        seconds = time.perf_counter() - began
        process.terminate()
        process.wait()
        return seconds if written.exists() and written.stat().st_size else None


def many_clients(task: dict[str, Any], rounds: int) -> None:
    few, many = (Side(task | {"equal": True, "clients": clients, "chosen": 100}) for clients in (100, 10_000))
    compare("mlp: 100 of 10,000 / 100 of 100", many, few, rounds, (CLIENTS_LIMIT, CLIENTS_LIMIT))


def memory(task: dict[str, Any], rounds: int) -> None:
    for workers in (1, 2):
        for clients in (10, 100, 1_000, 10_000):
            side = Side(task | {"equal": True, "clients": clients, "chosen": 10, "workers": workers})
            side.wait(watch=True)
            for _ in range(3):
                side.round(watch=True)
            print(f"peak memory, {workers} worker(s), {clients:>6,} clients   {side.peak / 2**20:7.0f} MiB")
            side.close()


def main() -> None:
    parts = {"rounds": training_rounds, "start": first_round, "clients": many_clients, "memory": memory}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke run on made data")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each side that is compared, at least 7")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--serve", type=json.loads, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.serve:
        serve(told.serve)
        return
    clients = 20 if told.quick else 100
    task = {
        "role": "engine", "quick": told.quick, "equal": False, "model": "mlp", "clients": clients, "chosen": clients,
        "workers": 2,
    }  # fmt: skip
    for name in told.only:
        parts[name](task, 3 if told.quick else max(told.rounds, 7))


if __name__ == "__main__":
    main()
