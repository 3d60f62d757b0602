"""Public batteries: whether your own part keeps the contract that the package builds on."""

from fedrela.testing.algorithms import check_algorithm
from fedrela.testing.sources import check_source

__all__ = ["check_algorithm", "check_source"]
