"""The object form, as users of imbalanced-learn and scikit-learn would use it."""

from __future__ import annotations

import inspect
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import make_pipeline
from imblearn.utils import estimator_checks as imblearn_checks
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import fedrela
from fedrela import Relabeler
from fedrela.core.relabel_options import RelabelOptions
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.options import options_of
from helpers.core_cases import make

CASE = make(150, 4, 0.1, 3, skew=1.5, skill=1.0, digits=None)
NAMES = np.array(["ant", "bee", "cat", "elephant"])
rng = np.random.default_rng(0)
CODES = rng.choice(3, 240, p=[0.7, 0.2, 0.1])
X = rng.normal(size=(240, 4)) + CODES[:, None]
WORDS = NAMES[CODES]
JUDGE = GaussianNB()


def relabelled(y=WORDS, X=X, **options):
    return Relabeler(**{"estimator": JUDGE, "tau": 0.2, "seed": 3} | options).fit_resample(X, y)[1]


def flags(rows):
    return np.isin(np.arange(len(X)), rows)


class Fixed:
    """An estimator in the sense of duck typing: predict_proba and classes_, no more."""

    classes_ = NAMES

    def predict_proba(self, X):
        return X


# Checks that do not apply, with the reason.
EXCEPTIONS = {
    "check_samplers_fit": "it asks for sampling_strategy_, and a re-labeller has no sampling strategy",
    "check_samplers_multiclass_ova": "one-hot labels are refused, with what to do",
    "check_samplers_nan": "for samplers that take NaN: it depends on the estimator, and this one does not",
    "check_samplers_one_label": "one class is legal: a fitted estimator may know others",
    "check_samplers_sample_indices": "it reads imbalanced-learn's own class of tags; sample_indices_ is tested below",
    "check_samplers_string": "for samplers that take text: it depends on the estimator, and this one does not",
}
JUDGED = Relabeler(LogisticRegression())


@parametrize_with_checks([JUDGED])
def test_scikit_learns_own_battery(estimator, check):
    check(estimator)


SAMPLER_CHECKS = [name for name in vars(imblearn_checks) if name.startswith(("check_sampler", "check_target_type"))]


@pytest.mark.parametrize("name", sorted(SAMPLER_CHECKS))
def test_imbalanced_learns_own_battery(name):
    if name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[name])
    getattr(imblearn_checks, name)("Relabeler", clone(JUDGED))


def test_posterior_in_place_of_features():
    sampler = Relabeler(tau=0.1, seed=7)
    Q, y = sampler.fit_resample(CASE.Q, CASE.y)
    order = sampler.order_
    expected = fedrela.relabel(CASE.Q[order], CASE.y[order], tau=0.1, seed=7)
    assert Q is CASE.Q
    np.testing.assert_array_equal(y[order], expected.labels)
    np.testing.assert_array_equal(sampler.moved_, np.sort(order[expected.moved]))
    assert sampler.classes_.tolist() == [0, 1, 2, 3]
    assert sampler.sample_indices_.tolist() == list(range(150))


def test_its_parameters_are_the_options_of_relabel():
    known = inspect.signature(Relabeler).parameters
    assert {each.name: each.default for each in options_of(RelabelOptions)} == {
        name: each.default for name, each in known.items() if name not in ("estimator", "cv", "eligible", "seed")
    }


def test_labels_of_any_kind_come_back_as_they_are():
    """Also where a long name replaces labels that are all short."""
    only_short = np.where(CASE.y == 3, 0, CASE.y)
    sampler = Relabeler(Fixed(), tau=0.3, seed=1)
    _, y = sampler.fit_resample(CASE.Q, NAMES[only_short].astype("U3"))
    assert "elephant" in y
    assert sampler.undo().tolist() == NAMES[only_short].tolist()
    assert sampler.ledger_.class_names == tuple(NAMES)
    assert fedrela.undo(sampler.ledger_, y).tolist() == NAMES[only_short].tolist()
    with pytest.raises(IntegrityError, match="it did not produce these labels"):
        fedrela.undo(sampler.ledger_, y[::-1])


