"""Goldens of class counts, shot splits and official partitions: reading them, and reducing them to a small copy.

usage: python tests/goldens/counts.py FOLDER_OF_FULL_GOLDENS

Left out of the copy: the `trunk_*` counts, and of the official partitions all but the cases of `KEPT`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedrela.data.imbalance import long_tail_counts

HERE = Path(__file__).parent
KEPT = (
    "c10_IF50_K40_a0p1_s1", "c10_IF50_K40_a0p1_s2", "c10_IF50_K40_a10_s3", "c10_IF100_K40_a0p3_s1",
    "c100_IF50_K10_a0p1_s1", "c100_IF50_K10_a0p3_s2", "c100_IF100_K10_a0p3_s1", "c100_IF100_K10_a10_s3",
    "c100_IF100_K50_a0p1_s1", "c100_IF100_K100_a0p1_s2",
)  # fmt: skip


@dataclass(frozen=True)
class OfficialPartition:
    """A long-tailed CIFAR set, partitioned by the official sampler, with what the official code made of it."""

    num_classes: int
    counts: np.ndarray
    clients: int
    alpha: float
    numpy_seed: int
    found: dict[str, np.ndarray]

    @property
    def labels(self) -> np.ndarray:
        return np.repeat(np.arange(self.num_classes), self.counts)

    @property
    def test_counts(self) -> np.ndarray:
        return np.full(self.num_classes, 10_000 // self.num_classes)


def load(name: str, folder: str | None = None) -> dict[str, np.ndarray]:
    with np.load(Path(folder or HERE) / f"{name}.npz") as file:
        return dict(file)


def official_partitions(folder: str | None = None) -> list[OfficialPartition]:
    arrays = load("shot_split_localtest", folder)
    prefixes = sorted({re.sub(r"(_s\d+)_.*", r"\1", key) for key in arrays})
    return [_partition(prefix, arrays) for prefix in prefixes]


def _partition(prefix: str, arrays: dict[str, np.ndarray]) -> OfficialPartition:
    classes, factor, clients, alpha, seed = re.findall(r"[a-zA-Z]+([\dp]+)", prefix)
    num_classes = int(classes)
    counts = long_tail_counts(num_classes, 50_000 // num_classes, int(factor))
    found = {key.removeprefix(f"{prefix}_"): a for key, a in arrays.items() if key.startswith(f"{prefix}_")}
    return OfficialPartition(num_classes, counts, int(clients), float(alpha.replace("p", ".")), int(seed), found)


def main(folder: str) -> None:
    kept = {
        "class_counts": lambda key: not key.startswith("trunk_"),
        "shot_split": lambda key: True,
        "shot_split_localtest": lambda key: key.startswith(tuple(f"{prefix}_" for prefix in KEPT)),
    }
    for name, keep in kept.items():
        small = {key: array.astype(np.int16) for key, array in load(name, folder).items() if keep(key)}
        np.savez_compressed(HERE / f"{name}.npz", **small)
        print(name, (HERE / f"{name}.npz").stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1])
