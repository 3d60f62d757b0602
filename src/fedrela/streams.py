"""Random streams with an address: nothing in the package carries generator state.

A stream is a function of (seed, purpose, round, client), so any part of a run can be repeated by itself and draws the
same numbers, whatever the order in which parts are computed.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from fedrela.errors import ArgumentError


def stream(seed: int, purpose: str, round: int = 0, client: int = 0) -> np.random.Generator:
    """Return the generator at the address (seed, purpose, round, client).

    Parameters
    ----------
    seed
        The seed of the run, at least 0.
    purpose
        What the numbers are for, such as ``"partition"``; two purposes never share numbers.
    round, client
        Place inside the run, each at least 0.

    Examples
    --------
    >>> first = stream(1, "draw", round=3, client=7).random()
    >>> first == stream(1, "draw", round=3, client=7).random()
    True
    >>> first == stream(1, "draw", round=3, client=8).random()
    False
    """
    if min(seed, round, client) < 0:
        raise ArgumentError(f"stream: seed, round and client count from 0, got {seed}, {round} and {client}")
    words = [part for number in (seed, _word(purpose), round, client) for part in _parts(number)]
    return Generator(PCG64(SeedSequence(np.array(words, np.uint32))))


@lru_cache(maxsize=256)
def _word(purpose: str) -> int:
    return int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "little")


def _parts(number: int) -> list[int]:
    """Return an integer as words of 32 bits, lowest first: as `SeedSequence` does, in half the time."""
    parts = [number & 0xFFFFFFFF]
    while number := number >> 32:
        parts.append(number & 0xFFFFFFFF)
    return parts
