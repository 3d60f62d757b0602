"""Repair of too small clients: as few moves as possible, from the largest."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedrela.data.partition.repair import donations, repair
from helpers.batteries import examples

sizes_and_minimum = st.lists(st.integers(0, 15), min_size=1, max_size=12).flatmap(
    lambda sizes: st.tuples(st.just(sizes), st.integers(0, sum(sizes) // len(sizes)))
)


@examples(300, 10_000)
@given(sizes_and_minimum, st.integers(0, 2**32))
def test_repair_moves_as_few_as_possible_from_the_largest(case, seed):
    sizes, min_size = case
    clients = len(sizes)
    owner = np.random.default_rng(seed).permutation(np.repeat(np.arange(clients), sizes))
    fixed, moved = repair(owner, clients, min_size, np.random.default_rng(seed))
    after = np.bincount(fixed, minlength=clients)
    lacking = np.maximum(min_size - np.array(sizes), 0)
    assert moved == lacking.sum() == np.count_nonzero(fixed != owner)
    np.testing.assert_array_equal(after[lacking > 0], min_size)
    given_away = np.array(sizes) - after
    assert all(after[k] >= after[j] - 1 for k in np.flatnonzero(given_away > 0) for j in range(clients))


@examples(300, 10_000)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data())
def test_donations_go_down_one_by_one_from_the_largest(sizes, data):
    total = data.draw(st.integers(0, sum(sizes)))
    one_by_one = np.array(sizes)
    for _ in range(total):
        one_by_one[np.argmax(one_by_one)] -= 1
    given_away = donations(np.array(sizes), total)
    assert given_away.sum() == total
    np.testing.assert_array_equal(np.sort(np.array(sizes) - given_away), np.sort(one_by_one))
