"""Histograms of z-scores: every score has one bin, and they add up over clients."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fedrela.errors import ArgumentError
from fedrela.metrics import Z_EDGES, z_histogram
from helpers.batteries import examples

scores = arrays.arrays(np.float64, st.integers(0, 40), elements=st.floats(allow_nan=False) | st.sampled_from(Z_EDGES))


@examples(200, 2_000)
@given(st.lists(scores, min_size=1, max_size=4))
def test_histograms_add_up(clients):
    found = sum(z_histogram(z) for z in clients)
    np.testing.assert_array_equal(found, z_histogram(np.concatenate(clients)))
    edges = [-np.inf, *Z_EDGES, np.inf]
    z = [value for client in clients for value in client]
    inner = [sum(low <= value < high for value in z) for low, high in pairwise(edges)]
    inner[-1] += z.count(np.inf)
    assert found.tolist() == inner


def test_bins_lie_around_zero():
    assert (len(Z_EDGES), Z_EDGES[0], Z_EDGES[-1]) == (50, -6.125, 6.125)
    assert np.unique(np.diff(Z_EDGES)).tolist() == [0.25]
    assert np.flatnonzero(z_histogram(np.zeros((2, 3)))).tolist() == [25]
    assert z_histogram(np.zeros((2, 3)))[25] == 6
    table = np.linspace(-7, 7, 60).reshape(4, 15)
    np.testing.assert_array_equal(z_histogram(table, by_row=True), [z_histogram(row) for row in table])
    assert z_histogram([]).tolist() == [0] * 51


def test_nan_has_no_bin():
    with pytest.raises(ArgumentError, match="z: expected numbers, got NaN at index 1"):
        z_histogram([0.0, np.nan])
