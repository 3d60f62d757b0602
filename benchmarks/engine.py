"""What the engine costs beyond plain PyTorch, and what its peers cost, measured in one run (Linux).

Each side has processes of its own that do a round when they are told to; rounds are interleaved, so that a busy moment
of the machine meets all sides. CPU seconds and memory are those of a side's processes and of all that descend from
them. Every number is a median with its quartiles, beside it the load average while it was measured. All goes into
``benchmarks/results.json`` and the table of ``docs/explanation/performance.md``; parts that are not run keep their last
numbers.

usage: python benchmarks/engine.py [--quick] [--rounds 15] [--only PART ...]

rounds    a training round with two workers against two bare PyTorch processes with half of the batches each
relabel   a round in which all clients re-label against a normal one
compare   twelve small runs (four arms, three seeds) side by side against one after the other
clients   100 of 10,000 clients a round against 100 of 100 with as many samples each; a run of 100,000 clients
start     CPU seconds of `fedrela --help` and of imports; `fedrela run` to the end of round 1
memory    peak of all processes
peers     pfl and Flower on the same clients; each in an environment that is built on first use

With --quick a smoke run on made data, without peers, which is not kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from engine_sides import Task
from sides import Side

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks/results.json", ROOT / "docs/explanation/performance.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
ENVIRONMENTS = ROOT / "benchmarks/.envs"
PEERS = {"pfl": "pfl==0.6.0", "flwr": "flwr[simulation]==1.41.0"}
TORCH = "torch==2.13.0"

MLP = Task()
DIGITS = Task("digits", hidden=64, lots=100)
SETTINGS: dict[str, tuple[Task, float]] = {  # with the ratio to reach
    "MLP 784-200-10, Fashion-MNIST": (MLP, 0.60),
    "cnn_small, Fashion-MNIST": (replace(MLP, model="cnn_small"), 0.85),
    "simple_cnn, Fashion-MNIST": (replace(MLP, model="simple_cnn"), 0.85),
    "resnet8, 600 of Fashion-MNIST, 20 clients": (
        replace(MLP, model="resnet8", samples=600, clients=20, chosen=20, lots=20),
        0.95,
    ),
    "MLP 64-64-10, digits, 14 samples per client": (DIGITS, 1.30),
}
SHORT = 0.5  # seconds: rounds below are measured three times as often


@dataclass(frozen=True)
class Row:
    """One number: the median and its quartiles, what to reach, and how it was measured."""

    part: str
    what: str
    unit: str
    low: float
    median: float
    high: float
    limit: float | None
    measurements: int
    load: float

    @classmethod
    def of(cls, part: str, what: str, values: Sequence[float], limit: float | None = None, unit: str = "ratio") -> Row:
        """Return the row of some values, and print it."""
        low, median, high = statistics.quantiles(values, method="inclusive") if len(values) > 1 else [values[0]] * 3
        load = round(os.getloadavg()[0], 1)
        row = cls(part, what, unit, round(low, 4), round(median, 4), round(high, 4), limit, len(values), load)
        print(" | ".join(row.cells()), flush=True)
        return row

    def cells(self) -> list[str]:
        """Return the cells of its row in the table."""
        digits = 0 if self.unit == "MB" else 3 if self.median < 0.1 else 2
        value = f"{self.median:.{digits}f}" + ("" if self.unit == "ratio" else f" {self.unit}")
        spread = f"{self.low:.{digits}f} to {self.high:.{digits}f}"
        goal = "" if self.limit is None else f"{self.limit:g}"
        return [self.what, value, spread, goal, str(self.measurements), f"{self.load:.1f}"]


Times = list[tuple[float, float]]  # wall and CPU seconds of each round


def interleaved(sides: Sequence[Side], rounds: int) -> list[Times]:
    """Let all sides do rounds in turn, look at their memory, and end them."""
    for side in sides:
        side.wait()
    done = [[side.round() for side in sides] for _ in range(rounds)]
    if rounds > 2 and max(wall for wall, _ in done[-1]) < SHORT:
        done += [[side.round() for side in sides] for _ in range(2 * rounds)]
    for side in sides:
        side.look_at_memory()
        side.close()
    return [list(times) for times in zip(*done, strict=True)]


def ratios(ours: Times, theirs: Times) -> list[float]:
    return [a[0] / b[0] for a, b in zip(ours, theirs, strict=True)]


def training_rounds(rounds: int, quick: bool) -> list[Row]:
    rows = []
    for name, (task, limit) in SETTINGS.items():
        chosen = small(task) if quick else task
        ours, bare = interleaved([Side(chosen.command()), Side(*chosen.bare())], rounds)
        rows.append(Row.of("rounds", f"{name}: round / two bare processes", ratios(ours, bare), limit))
        if task is DIGITS:
            extra = [1000 * (a[1] - b[1]) / chosen.chosen for a, b in zip(ours, bare, strict=True)]
            rows.append(Row.of("rounds", f"{name}: CPU per client beyond the bare loop", extra, 0.6, "ms"))
    return rows


def relabelling(rounds: int, quick: bool) -> list[Row]:
    rows = []
    for epochs, name in ((5, "five local epochs"), (1, "one local epoch")):
        task = replace(small(MLP) if quick else MLP, epochs=epochs)
        sides = [Side(replace(task, relabel=kind).command()) for kind in ("", "pass", "collected")]
        normal, once, collected = interleaved(sides, rounds)
        share = [100 * (ratio - 1) / 500 for ratio in ratios(once, normal)]
        rows += [
            Row.of("relabel", f"MLP, {name}: re-labelling round / normal round", ratios(once, normal), 1.3),
            Row.of("relabel", f"MLP, {name}: re-labelling, share of a run of 500 rounds", share, 0.5, "%"),
            Row.of("relabel", f"MLP, {name}: round with `collected` / normal round", ratios(collected, normal)),
        ]
    return rows


def comparison(rounds: int, quick: bool) -> list[Row]:
    script = str(ROOT / "benchmarks/engine_sides.py")
    length = "4" if quick else "20"
    sides = [Side([sys.executable, script, kind, length]) for kind in ("together", "apart")]
    together, apart = interleaved(sides, rounds)
    what = "`compare`, digits, 4 arms, 3 seeds: side by side / one run after the other"
    return [Row.of("compare", what, ratios(together, apart), 0.8)]


def many_clients(rounds: int, quick: bool) -> list[Row]:
    task = replace(small(MLP) if quick else MLP, lots=100, chosen=100, clients=100)
    many, few = interleaved([Side(replace(task, clients=10_000).command()), Side(task.command())], rounds)
    rows = [Row.of("clients", "MLP: round of 100 of 10,000 clients / of 100 of 100", ratios(many, few), 1.05)]
    clients = 1_000 if quick else 100_000
    side = Side([sys.executable, str(ROOT / "benchmarks/engine_sides.py"), "many", str(clients)])
    seconds = side.wait(watch=True)
    side.close()
    what = f"{clients:,} clients of 10 samples, 100 in a round"
    rows.append(Row.of("clients", f"{what}: start, first round and run folder", [seconds], 20, "s"))
    rows.append(Row.of("clients", f"{what}: peak memory of all processes", [total(side)], 1500, "MB"))
    return rows


def start_up(rounds: int, quick: bool) -> list[Row]:
    fedrela = str(Path(sys.executable).with_name("fedrela"))
    torch, own = "import torch", "import torch; from fedrela.experiment import run"
    commands = [[fedrela, "--help"], [sys.executable, "-c", torch], [sys.executable, "-c", own]]
    for command in commands:
        cpu_seconds(command)  # once, so that files are read and compiled
    first_round(fedrela)
    helped, bare, loaded = zip(*([cpu_seconds(command) for command in commands] for _ in range(rounds)), strict=True)
    task = replace(DIGITS, clients=10, chosen=10, lots=10)
    (round_times,) = interleaved([Side(*task.bare())], rounds)
    first, reference = [], []
    for k in range(rounds):
        began = time.perf_counter()
        subprocess.run(commands[1], check=True, env=installed())
        reference.append(time.perf_counter() - began + 2 * round_times[k][0])  # two epochs
        first.append(first_round(fedrela))
    added = [b - a for a, b in zip(bare, loaded, strict=True)]
    return [
        Row.of("start", "`fedrela --help`: CPU", helped, 0.35, "s"),
        Row.of("start", "`import torch`: CPU", bare, None, "s"),
        Row.of("start", "`fedrela.experiment` after torch: CPU", added, 0.3, "s"),
        Row.of(
            "start",
            "`fedrela run digits.toml` to the end of round 1 / `import torch` and the bare round",
            [a / b for a, b in zip(first, reference, strict=True)],
            1.25,
        ),
    ]


def cpu_seconds(command: Sequence[str]) -> float:
    """Return the CPU seconds of a command, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=installed())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def installed() -> dict[str, str]:
    """Return an environment in which modules are compiled once, as they are where a package is installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def first_round(fedrela: str) -> float:
    """Return the seconds until `fedrela run` has written its first round."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "run/rounds.jsonl")
        began = time.perf_counter()
        config = ROOT / "src/fedrela/cli/starters/digits.toml"
        command = [fedrela, "run", str(config), "--out", str(Path(folder, "run"))]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=installed())
        while not (written.exists() and written.stat().st_size):
            if process.poll() is not None:
                raise SystemExit("fedrela run ended before its first round")
            time.sleep(0.002)
        seconds = time.perf_counter() - began
        process.kill()  # its workers end with it
        process.wait()
        return seconds


