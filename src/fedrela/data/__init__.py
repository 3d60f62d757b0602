"""From raw data sets to client shards, with NumPy only."""

from fedrela.data.imbalance import (
    Imbalance,
    Selection,
    class_order,
    long_tail_counts,
    minority_classes,
    step_counts,
    subsample,
)
from fedrela.data.partition import Partition, dirichlet, hold_out, iid, natural, shards

__all__ = [
    "Imbalance", "Partition", "Selection", "class_order", "dirichlet", "hold_out", "iid", "long_tail_counts",
    "minority_classes", "natural", "shards", "step_counts", "subsample",
]  # fmt: skip
