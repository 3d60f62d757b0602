"""Where the time of a client's round goes, in plain PyTorch and in the engine, by PyTorch's profiler.

usage: python benchmarks/shares.py [--rounds 3] [--write]    (--write: into docs/explanation/performance.md, too)

Both sides train the same batches in one process with one thread: half of the clients in plain PyTorch, all of them in
the engine, so shares are of a side's own time. A share is the time inside PyTorch's operators of a kind, out of
the time of as many rounds without the profiler; the rest, Python and autograd's own work, is the last row. The profiler
makes short operators look longer.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from engine_sides import Task, serve_bare, serve_engine

PAGE = Path(__file__).resolve().parents[1] / "docs/explanation/performance.md"
BEGIN, END = "<!-- shares: begin -->", "<!-- shares: end -->"
KINDS = {
    "convolutions": r"conv",
    "linear layers": r"::(addmm|mm|linear|matmul|baddbmm|bmm)",
    "SGD": r"sgd|SGD|zero_|::(add|mul)_$|foreach",
    "activations, pooling, loss": r"relu|threshold|pool|softmax|nll|cross_entropy|sum|mean|exp|log",
}
REST, OUTSIDE = "copies, layout, other operators", "Python, autograd, the round itself"
TASKS = {
    "cnn_small": Task(model="cnn_small", samples=12_000, workers=1),
    "MLP 784-200-10": Task(samples=12_000, workers=1),
    "digits, 14 samples per client": Task("digits", hidden=64, lots=100, workers=1),
}


def shares(rounds: Iterator[None], number: int) -> dict[str, float]:
    """Return the share of each kind of operator in some rounds, in per cent."""
    import torch

    torch.set_num_threads(1)
    next(rounds)  # starts everything, and records passes
    began = time.perf_counter()
    for _ in range(number):
        next(rounds)
    whole = time.perf_counter() - began
    with torch.autograd.profiler.profile(use_kineto=False) as profile:
        for _ in range(number):
            next(rounds)
    found = dict.fromkeys([*KINDS, REST], 0.0)
    for event in profile.key_averages():
        kind = next((kind for kind, pattern in KINDS.items() if re.search(pattern, event.key)), REST)
        found[kind] += event.self_cpu_time_total / 1e6
    found[OUTSIDE] = max(0.0, whole - sum(found.values()))
    return {kind: 100 * seconds / sum(found.values()) for kind, seconds in found.items()}


def table(number: int) -> str:
    """Return the shares of all tasks as a table."""
    names, columns = [], []
    for name, task in TASKS.items():
        names += [f"{name}: bare loop", "engine"]
        columns += [shares(serve_bare(replace(task, half=0)), number), shares(serve_engine(task), number)]
    lines = [f"| | {' | '.join(names)} |", "|---" * (len(columns) + 1) + "|"]
    for kind in [*KINDS, REST, OUTSIDE]:
        cells = [f"{each[kind]:.0f}" for each in columns]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rounds per side (default: 3)")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    options = parser.parse_args()
    made = table(options.rounds)
    print(made)
    if options.write:
        page = PAGE.read_text()
        PAGE.write_text(f"{page.partition(BEGIN)[0]}{BEGIN}\n{made}\n{END}{page.partition(END)[2]}")


if __name__ == "__main__":
    main()
