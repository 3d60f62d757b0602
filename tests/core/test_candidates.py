"""The candidates: the pairs of a sample and a class with a positive probability, and the notes about them."""

from __future__ import annotations

import numpy as np
import pytest

from fedrela.core.candidates import find_candidates, rank_within
from fedrela.core.relabel_options import RelabelOptions

Q = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4], [0.2, 0.8]])
Y = np.array([0, 0, 0, 0, 1])


@pytest.mark.parametrize("normalize", ["zscore", "minmax", "none"])
def test_a_score_at_the_threshold_is_no_candidate(normalize):
    found = find_candidates(Q, Y, RelabelOptions(tau=0.6, normalize=normalize))
    assert found.score.size > 0
    assert (found.score > found.threshold[found.target]).all()
    assert (found.rho > 0).all()


def test_scores_of_the_ablations():
    """Class 1 among the samples of class 0: their posteriors between the least and the largest, or as they are."""
    found = find_candidates(Q, Y, RelabelOptions(tau=0.6, normalize="minmax"))
    assert (found.sample.tolist(), found.target.tolist()) == ([2, 3], [1, 1])
    np.testing.assert_allclose(found.score, [2 / 3, 1])
    np.testing.assert_allclose(found.threshold, [1 / 3, 1 / 3])
    np.testing.assert_array_equal(find_candidates(Q, Y, RelabelOptions(tau=0.6, normalize="none")).score, [0.4])


def test_notes_count_every_class_and_column():
    """Also where the columns are read in several blocks."""
    classes = 20
    posterior = np.full((classes + 3, classes), 1 / classes)
    labels = np.array([0, 0, 0, *range(classes)])
    assert find_candidates(posterior, labels, RelabelOptions()).notes == (
        "class too small: score 0 for 19 classes with one sample",
        "no spread: score 0 for 20 (class, column) pairs",
    )


def test_a_rank_is_an_integer_within_its_group():
    rank = rank_within(np.array([1, 0, 1, 1, 0]), np.array([2, 5, 1, 1, 4]), np.array([0, 0, 8, 7, 0]))
    assert (rank.tolist(), rank.dtype) == ([2, 1, 1, 0, 0], np.intp)
