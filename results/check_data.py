"""Compare the data sets of the studies with those that the recorded runs used: python results/check_data.py [FOLDER].

FOLDER, by default data, holds NAME.npz as results/data.toml describes them. The digest is SHA-256 over name, type,
shape and bytes of x_train, y_train, x_test, y_test and, if clients are natural, client_train.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

ARRAYS = ("x_train", "y_train", "x_test", "y_test", "client_train")


def digest(path: Path) -> str:
    """Return the digest of a data set."""
    found = hashlib.sha256()
    with np.load(path, allow_pickle=False) as arrays:
        for name in (name for name in ARRAYS if name in arrays.files):
            array = np.ascontiguousarray(arrays[name])
            found.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()


def is_same(path: Path, entry: dict[str, Any]) -> bool:
    """Whether arrays and, if they are listed, class counts are as recorded."""
    with np.load(path, allow_pickle=False) as arrays:
        counts = np.bincount(arrays["y_train"].astype(int)).tolist()
    return digest(path) == entry["sha256"] and entry.get("train_counts", counts) == counts


def main(folder: Path) -> int:
    """Print how each data set compares; return 1 if one differs."""
    differ = 0
    for name, entry in tomllib.loads(Path(__file__).with_name("data.toml").read_text()).items():
        path = folder / f"{name}.npz"
        said = "missing" if not path.exists() else "as recorded" if is_same(path, entry) else "DIFFERENT"
        differ += said == "DIFFERENT"
        print(f"{path}: {said}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "data")))
