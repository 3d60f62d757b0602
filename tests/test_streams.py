"""Random streams by address: what an address may be."""

from __future__ import annotations

import pytest

from fedrela.errors import ArgumentError
from fedrela.streams import stream


@pytest.mark.parametrize("address", [(-1, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_addresses_count_from_zero(address):
    seed, round, client = address
    with pytest.raises(ArgumentError, match="count from 0"):
        stream(seed, "draw", round, client)