def test_results_follow_the_rows():
    order = np.random.default_rng(5).permutation(len(WORDS))
    for options in ({}, {"cv": 3}, {"estimator": LogisticRegression()}, {"keep": flags([3, 4])}):
        moved = {"keep": options["keep"][order]} if "keep" in options else {}
        plain = relabelled(**options)
        assert relabelled(WORDS[order], X[order], **options | moved).tolist() == plain[order].tolist()
        assert (plain != WORDS).any()


@pytest.mark.parametrize("kind", ["series", "categorical", "category series", "frame", "column", "list", "objects"])
def test_every_form_of_y(kind):
    index = pd.Index([f"p{row}" for row in range(len(WORDS))])
    forms = {
        "series": pd.Series(WORDS, index, name="diagnosis"),
        "categorical": pd.Categorical(WORDS, categories=NAMES),
        "category series": pd.Series(pd.Categorical(WORDS, categories=NAMES), index),
        "frame": pd.DataFrame({"diagnosis": WORDS}, index),
        "column": WORDS[:, None],
        "list": WORDS.tolist(),
        "objects": WORDS.astype(object),
    }
    given, expected = forms[kind], relabelled().tolist()
    new = relabelled(given)
    assert np.asarray(new).ravel().tolist() == expected
    assert type(new) is type(given)
    if kind in ("series", "category series", "frame"):
        assert new.index.equals(index)
    if kind in ("categorical", "category series"):
        assert new.dtype == given.dtype
    if kind == "column":
        assert new.shape == (len(WORDS), 1)
    if kind == "frame":
        assert list(new.columns) == ["diagnosis"]


def test_the_judge_never_saw_the_rows_it_judges():
    sampler = Relabeler(JUDGE, cv=3, tau=0.2, seed=3)
    sampler.fit_resample(X, WORDS)
    order = sampler.order_
    Q = cross_val_predict(JUDGE, X[order], WORDS[order], cv=3, method="predict_proba")
    expected = fedrela.relabel(Q, CODES[order], tau=0.2, seed=3)
    assert sampler.relabelling_.labels.tolist() == expected.labels.tolist()
    assert sampler.relabelling_.labels.tolist() != relabelled_codes().tolist()


def relabelled_codes():
    sampler = Relabeler(JUDGE, tau=0.2, seed=3)
    sampler.fit_resample(X, WORDS)
    return sampler.relabelling_.labels


def test_in_a_pipeline_with_parameters_of_the_estimator():
    pipeline = make_pipeline(StandardScaler(), Relabeler(LogisticRegression(), cv=3, tau=0.2), LogisticRegression())
    grid = {"relabeler__estimator__C": [0.1, 1.0], "relabeler__tau": [0.05, 0.2]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, WORDS)
    assert set(search.best_params_) == set(grid)
    assert set(search.predict(X)) <= set(NAMES)


def test_a_fitted_judge_stays_fitted_in_a_clone():
    fitted = GaussianNB().fit(X, WORDS)
    copy = clone(Relabeler(fitted, tau=0.2, seed=3))
    assert copy.estimator is fitted
    assert copy.fit_resample(X, WORDS)[1].tolist() == relabelled().tolist()
    assert not hasattr(copy, "estimator_")
    fresh = clone(Relabeler(GaussianNB(var_smoothing=0.1)))
    assert fresh.estimator.var_smoothing == 0.1
    assert fresh.set_params(estimator__var_smoothing=0.2).estimator.var_smoothing == 0.2


def test_limits_name_labels():
    plain, kept = relabelled(), relabelled(forbidden=[("ant", "cat")])
    assert ((WORDS == "ant") & (plain == "cat")).any()
    assert not ((WORDS == "ant") & (kept == "cat")).any()
    moved = np.flatnonzero(plain != WORDS)
    assert relabelled(keep=flags(moved[:2]))[moved[:2]].tolist() == WORDS[moved[:2]].tolist()
    assert (relabelled(keep=flags([])) == plain).all()