def memory(rounds: int, quick: bool) -> list[Row]:
    rows = []
    for workers in (1, 2):
        side = Side(replace(small(MLP) if quick else MLP, workers=workers).command())
        side.wait(watch=True)
        for _ in range(3):
            side.round(watch=True)
        side.close()
        what = f"MLP, {workers} worker{'s' * (workers > 1)}: peak memory of all processes"
        rows.append(Row.of("memory", what, [total(side)], None, "MB"))
    return rows


def total(side: Side) -> float:
    return (side.own + side.mapped) / 1e6


def peers(rounds: int, quick: bool) -> list[Row]:
    rows = []
    for name, task in (("MLP 784-200-10, Fashion-MNIST", MLP), ("MLP 64-64-10, digits, 14 samples per client", DIGITS)):
        chosen = small(task) if quick else task
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/clients.npz"
            subprocess.run([*chosen.command(), file], check=True)
            for peer, release in PEERS.items():
                python = environment(peer)
                if python is None:
                    rows.append(Row.of("peers", f"{release} could not be installed here", [0.0], None, ""))
                    continue
                script = str(ROOT / f"benchmarks/{peer}_side.py")
                ranks = [[rank] for rank in "01"] if peer == "pfl" else [[]]  # Flower's simulator starts two actors
                side = Side(*([str(python), script, file, str(chosen.hidden), *rank] for rank in ranks))
                began = time.perf_counter()
                side.wait()
                started = time.perf_counter() - began
                theirs, bare = interleaved([Started(side), Side(*chosen.bare())], rounds)
                rows += [
                    Row.of("peers", f"{name}, {release}: round / two bare processes", ratios(theirs, bare)),
                    Row.of("peers", f"{name}, {release}: start and first round", [started], None, "s"),
                    Row.of("peers", f"{name}, {release}: memory of all processes", [total(side)], None, "MB"),
                ]
    return rows


