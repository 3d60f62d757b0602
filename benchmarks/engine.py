"""What the engine costs beyond plain PyTorch, as ratios measured in one run (Linux).

Fashion-MNIST (`fedrela data fetch fashion_mnist`, or Debian's package dataset-fashion-mnist) with three minority
classes and IR 20, Dirichlet 0.3 over 100 clients, one local epoch, batches of 32. Each side has processes of its own
that do a round when they are told to; rounds are interleaved, so that a busy moment of the machine meets both. CPU
seconds and memory are those of a side's processes and of all that descend from them.

usage: python benchmarks/engine.py [--quick] [--rounds 9] [--only rounds start clients memory]

rounds    a training round with two workers against two bare processes with half of the batches each
start     from the command to the end of round 1
clients   100 of 10,000 clients a round against 100 of 100 with as many samples each
memory    peak with 10 clients a round, of 10 to 10,000, and with one and two workers: memory of its own, and beside it
          files such as libraries and the data set, each page divided among all processes that map it

With --quick a smoke run on made data, the ratios of which mean nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from engine_sides import MODELS, Task
from sides import Side, cpu, family

WALL_LIMIT, CPU_LIMIT, CLIENTS_LIMIT, START_LIMIT = 1.15, 1.10, 1.10, 4.0
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
lr = 0.01
evaluate_every = 2
[relabel]
enabled = false
[engine]
workers = 2
"""

Start = tuple[float, float]  # wall and CPU seconds


def compare(what: str, ours: Side, theirs: Side, rounds: int, limits: tuple[float, float]) -> None:
    """Let both sides do rounds in turn and print the ratio of the medians, and the quartiles of the pairs' ratios.

    A ratio outside these quartiles says that the machine's load changed meanwhile: then repeat.
    """
    ours.wait()
    theirs.wait()
    pairs = [(ours.round(), theirs.round()) for _ in range(rounds)]
    for k, (unit, limit) in enumerate(zip(("wall", "CPU"), limits, strict=True)):
        mine, other = [pair[0][k] for pair in pairs], [pair[1][k] for pair in pairs]
        ratio = statistics.median(mine) / statistics.median(other)
        quartiles = statistics.quantiles([a / b for a, b in zip(mine, other, strict=True)])
        pairs_ratios = ", ".join(f"{value:.2f}" for value in quartiles)
        seconds = f"{statistics.median(mine):6.2f} s / {statistics.median(other):6.2f} s"
        print(f"{what:<34} {unit:<4} {seconds}   {ratio:5.2f} ({pairs_ratios})   {verdict(ratio, limit)}")
    ours.close()
    theirs.close()


def verdict(value: float, limit: float) -> str:
    return f"at most {limit:.2f}: {'kept' if value <= limit else 'MISSED'}"


def training_rounds(task: Task, rounds: int) -> None:
    for model in MODELS:
        chosen = replace(task, model=model)
        bare = Side(*(replace(chosen, half=half).command() for half in (0, 1)))
        compare(f"{model}: engine / bare PyTorch", Side(chosen.command()), bare, rounds, (WALL_LIMIT, CPU_LIMIT))


def first_round(task: Task, rounds: int) -> None:
    starts: dict[str, Callable[[Task], Start]] = {"from Python": from_python, "fedrela run": command_line}
    for name, start in starts.items():
        wall, used = zip(*(start(task) for _ in range(1 if task.quick else 3)), strict=True)
        seconds = f"{statistics.median(wall):6.2f} s ({min(wall):.2f} to {max(wall):.2f})"
        print(f"{'to the end of round 1, ' + name:<38} {seconds}, {statistics.median(used):.2f} s of CPU", end="   ")
        print(verdict(statistics.median(wall), START_LIMIT), f"(idle; load average {os.getloadavg()[0]:.1f})")


def from_python(task: Task) -> Start:
    side = Side(task.command())
    seconds = side.wait(), sum(map(cpu, side.members()))
    side.close()
    return seconds


def command_line(task: Task) -> Start:
    """Return the seconds until `fedrela run` has written its first round."""
    with tempfile.TemporaryDirectory() as folder:
        config, out = Path(folder, "config.toml"), Path(folder, "run")
        config.write_text(CONFIG.format(source="digits" if task.quick else "fashion_mnist", clients=task.clients))
        program = Path(sys.executable).with_name("fedrela")
        began = time.perf_counter()
        process = subprocess.Popen([program, "run", config, "--out", out], stdout=subprocess.DEVNULL)
        written = out / "rounds.jsonl"
        while not (written.exists() and written.stat().st_size):
            if process.poll() is not None:
                raise SystemExit("fedrela run ended before its first round")
            time.sleep(0.005)
        seconds = time.perf_counter() - began, sum(map(cpu, family([process.pid])))
        process.wait()
        return seconds


def many_clients(task: Task, rounds: int) -> None:
    few, many = (Side(replace(task, lots=100, clients=clients, chosen=100).command()) for clients in (100, 10_000))
    compare("mlp: 100 of 10,000 / 100 of 100", many, few, rounds, (CLIENTS_LIMIT, CLIENTS_LIMIT))


def memory(task: Task, rounds: int) -> None:
    lots = 100 if task.quick else 10_000  # few samples each, so that what grows is due to the clients
    between = () if task.quick else (100, 1_000)
    peak = {(k, n): peak_memory(task, k, n, lots) for n in (1, 2) for k in (10, *between, 10_000)}
    clients, workers = peak[10_000, 2] / peak[10, 2], peak[10, 2] / peak[10, 1]
    print(f"memory of its own, 10,000 / 10 clients   {clients:5.2f}   {verdict(clients, CLIENTS_LIMIT)}")
    print(f"memory of its own, 2 / 1 workers         {workers:5.2f}")
    if not task.quick:
        peak_memory(task, 10_000, 2, 100)


def peak_memory(task: Task, clients: int, workers: int, lots: int) -> int:
    side = Side(replace(task, lots=lots, clients=clients, chosen=10, workers=workers).command())
    side.wait(watch=True)
    for _ in range(5):
        side.round(watch=True)
        side.look_at_memory()
    side.close()
    what = f"{workers} worker{'s' * (workers > 1)}, {clients:,} clients with 1/{lots:,} of the samples"
    print(f"peak memory, {what:<53} {side.own / 2**20:5.0f} MiB + {side.mapped / 2**20:.0f} MiB of files")
    return side.own


def main() -> None:
    parts = {"rounds": training_rounds, "start": first_round, "clients": many_clients, "memory": memory}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke run on made data")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each side that is compared, at least 7")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    told = parser.parse_args()
    clients = 20 if told.quick else 100
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before this run")
    for name in told.only:
        parts[name](Task(told.quick, clients=clients, chosen=clients), 3 if told.quick else max(told.rounds, 7))


if __name__ == "__main__":
    main()