@pytest.mark.parametrize("limits", [{"forbidden": [(1, 3)]}, {"allowed": [(2, 3), (1, 2)]}, {"class_tau": {3: 0.0}}])
def test_limits_mean_labels_whatever_these_are(limits):
    """Labels from 1 are no class numbers from 0: what is said of 1 and 3 counts for these labels."""
    plain, kept = (relabelled(CODES + 1, **each) - 1 for each in ({}, limits))
    ones, others = ((CODES == 0) & (each == 2) for each in (plain, kept))
    assert ones.any()
    assert not others.any()
    assert (kept != CODES).any()


@pytest.mark.parametrize("kind", [lambda y: y - 1, lambda y: y.astype(float), lambda y: y.astype(np.uint8) + 7])
def test_limits_take_labels_of_any_kind(kind):
    labels = kind(CODES)
    one, other = np.unique(labels)[[0, 2]]
    assert ((labels == one) & (relabelled(labels) == other)).any()
    for limits in (
        {"forbidden": [(one, other)]},
        {"forbidden": [(one.item(), other.item())]},
        {"class_tau": {other: 0}},
    ):
        new = relabelled(labels, **limits)
        assert not ((labels == one) & (new == other)).any()
        assert (new != labels).any()
    with pytest.raises(ArgumentError, match="class_tau: expected one of the labels"):
        relabelled(labels, class_tau={99: 0.0})


def test_limits_take_booleans():
    labels = CODES > 0
    assert (relabelled(labels) != labels).any()
    assert (relabelled(labels, forbidden=[(False, True)]) == labels).all()
    every = relabelled(labels, allowed=[(True, False), (False, True)])
    assert every.tolist() == relabelled(labels, allowed=~np.eye(2, dtype=bool)).tolist() == relabelled(labels).tolist()


def test_limits_take_numbers_for_texts_and_each_label_once():
    texts = CODES.astype(str)
    assert relabelled(texts, class_tau={2: 0.0}).tolist() == relabelled(texts, class_tau={"2": 0.0}).tolist()
    with pytest.raises(ArgumentError, match="class_tau: expected each label once, got"):
        relabelled(CODES, class_tau={1: 0.3, "1": 0.0})


def test_a_real_classifier():
    pictures, y = load_digits(return_X_y=True)
    keep = np.flatnonzero((y > 2) | (np.arange(y.size) % 10 == 0))
    model = LogisticRegression(max_iter=500).fit(pictures[keep] / 16, y[keep])
    X_res, y_res = Relabeler(model, tau=0.05).fit_resample(pictures[keep] / 16, y[keep])
    assert X_res.shape == pictures[keep].shape
    assert 0 < (y_res != y[keep]).sum() < 0.3 * keep.size


def test_a_refusal_is_a_warning_and_changes_nothing():
    sampler = Relabeler()
    with pytest.warns(UserWarning, match="nothing was re-labelled: not finite: row 0"):
        _, y = sampler.fit_resample(CASE.Q * np.nan, CASE.y)
    assert y is CASE.y
    assert sampler.relabelling_.refused_at == 0


def test_wrong_use():
    with pytest.raises(ArgumentError, match="taw: unknown option; nearest: tau"):
        Relabeler(taw=0.1)
    with pytest.raises(DataError, match="label 'dog' is not one of the classes"):
        Relabeler(Fixed()).fit_resample(CASE.Q, np.full(150, "dog"))
    with pytest.raises(DataError, match=r"expected one label per row, got .* for one-hot labels, pass their argmax"):
        Relabeler(JUDGE).fit_resample(X, np.eye(3)[CODES])
    with pytest.raises(ArgumentError, match=r"estimator: expected a classifier with predict_proba, got LinearSVC"):
        Relabeler(LinearSVC()).fit_resample(X, WORDS)
    with pytest.raises(ArgumentError, match="forbidden: expected one of the labels 0, 1, 2, got 7"):
        Relabeler(JUDGE, forbidden=[(1, 7)]).fit_resample(X, CODES)
    for missing in (None, np.nan, pd.NA):
        with pytest.raises(DataError, match="y: row 3: expected a label, got none"):
            Relabeler(JUDGE).fit_resample(X, pd.Series([*WORDS[:3], missing, *WORDS[4:]], dtype=object))
    with pytest.raises(DataError, match="y: expected 150 labels, one per row of X, got 3"):
        Relabeler().fit_resample(CASE.Q, [0, 1, 2])


