"""Goldens of Ratio-Loss, Fed-GraB, CReFF and FedYoYo: reading them, and reducing them to what is carried here.

usage: python tests/goldens/class_gradients.py FOLDER_OF_FULL_GOLDENS

Left out of the copies: of Ratio-Loss's 512 features all but the first 64, with the class weights made anew from them by
the literal loops of tests/algorithms/test_ratioloss.py; the mask is of each feature by itself: it is the official one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
WHOLE = (
    "ratioloss_official_CE_alpha1d_as_called", "ratioloss_official_CE_alpha2d_intended",
    "ratioloss_official_CE_alphaNone", "fedgrab_pid_and_map", "fedgrab_pidloss_12steps_pyseed123", "creff_match_loss",
    "creff_update_feature_syn_3steps", "fedyoyo", "ratioloss_climbrepo_Ra",
)  # fmt: skip
ALPHA, FEATURES = "ratioloss_official_alpha", 64


def load(name: str, folder: str | None = None) -> dict[str, np.ndarray]:
    with np.load(Path(folder or HERE) / f"{name}.npz") as file:
        return dict(file)


def main(folder: str) -> None:
    for name in WHOLE:
        np.savez_compressed(HERE / f"{name}.npz", **load(name, folder))
    full = load(ALPHA, folder)
    small = {name: full[name][..., :FEATURES] for name in ("W_glob", "W_aux", "selected_mask")}
    np.savez_compressed(HERE / f"{ALPHA}.npz", **small)
    for name in (*WHOLE, ALPHA):
        print(name, (HERE / f"{name}.npz").stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1])
