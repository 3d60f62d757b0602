"""scikit-learn's bundled digits: 1,797 images of 8x8, without a download."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedrela.data.sources.base import DataSize, Source, SourceSpec
from fedrela.data.sources.labels import TEST_SHARE, stratified

SPLIT_SEED = 0
PIXEL_MAX = 16


def load() -> Source:
    """Return the digits, values 0 to 16 as they are, with a fifth of every class as test set.

    The split is always the same; `fedrela.data.sources.labels.held_out_count` says how a fifth is rounded.
    """
    rows = _read()
    x, y = rows[:, :-1].astype(np.uint8).reshape(-1, 1, 8, 8), rows[:, -1].astype(np.int64)
    train, test = stratified(y, TEST_SHARE.default, SPLIT_SEED, "digits split")
    names = tuple(str(digit) for digit in range(10))
    return Source("digits", x[train], y[train], x[test], y[test], names, pixel_max=PIXEL_MAX)


def _read() -> NDArray[np.float64]:
    """Return 64 pixels and the digit of each image, from scikit-learn's own file: importing scikit-learn is slower."""
    spec = find_spec("sklearn")
    file = Path(spec.origin if spec and spec.origin else "").parent / "datasets/data/digits.csv.gz"
    if file.exists():
        return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    return np.column_stack([pixels, digits])


SPEC = SourceSpec(
    load,
    "scikit-learn's digits",
    "1,797 grey images of 8x8, 10 classes; a fifth of every class is the test set",
    "none: it comes with scikit-learn",
    size=DataSize(1_438, 359, 10, (1, 8, 8)),
)
