"""Reduce the goldens of the official FedReLa functions to what the repository carries.

usage: python tests/goldens/reduce.py FOLDER_OF_FULL_GOLDENS

Kept: posteriors, labels, all thresholds and final labels; the uniforms where a rate is positive at the largest tau
(elsewhere no draw can succeed); z, rates and probabilities of every `step`-th sample.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

CASES = (
    "c10_n500", "c100_n1200", "constant_n80", "equal_freq_n100", "one_sample_n1", "single_class_n60", "tiny_n37",
)  # fmt: skip


def reduce(full: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    small = {key: full[key] for key in ("Q32", "y", "taus", "off64_priors", "paper_varpi")}
    step = 10 if full["y"].size < 1000 else 60
    small["step"] = np.array(step)
    for tau in full["taus"]:
        for key in (f"off64_thr_{tau}", f"off64_label_{tau}", f"paper_thr_{tau}", f"paper_label_{tau}"):
            small[key] = full[key]
        for key in (f"off64_flip_{tau}", f"paper_rho_{tau}"):
            if key in full:
                small[key] = full[key][::step]
    for key in ("off64_z", "paper_z"):
        small[key] = full[key][::step]
    largest = full["taus"].max()
    open_draws = np.zeros(full["U"].shape, bool)
    for z, thr in (("off64_z", f"off64_thr_{largest}"), ("paper_z", f"paper_thr_{largest}")):
        gain = full["off64_priors"] - full["off64_priors"][full["y"]][:, None]
        open_draws |= (full[z] > full[thr] - 1e-9) & (gain > 0)
    small["U_at"] = np.flatnonzero(open_draws).astype(np.int32)
    small["U_value"] = full["U"].ravel()[small["U_at"]]
    return small


def main(folder: str) -> None:
    for case in CASES:
        with np.load(Path(folder) / f"fedrela_{case}.npz") as full:
            out = Path(__file__).parent / f"fedrela_{case}.npz"
            np.savez_compressed(out, **reduce(dict(full)))
        print(out.name, out.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1])
