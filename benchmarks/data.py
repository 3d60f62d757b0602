"""How fast data becomes a federation: partitions of many clients, and loading real sets where their files are.

usage: python benchmarks/data.py [--root FOLDER]

With --root (the folder that `fedrela data fetch` fills, or .npz files in the form of the source npz) the load times of
CIFAR-100 and Tiny-ImageNet are measured too: first with an empty cache, then from the cache.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedrela.data import dirichlet, iid, shards
from fedrela.data.sources import load

LABELS = np.arange(50_000) % 100
CLIENTS = 10_000


def partition(name: str, split: Callable[[], list[np.ndarray]]) -> None:
    start = time.perf_counter()
    parts = split()
    seconds = time.perf_counter() - start
    tracemalloc.start()
    split()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(part.size for part in parts) == LABELS.size
    print(f"{name:<34} {seconds:6.2f} s (under 5)   peak {peak / 1e6:6.1f} MB (under 200)")


def loading(name: str, source: str, root: Path, file: str | None) -> None:
    options: dict[str, Any] = {} if file is None else {"file": file}
    with tempfile.TemporaryDirectory() as cache:
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            found = load(source, root, cache=cache, **options)
            seconds.append(time.perf_counter() - start)
    sizes = f"{len(found.y_train):,} + {len(found.y_test):,} samples"
    print(f"{name:<34} first {seconds[0]:6.2f} s   again {seconds[1]:6.3f} s   {sizes}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, help="folder with real data sets")
    root = parser.parse_args().root
    print(f"{CLIENTS:,} clients on {LABELS.size:,} labels of 100 classes")
    for scheme in ("proportional", "multinomial", "niid_bench", "equal"):
        for min_size in (0, 1):
            split = partial(dirichlet, LABELS, CLIENTS, 0.3, seed=1, scheme=scheme, min_size=min_size)
            partition(f"dirichlet {scheme}, min_size {min_size}", split)
    partition("dirichlet official stream", lambda: dirichlet(LABELS, CLIENTS, 0.3, seed=1, numpy_seed=1))
    partition("iid", lambda: iid(LABELS, CLIENTS, seed=1))
    partition("shards of 2 classes", lambda: shards(LABELS, CLIENTS, 2, seed=1))
    for name, source, place, file in (
        ("CIFAR-100, binary folder", "cifar100", "cifar-100-binary", None),
        ("CIFAR-100, tar.gz", "cifar100", "cifar-100-binary.tar.gz", None),
        ("CIFAR-100, npz", "npz", "cifar100.npz", "cifar100.npz"),
        ("Tiny-ImageNet, image folders", "tiny_imagenet", "tiny-imagenet-200", None),
        ("Tiny-ImageNet, npz", "npz", "tinyimagenet.npz", "tinyimagenet.npz"),
    ):
        if root is None or not (root / place).exists():
            print(f"{name:<34} not measured: no {place} in --root")
        elif place.endswith(".npz"):
            loading(name, source, root, file)
        else:
            loading(name, source, root / place, None)


if __name__ == "__main__":
    main()
