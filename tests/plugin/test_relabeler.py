"""The object form, as users of imbalanced-learn and scikit-learn would use it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import fedrela
from fedrela import Relabeler
from fedrela.errors import ArgumentError, DataError
from helpers.core_cases import make

CASE = make(150, 4, 0.1, 3, skew=1.5, skill=1.0, digits=None)
NAMES = np.array(["ant", "bee", "cat", "elephant"])


class Fixed:
    """An estimator in the sense of duck typing: predict_proba and classes_, no more."""

    classes_ = NAMES

    def predict_proba(self, X):
        return X


def test_posterior_in_place_of_features():
    sampler = Relabeler(tau=0.1, seed=7)
    X, y = sampler.fit_resample(CASE.Q, CASE.y)
    expected = fedrela.relabel(CASE.Q, CASE.y, tau=0.1, seed=7)
    assert X is CASE.Q
    np.testing.assert_array_equal(y, expected.labels)
    np.testing.assert_array_equal(sampler.moved_, expected.moved)
    assert sampler.relabelling_.ledger == expected.ledger
    assert sampler.classes_.tolist() == [0, 1, 2, 3]


def test_labels_of_any_kind_come_back_as_they_are():
    """Also where a long name replaces labels that are all short."""
    only_short = np.where(CASE.y == 3, 0, CASE.y)
    sampler = Relabeler(Fixed(), tau=0.3, seed=1)
    _, y = sampler.fit_resample(CASE.Q, NAMES[only_short].astype("U3"))
    expected = fedrela.relabel(CASE.Q, only_short, tau=0.3, seed=1)
    assert y.tolist() == NAMES[expected.labels].tolist()
    assert "elephant" in y


def test_a_real_classifier():
    X, y = load_digits(return_X_y=True)
    keep = np.flatnonzero((y > 2) | (np.arange(y.size) % 10 == 0))
    model = LogisticRegression(max_iter=500).fit(X[keep] / 16, y[keep])
    X_res, y_res = Relabeler(model, tau=0.05).fit_resample(X[keep] / 16, y[keep])
    assert X_res.shape == X[keep].shape
    assert 0 < (y_res != y[keep]).sum() < 0.3 * keep.size


def test_clone_and_parameters():
    sampler = clone(Relabeler(tau=0.2, max_fraction=0.3))
    assert sampler.get_params() == {"estimator": None, "tau": 0.2, "max_fraction": 0.3}
    assert sampler.set_params(tau=0.1) is sampler
    assert sampler.options == {"tau": 0.1, "max_fraction": 0.3}


def test_a_clone_can_still_predict():
    model = LogisticRegression().fit(CASE.Q, NAMES[CASE.y])
    _, y = clone(Relabeler(model, tau=0.2)).fit_resample(CASE.Q, NAMES[CASE.y])
    assert set(y) <= set(NAMES)


def test_a_series_stays_a_series():
    """pandas is not a dependency; this has what a Series shows of itself."""

    class Series(list):
        def __init__(self, values, index=None, name=None):
            super().__init__(values)
            self.index, self.name, self.iloc = index, name, self

    given = Series(CASE.y.tolist(), index=range(150), name="diagnosis")
    _, y = Relabeler(tau=0.1, seed=7).fit_resample(CASE.Q, given)
    assert (type(y), y.index, y.name) == (Series, range(150), "diagnosis")


def test_a_refusal_is_a_warning_and_changes_nothing():
    sampler = Relabeler()
    with pytest.warns(UserWarning, match="nothing was re-labelled: not finite: row 0"):
        _, y = sampler.fit_resample(CASE.Q * np.nan, CASE.y)
    assert y is CASE.y
    assert sampler.relabelling_.refused_at == 0


def test_wrong_use():
    with pytest.raises(ArgumentError, match="taw: unknown option; nearest: tau"):
        Relabeler(taw=0.1)
    with pytest.raises(DataError, match="label 'dog' is not one of the estimator's classes"):
        Relabeler(Fixed()).fit_resample(CASE.Q, np.full(150, "dog"))
