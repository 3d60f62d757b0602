"""Heterogeneity metrics against their definitions, cell by cell."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedrela.errors import ArgumentError
from fedrela.metrics import measure_heterogeneity
from helpers.batteries import examples

matrices = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 9), min_size=width, max_size=width), min_size=1, max_size=6)
)


def slow_mismatch(n: np.ndarray) -> float:
    pairs = reversals = 0
    total = n.sum(axis=0)
    for k, a, b in product(range(n.shape[0]), range(n.shape[1]), range(n.shape[1])):
        if n[k].sum() and total[a] > total[b]:
            pairs += 1
            reversals += n[k, a] < n[k, b]
    return reversals / pairs if pairs else 0.0


@examples(300, 5_000)
@given(matrices)
def test_definitions(rows):
    n = np.array(rows)
    assume(n.any())
    found = measure_heterogeneity(n)
    total = n.sum(axis=0)
    present = [c for c in range(n.shape[1]) if total[c]]
    filled = [row for row in n if row.sum()]
    assert found.imbalance_ratio == max(total) / min(total[present])
    zeros = sum(row[c] == 0 for row in n for c in present)
    assert found.absence_rate == pytest.approx(zeros / (len(n) * len(present)))
    assert found.mismatch == slow_mismatch(n)
    assert found.empty_clients == len(n) - len(filled)
    distances = [0.5 * sum(abs(row[c] / row.sum() - total[c] / total.sum()) for c in present) for row in filled]
    assert found.total_variation == pytest.approx(np.mean(distances))
    for c, effective in enumerate(found.effective_clients):
        assert effective == (pytest.approx(1 / sum((n[:, c] / total[c]) ** 2)) if total[c] else 0.0)


def test_equal_clients_have_no_heterogeneity():
    found = measure_heterogeneity([[40, 20, 10]] * 8)
    assert (found.imbalance_ratio, found.absence_rate, found.mismatch) == (4.0, 0.0, 0.0)
    assert found.effective_clients == (8.0, 8.0, 8.0)
    assert found.total_variation == 0.0


def test_one_class_a_client():
    found = measure_heterogeneity(np.diag([5, 5, 5, 5]))
    assert (found.imbalance_ratio, found.absence_rate, found.total_variation) == (1.0, 0.75, 0.75)
    assert found.effective_clients == (1.0, 1.0, 1.0, 1.0)


def test_the_global_minority_can_be_the_local_majority():
    assert measure_heterogeneity([[90, 0], [0, 10], [5, 9]]).mismatch == pytest.approx(2 / 3)


def test_mismatch_in_several_blocks(monkeypatch):
    n = np.random.default_rng(1).integers(0, 5, (30, 7))
    monkeypatch.setattr("fedrela.metrics.heterogeneity.BLOCK", 25)
    assert measure_heterogeneity(n).mismatch == slow_mismatch(n) > 0


@pytest.mark.parametrize("counts", [[1, 2], [[0.5]], [[0, 0]], [[1, -1]], np.empty((0, 3), int)])
def test_errors(counts):
    with pytest.raises(ArgumentError, match=r"client_counts: expected integers >= 0, .*, got") as caught:
        measure_heterogeneity(counts)
    assert "\n" not in str(caught.value)