class Started(Side):
    """A side that has done its first round."""

    def __init__(self, side: Side) -> None:
        self.__dict__ = side.__dict__
        self.first = True

    def wait(self, *, watch: bool = False) -> float:
        """Wait for a round, but for the first, which is done."""
        if self.first:
            self.first = False
            return 0.0
        return super().wait(watch=watch)


def environment(peer: str) -> Path | None:
    """Return the Python of a peer's own environment, which is built where it does not exist; None where it cannot."""
    folder = ENVIRONMENTS / peer
    python, ready = folder / "bin/python", folder / ".ready"
    if not ready.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", PEERS[peer], TORCH], check=True)
        except subprocess.CalledProcessError:
            return None
        ready.touch()
    return python


def small(task: Task) -> Task:
    """Return a task of seconds in place of minutes."""
    if task.source == "digits":
        return task
    return replace(task, source="made", samples=400, clients=20, chosen=20, lots=20)


PARTS: dict[str, Callable[[int, bool], list[Row]]] = {
    "rounds": training_rounds, "relabel": relabelling, "compare": comparison, "clients": many_clients,
    "start": start_up, "memory": memory, "peers": peers,
}  # fmt: skip


def table(results: dict[str, Any]) -> str:
    """Return the table of the page."""
    if not results["rows"]:
        return "Nothing has been measured since the benchmark was last changed; run `make bench`."
    rows = [Row(**row) for row in results["rows"]]
    lines = ["| what | median | quartiles | goal, at most | measurements | load |", "|---|---|---|---|---|---|"]
    parts: dict[str, list[str]] = {}
    for part, machine in results["machines"].items():
        parts.setdefault(machine, []).append(part)
    measured = [f"Measured on {machine}: {', '.join(names)}." for machine, names in parts.items()]
    return "\n".join([*lines, *(f"| {' | '.join(row.cells())} |" for row in rows), "", *measured])


def write(rows: list[Row], parts: Sequence[str]) -> None:
    """Write the results and the table of the page; parts that were not measured keep their rows."""
    from fedrela.models.runtime import processor

    kept = json.loads(RESULTS.read_text())
    merged = [row for row in kept["rows"] if row["part"] not in parts] + [asdict(row) for row in rows]
    merged.sort(key=lambda row: list(PARTS).index(row["part"]))
    versions = f"Python {platform.python_version()}, torch {version('torch')}"
    machine = f"{os.cpu_count()} cores of {processor()}, {versions}, {date.today()}"
    machines = kept["machines"] | dict.fromkeys(parts, machine)
    results = {"machines": {part: machines[part] for part in PARTS if part in machines}, "rows": merged}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table(results)}\n{END}{rest.partition(END)[2]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke run on made data, which is not kept")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each side that is compared")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts to run; all by default")
    told = parser.parse_args()
    parts = told.only or [name for name in PARTS if name != "peers" or not told.quick]
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before this run", flush=True)
    rounds = 2 if told.quick else told.rounds
    failed = []
    for name in parts:
        try:
            rows = PARTS[name](rounds, told.quick)
        except (SystemExit, OSError, subprocess.SubprocessError) as error:  # the other parts can still be measured
            print(f"{name}: {error}", file=sys.stderr)
            failed.append(name)
            continue
        if not told.quick:
            write(rows, [name])
    if failed:
        raise SystemExit(f'not measured; try again with make bench BENCH="--only {" ".join(failed)}"')


if __name__ == "__main__":
    main()
