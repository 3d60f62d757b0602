"""Digests of arrays and shards, independent of where and how the arrays are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.records import Shard

BLOCK_BYTES = 1 << 24

Progress = Callable[[int, int, str], None]


def array_record(array: NDArray[Any], name: str, progress: Progress | None = None) -> dict[str, Any]:
    """Return shape, dtype and SHA-256 of an array; large ones are read in blocks, memory-mapped ones from disk.

    >>> array_record(np.arange(3, dtype=np.int64), "y")["shape"]
    [3]
    """
    digest = hashlib.sha256()
    rows = max(1, BLOCK_BYTES // max(array[:1].nbytes, 1))
    for start in range(0, len(array), rows):
        digest.update(np.ascontiguousarray(array[start : start + rows]).tobytes())
        if progress:
            progress(min(start + rows, len(array)), len(array), f"hashing {name}")
    return {"shape": list(array.shape), "dtype": array.dtype.str, "sha256": digest.hexdigest()}


def shards_digest(shards: Sequence[Shard]) -> str:
    """SHA-256 over the sample indices of all clients, each list with its length before it."""
    digest = hashlib.sha256()
    for shard in shards:
        for part in (shard.train, shard.validation):
            digest.update(np.array([part.size], "<i8").tobytes())
            digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()
