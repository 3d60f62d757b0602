"""scikit-learn's bundled digits: 1,797 images of 8x8, no file needed."""

from __future__ import annotations

import numpy as np

from fedrela.data.sources.base import DataSize, Source, SourceSpec
from fedrela.data.sources.labels import stratified

TEST_SHARE = 0.2
SPLIT_SEED = 0
PIXEL_MAX = 16


def load() -> Source:
    """Return the digits, values 0 to 16 as they are, with a fifth of every class as test set.

    The split is always the same; `fedrela.data.sources.labels.held_out_count` says how a fifth is rounded.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x = bunch.images.astype(np.uint8)[:, np.newaxis]
    y = bunch.target.astype(np.int64)
    train, test = stratified(y, TEST_SHARE, SPLIT_SEED, "digits split")
    names = tuple(str(name) for name in bunch.target_names)
    return Source("digits", x[train], y[train], x[test], y[test], names, pixel_max=PIXEL_MAX)


SPEC = SourceSpec(
    load,
    "scikit-learn's digits",
    "1,797 grey images of 8x8, 10 classes; a fifth of every class is the test set",
    "none: it comes with scikit-learn",
    size=DataSize(1_438, 359, 10, (1, 8, 8)),
)
