"""Counts of a re-labelling: they fit the ledger, fit each other, and add up over clients."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import fedrela
from fedrela.errors import ArgumentError, DataError
from fedrela.metrics import Z_EDGES, changed_counts, flow, z_histogram
from helpers.batteries import examples

pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=30)
scores = arrays.arrays(np.float64, st.integers(0, 40), elements=st.floats(allow_nan=False) | st.sampled_from(Z_EDGES))


@examples(200, 2_000)
@given(pairs)
def test_moves_explain_the_change_of_counts(labels):
    old, new = np.array(labels, np.int64).reshape(-1, 2).T
    moves, counts = flow(old, new, 5), changed_counts(old, new, 5)
    for a in range(5):
        assert counts[:, a].tolist() == [np.sum(old == a), np.sum(new == a)]
        for b in range(5):
            assert moves[a, b] == (labels.count((a, b)) if a != b else 0)
    np.testing.assert_array_equal(counts[1] - counts[0], moves.sum(axis=0) - moves.sum(axis=1))


def test_flow_of_a_ledger_is_its_own():
    rng = np.random.default_rng(3)
    done = fedrela.relabel(rng.dirichlet(np.ones(4), 200), np.repeat([0, 1, 2, 3], [120, 50, 25, 5]), tau=0.2)
    ledger = done.ledger
    assert ledger.flow.sum() == done.moved.size > 10
    np.testing.assert_array_equal(flow(ledger.old, ledger.new, 4), ledger.flow)
    np.testing.assert_array_equal(flow(ledger.original, ledger.labels, 4), ledger.flow)


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


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: flow([0], [0, 1], 2), ArgumentError, "labels before and after: expected the same length, got 1 and 2"),
        (lambda: flow([0], [2], 2), DataError, "labels after: expected ids from 0 to 1, got 2 at index 0"),
        (lambda: changed_counts([-1], [0], 2), DataError, "labels before: expected ids from 0 to 1, got -1"),
        (lambda: changed_counts([0.5], [0], 2), ArgumentError, "labels before: expected a row of class ids"),
        (lambda: z_histogram([0.0, np.nan]), ArgumentError, "z: expected numbers, got NaN at index 1"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
