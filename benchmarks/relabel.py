"""How fast is `fedrela.relabel`, as ratios measured in one run.

Against `numpy.partition(Q, k, axis=0)` on the C-ordered float64 posterior (no method that needs a quantile a column
does with less), and against the official per-sample procedure, written from its description in `tests/reference.py`.
Rounds are interleaved, so that a busy moment of the machine meets all of them.

usage: python benchmarks/relabel.py [--rounds 7]
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fedrela

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

TAU = 0.05


def client(n: int, C: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a long-tailed client with the softmax posterior of a fair model."""
    rng = np.random.default_rng(0)
    weight = 1.0 / np.arange(1, C + 1)
    y = rng.choice(C, n, p=weight / weight.sum())
    Q = rng.standard_normal((n, C))
    Q[np.arange(n), y] += 3.0
    np.exp(Q, out=Q)
    Q /= Q.sum(axis=1, keepdims=True)
    return Q, y


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def interleaved(rounds: int, *actions: Callable[[], object]) -> list[np.ndarray]:
    """Time the actions in turn, `rounds` times each."""
    times = [[seconds(action) for action in actions] for _ in range(rounds)]
    return list(np.array(times).T)


def against_partition(n: int, C: int, rounds: int) -> None:
    Q, y = client(n, C)
    rank = int(np.ceil((n - 1) * (1 - TAU)))
    tracemalloc.start()
    done = fedrela.relabel(Q, y, tau=TAU)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    ours, theirs = interleaved(rounds, lambda: fedrela.relabel(Q, y, tau=TAU), lambda: np.partition(Q, rank, axis=0))
    ratio = np.median(ours) / np.median(theirs)
    spread = np.quantile(ours / theirs, [0.25, 0.75])
    print(
        f"n={n:>7,} C={C:>5,}  relabel {np.median(ours) * 1e3:8.1f} ms  partition {np.median(theirs) * 1e3:8.1f} ms  "
        f"ratio {ratio:.2f} (quartiles {spread[0]:.2f} to {spread[1]:.2f}, at most 3)  "
        f"peak memory {peak / Q.nbytes:.2f} x posterior (at most 3)  moved {done.moved.size:,}"
    )


class FreshDraws:
    """A vector of draws per sample, made on request, as in the official procedure."""

    def __init__(self, C: int) -> None:
        self.C, self.rng = C, np.random.default_rng(1)

    def __getitem__(self, sample: int) -> np.ndarray:
        return self.rng.random(self.C)


def against_official(n: int, C: int, rounds: int) -> None:
    from helpers import reference

    Q, y = client(n, C)
    ours, theirs = interleaved(
        rounds,
        lambda: fedrela.relabel(Q, y, tau=TAU, preset="official"),
        lambda: reference.official(Q, y, C, TAU, FreshDraws(C)),
    )
    U = np.random.default_rng(1).random((n, C))
    done = fedrela.relabel(Q, y, tau=TAU, preset="official", uniforms=U)
    same = np.array_equal(done.labels, reference.official(Q, y, C, TAU, U)[0])
    mine, loop = np.median(ours) * 1e3, np.median(theirs) * 1e3
    print(
        f"n={n:>7,} C={C:>5,}  relabel {mine:8.1f} ms  official loop {loop:8.1f} ms  "
        f"{loop / mine:.1f} times faster (at least 8)  same draws, same labels: {same}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    against_partition(50_000, 100, rounds)
    against_official(50_000, 100, max(rounds // 2, 1))
    against_partition(100_000, 1000, max(rounds // 2, 1))
