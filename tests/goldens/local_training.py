"""Goldens of NIID-Bench's local training: reading them, and reducing them to what the repository carries.

usage: python tests/goldens/local_training.py FOLDER_OF_FULL_GOLDENS

Left out of the copies: nothing; labels are stored as small integers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
FEDPROX = ("fedprox_niidbench_mu0p0", "fedprox_niidbench_mu0p01")
NAMES = ("fedavg_niidbench_local", *FEDPROX)
BATCH = 4


@dataclass(frozen=True)
class Client:
    """Samples of one client in the order in which they were trained on, and the weights it ended with."""

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    bias: np.ndarray


def load(name: str, folder: str | None = None) -> dict[str, np.ndarray]:
    with np.load(Path(folder or HERE) / f"{name}.npz") as file:
        return dict(file)


def clients(golden: dict[str, np.ndarray]) -> Iterator[Client]:
    for i, batches in enumerate(golden["n_batches"]):
        x, y = golden["X"][i, :batches], golden["Y"][i, :batches]
        yield Client(x.reshape(-1, x.shape[-1]), y.ravel(), golden["W_local"][i], golden["b_local"][i])


def main(folder: str) -> None:
    for name in NAMES:
        small = {key: a.astype(np.int16) if a.dtype.kind == "i" else a for key, a in load(name, folder).items()}
        np.savez_compressed(HERE / f"{name}.npz", **small)
        print(name, (HERE / f"{name}.npz").stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1])
