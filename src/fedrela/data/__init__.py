"""From raw data sets to client shards. NumPy only; knows no torch."""

from fedrela.data.imbalance import long_tail_counts, step_counts

__all__ = ["long_tail_counts", "step_counts"]