class Memory(GaussianNB):
    """Notes which rows every clone was fitted on, by their first feature."""

    seen: ClassVar[list[set[float]]] = []

    def fit(self, X, y):
        self.seen.append(set(X[:, 0].tolist()))
        return super().fit(X, y)


@pytest.mark.parametrize("as_list", [False, True])
def test_folds_that_name_rows_are_of_the_rows_as_given(as_list):
    groups = np.arange(240) % 6
    folds = PredefinedSplit(groups)
    Memory.seen.clear()
    relabelled(estimator=Memory(), cv=list(folds.split()) if as_list else folds)
    assert Memory.seen == [set(X[groups != fold, 0].tolist()) for fold in range(6)]


@pytest.mark.parametrize("rows", [9, 300])
def test_as_many_eligible_flags_as_rows(rows):
    with pytest.raises(ArgumentError, match=rf"eligible: expected shape \(240,\), got \({rows},\)"):
        relabelled(eligible=np.ones(rows, bool))
    with pytest.raises(ArgumentError, match=rf"keep: expected shape \(240,\), got \({rows},\)"):
        relabelled(keep=np.ones(rows, bool))


@pytest.mark.parametrize("rows", [[3, 4], ["3"], {3}, 3, np.arange(240)])
def test_rows_to_keep_are_booleans(rows):
    """Row numbers would be those of a fold in cross-validation, and protect other rows."""
    with pytest.raises(ArgumentError, match=r"^keep: .*; give one boolean per row of X; in cross-validation to fit"):
        relabelled(keep=rows)


class Noting(GaussianNB):
    """Notes the labels that every clone was fitted to, by the first feature of their rows."""

    seen: ClassVar[list[dict[float, str]]] = []

    def fit(self, X, y):
        self.seen.append(dict(zip(X[:, 0].tolist(), y.tolist(), strict=True)))
        return super().fit(X, y)


@pytest.mark.parametrize("limit", ["keep", "eligible"])
def test_cross_validation_keeps_the_rows_that_are_named(limit):
    pipeline = make_pipeline(Relabeler(JUDGE, tau=0.3, seed=3), Noting())
    grid = {"relabeler__tau": [0.3, 0.2]}
    original = dict(zip(X[:, 0].tolist(), WORDS.tolist(), strict=True))

    def moved(**given):
        Noting.seen.clear()
        GridSearchCV(pipeline, grid, cv=3).fit(X, WORDS, **given)
        return [{x for x, label in labels.items() if label != original[x]} for labels in Noting.seen]

    plain = moved()
    assert len(plain) == 7
    often = [x for x in original if sum(x in each for each in plain) > 1]
    stay = np.isin(X[:, 0], often[::2])
    with config_context(enable_metadata_routing=True):
        limited = moved(**{limit: stay if limit == "keep" else ~stay})
    assert not any(set(X[stay, 0]) & each for each in limited)
    assert all(limited)
    with pytest.raises(ValueError, match=r"keep: expected shape \(160,\), got \(240,\)"):
        GridSearchCV(pipeline.set_params(relabeler__keep=stay), grid, cv=3).fit(X, WORDS)


def test_words_need_a_column_each():
    with pytest.raises(DataError, match=r"X: expected a column per class, got 4 columns and 2 classes in y; number"):
        Relabeler().fit_resample(np.full((4, 4), 0.25), ["a", "a", "b", "a"])
