"""Reduce the goldens of frames, heads, losses and the contrastive term to what the repository carries.

usage: python tests/goldens/frames_and_losses.py FOLDER_OF_FULL_GOLDENS

Left out of the copy: the 512 x 100 case of dot regression, the sparse frame after 10,000 steps, and gradients of
balanced softmax that another golden kept here equals or that differ from it in a constant only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
MOON = ("moon_con_mu1_T02_2prev", "moon_con_mu5_T05_0prev_round0", "moon_con_mu5_T05_1prev")


def load(name: str, folder: str | None = None) -> dict[str, np.ndarray]:
    with np.load(Path(folder or HERE) / f"{name}.npz") as file:
        return dict(file)


def _everything(key: str) -> bool:
    return True


KEPT: dict[str, Callable[[str], bool]] = {
    "etf_dot_regression": lambda key: not key.startswith("d512_c100"),
    "fedetf_original": _everything,
    "fedloge_sse_c": lambda key: key != "S_10000steps",
    "fedloge_realign": _everything,
    "fedrela_collect_q": _everything,
    "fedlc": _everything,
    "balanced_softmax": lambda key: "tau1.0_grad" not in key and "tau0.5_grad" not in key,
    **dict.fromkeys(MOON, _everything),
}


def small(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int16) if array.dtype.kind == "i" else array


def main(folder: str) -> None:
    for name, keep in KEPT.items():
        arrays = {key: small(array) for key, array in load(name, folder).items() if keep(key)}
        np.savez_compressed(HERE / f"{name}.npz", **arrays)
        print(name, (HERE / f"{name}.npz").stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1])
