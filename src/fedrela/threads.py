"""Work on large arrays spread over the cores of this process; NumPy lets other threads run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")

MOST_THREADS = 8
LARGE = 1 << 21  # values; with fewer, starting threads takes longer than the work


def usable_threads() -> int:
    """Return how many threads are worth starting: the cores that this process may use, up to a limit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_THREADS)


def map_threads(function: Callable[[Item], Any], items: Sequence[Item], values: int) -> list[Any]:
    """Return ``[function(item) for item in items]``, computed on several threads if `values` numbers are involved.

    >>> map_threads(abs, [-1, 2, -3], values=1 << 30)
    [1, 2, 3]
    """
    threads = min(usable_threads(), len(items)) if values >= LARGE else 1
    if threads < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))
