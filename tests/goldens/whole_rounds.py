"""Goldens of whole rounds (FedNova, SCAFFOLD, FedDyn, CLIMB): reading them, and reducing them to what is carried here.

usage: python tests/goldens/whole_rounds.py FOLDER_OF_FULL_GOLDENS

Left out of the copies: nothing; integers are stored as small integers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
FEDNOVA = (
    "fednova_mom09_K5", "fednova_mom09_equal_steps_K5", "fednova_mom09_gmf05_K5",
    "fednova_mom09_mu001_K5_officialquirk", "fednova_plain_equal_steps_K5", "fednova_prox_mu001_K5",
)  # fmt: skip
SCAFFOLD = ("scaffold_niidbench_rho0p0", "scaffold_shenzebang_plain_sgd_K4")
FEDDYN = "feddyn_K3_4rounds_fullbatch"
CLIMB = ("climb_client_loss_sum_of_batch_means", "climb_dual_default_lr1_eps1", "climb_primal_fedavg")


def load(name: str, folder: str | None = None) -> dict[str, np.ndarray]:
    with np.load(Path(folder or HERE) / f"{name}.npz") as file:
        return dict(file)


def joined(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the batches of one client, (batch, sample, feature), as its samples in order."""
    return x.reshape(-1, x.shape[-1]), y.ravel()


def main(folder: str) -> None:
    for name in (*FEDNOVA, *SCAFFOLD, FEDDYN, *CLIMB):
        small = {key: a.astype(np.int16) if a.dtype.kind == "i" else a for key, a in load(name, folder).items()}
        np.savez_compressed(HERE / f"{name}.npz", **small)
        print(name, (HERE / f"{name}.npz").stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1])
