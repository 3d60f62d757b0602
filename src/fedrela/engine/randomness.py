"""Torch's own random numbers at an address: models with dropout, and algorithms that draw, are repeatable too."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from fedrela.streams import stream


@contextlib.contextmanager
def torch_stream(device: torch.device, seed: int, purpose: str, round: int, client: int = 0) -> Iterator[None]:
    """Let torch draw from the stream at this address inside, and leave its generator for the CPU as it was.

    Unlike `fedrela.models.repeatable.seeded` it does not look at every operation inside, which would slow training.

    >>> with torch_stream(torch.device("cpu"), 0, "example", 1):
    ...     first = torch.rand(3)
    >>> with torch_stream(torch.device("cpu"), 0, "example", 1):
    ...     bool((torch.rand(3) == first).all())
    True
    """
    word = int(stream(seed, f"torch {purpose}", round, client).integers(2**63))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(word)  # torch.manual_seed takes a millisecond where there is no CUDA
        if device.type != "cpu":
            getattr(torch, device.type).manual_seed(word)
        yield
