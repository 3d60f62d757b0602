"""Public test batteries that check whether your own component keeps its contract."""

from fedrela.testing.algorithms import check_algorithm
from fedrela.testing.reallocators import check_reallocator
from fedrela.testing.sources import check_source

__all__ = ["check_algorithm", "check_reallocator", "check_source"]
