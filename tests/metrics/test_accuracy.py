"""Scores against scikit-learn, and where it has nothing to say against their definitions."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import log_softmax, softmax
from sklearn import metrics as sk

from fedrela.errors import ArgumentError, DataError
from fedrela.metrics import Groups, best_threshold, evaluation_groups, headline, score
from helpers.batteries import examples

EASY = st.integers(-6, 6).map(lambda n: n / 2)  # many ties
REAL = st.floats(-8, 8, width=32)
SOME = st.integers(2, 6)
ANYTHING = st.one_of(EASY, st.floats(width=64))  # NaN, infinities, 1e308


@st.composite
def answers(draw, numbers=EASY | REAL, classes=SOME):
    """Logits and labels of a small test set, some classes without samples."""
    n, C = draw(st.integers(1, 30)), draw(classes)
    dtype = draw(st.sampled_from([np.float32, np.float64])) if numbers is not ANYTHING else np.float64
    x = draw(arrays.arrays(np.float64, (n, C), elements=numbers)).astype(dtype)
    return x, draw(arrays.arrays(draw(st.sampled_from([np.int64, np.uint8])), n, elements=st.integers(0, C - 1)))


@examples(150, 2_000)
@given(answers())
def test_against_scikit_learn(case):
    x, y = case
    C, told = x.shape[1], x.argmax(axis=1)
    found = score(x, y)
    assert found.samples == y.size
    assert found.overall == sk.accuracy_score(y, told)
    np.testing.assert_array_equal(found.confusion, sk.confusion_matrix(y, told, labels=range(C)))
    recall = sk.recall_score(y, told, labels=range(C), average=None, zero_division=np.nan)
    np.testing.assert_allclose(found.per_class, recall, rtol=1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's about predicted classes that the test set lacks
        assert found.balanced == pytest.approx(sk.balanced_accuracy_score(y, told), rel=1e-14)
    assert found.macro_f1 == pytest.approx(sk.f1_score(y, told, average="macro"), rel=1e-14)
    probabilities = softmax(x.astype(np.float64), axis=1)
    assert found.loss == pytest.approx(sk.log_loss(y, probabilities, labels=range(C)), rel=1e-9, abs=1e-14)


@examples(300, 2_000)
@given(answers(classes=st.just(2)))
def test_rankings_against_scikit_learn(case):
    x, y = case
    found = score(x, y)
    if np.unique(y).size == 1:
        assert (found.auroc, found.auprc) == (None, None)
        return
    margin = x[:, 1].astype(np.float64) - x[:, 0]
    assert found.auroc == pytest.approx(sk.roc_auc_score(y, margin), rel=1e-14)
    assert found.auprc == pytest.approx(sk.average_precision_score(y, margin), rel=1e-14)


@examples(300, 2_000)
@given(answers(classes=st.just(2)))
def test_no_threshold_is_better_than_the_best(case):
    x, y = case
    found = best_threshold(x, y)
    if np.unique(y).size == 1:
        assert found is None
        return
    margin = x[:, 1].astype(np.float64) - x[:, 0]
    false, true, _ = sk.roc_curve(y, margin, drop_intermediate=False)
    reached = sk.balanced_accuracy_score(y, margin > found)
    assert reached == pytest.approx(((true + 1 - false) / 2).max(), abs=1e-12)
    assert score(x.astype(np.float64) - [0.0, found], y).balanced == pytest.approx(reached)


def test_of_equally_good_thresholds_the_nearest_to_the_usual_one_is_chosen():
    assert best_threshold([[0.0, -4.0], [0.0, -2.0], [0.0, 1.0], [0.0, 2.0]], [0, 1, 0, 1]) == 1.5
    assert best_threshold([[0.0, np.nan], [0.0, 1.0]], [0, 1]) is None
    assert best_threshold([[0.0, 0.0], [0.0, 0.0]], [0, 1]) in (-1.0, 1.0), "nothing tells them apart"


@examples(300, 2_000)
@given(answers(numbers=ANYTHING))
def test_whatever_the_logits_an_undefined_row_is_wrong(case):
    x, y = case
    C = x.shape[1]
    found = score(x, y)
    peaks = [max(row) if not any(map(math.isnan, row)) else math.nan for row in x.tolist()]
    told = np.array(
        [row.index(peak) if math.isfinite(peak) else C for row, peak in zip(x.tolist(), peaks, strict=True)]
    )
    wanted = sk.confusion_matrix(y, told, labels=range(C + 1))
    np.testing.assert_array_equal(found.confusion, wanted[:C, :C])
    assert found.overall == np.mean(told == y)
    for c in np.unique(y):
        assert found.per_class[c] == np.mean(told[y == c] == c)
    known = sorted({*y.tolist(), *told[told < C].tolist()})
    f1 = sk.f1_score(y, told, labels=known, average="macro", zero_division=0)
    assert found.macro_f1 == pytest.approx(f1, rel=1e-14)
    with np.errstate(all="ignore"):
        loss = -np.mean(log_softmax(x, axis=1)[np.arange(y.size), y])
    np.testing.assert_allclose(found.loss, loss if (told < C).all() else np.nan, rtol=1e-12)
    assert (found.auroc is None) == (C != 2 or (told == C).any() or np.unique(y).size == 1)
    json.dumps(found.as_record(), allow_nan=False)


@pytest.mark.parametrize("bad", [[np.nan] * 3, [np.nan, 9, 0], [np.inf, 1, 2], [-np.inf] * 3])
@pytest.mark.parametrize("label", [0, 1, 2])
def test_a_row_without_softmax_is_never_right(bad, label):
    found = score(np.array([bad, [0.0, 1.0, 2.0]], np.float32), [label, 2])
    assert found.overall == 0.5
    assert found.confusion.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert math.isnan(found.loss)
    assert found.as_record()["loss"] is None


def test_minus_infinity_excludes_a_class():
    found = score([[-np.inf, 0.0, 0.0], [5.0, -np.inf, -np.inf]], [1, 0])
    assert found.overall == 1.0
    assert found.loss == pytest.approx(math.log(2) / 2)
    assert score([[-np.inf, 0.0]], [0]).loss == math.inf
    assert score([[-np.inf, 0.0]], [0]).as_record()["loss"] is None
    assert score([[-np.inf, 0.0], [0.0, -np.inf]], [1, 0]).auroc == 1.0


def test_large_logits_keep_their_loss():
    assert score([[1e6, 0.0], [-1e6, -1e6 - 2.0]], [1, 0]).loss == pytest.approx((1e6 + math.log1p(math.exp(-2))) / 2)


def test_differences_beyond_the_largest_float():
    found = score([[-1.7e308, 1.7e308], [1.7e308, -1.7e308]], [1, 1])
    assert (found.overall, found.loss) == (0.5, math.inf)
    assert score([[0.0, 1.7e308]] * 2, [0, 0]).loss == math.inf  # their sum is
    assert score([[-1.7e308, 1.7e308], [1.7e308, -1.7e308]], [1, 0]).auroc == 1.0


def test_an_undefined_row_leaves_no_ranking():
    x = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, np.nan]])
    assert score(x[:2], [1, 0]).auroc == 1.0
    assert score(x, [1, 0, 0]).as_record() | {"confusion": None, "loss": 0} == {
        "overall": 2 / 3, "balanced": 0.75, "per_class": [0.5, 1.0], "groups": {}, "macro_f1": (2 / 3 + 1) / 2,
        "confusion": None, "loss": 0, "auroc": None, "auprc": None,
    }  # fmt: skip


def test_rankings_of_constant_scores_are_those_of_chance():
    found = score(np.zeros((10, 2)), [1] * 3 + [0] * 7)
    assert (found.auroc, found.auprc) == (0.5, pytest.approx(0.3))
    assert score([[0.0, -0.0], [0.0, 0.0]], [0, 1]).auroc == 0.5


@examples(100, 2_000)
@given(answers(), st.data())
def test_groups_are_pooled_samples(case, data):
    x, y = case
    of_class = np.array(data.draw(st.lists(st.integers(0, 2), min_size=x.shape[1], max_size=x.shape[1])))
    found = score(x, y, Groups(("head", "medium", "tail"), of_class, "counts")).groups
    assert list(found) == ["head", "medium", "tail"]
    right = x.argmax(axis=1) == y
    for place, share in enumerate(found.values()):
        inside = of_class[y] == place
        assert share == (right[inside].mean() if inside.any() else None)


def test_a_group_is_not_the_mean_of_its_classes():
    groups = evaluation_groups([90, 5, 5], minority=[1, 2])
    found = score(np.eye(3)[[0, 1, 1, 1, 1]], [0, 1, 1, 1, 2], groups)
    assert found.groups == {"majority": 1.0, "minority": 0.75}
    assert found.as_record()["groups"] == found.groups


def test_record_of_a_missing_class():
    record = score(np.eye(3)[[0, 1]], [0, 0]).as_record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert list(record) == ["overall", "balanced", "per_class", "groups", "macro_f1", "confusion", "loss"]
    assert record["per_class"] == [0.5, None, None]
    assert record["macro_f1"] == pytest.approx(1 / 3)  # class 0: 2/3; class 1, predicted only: 0; class 2 left out


def test_bits_do_not_depend_on_the_memory_layout():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 3, (50, 100)), rng.integers(0, 100, 50)
    for form in (np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], x.astype(">f8")):
        assert score(form, y).as_record() == score(x, y).as_record()


@examples(50, 500)
@given(answers(), st.randoms(use_true_random=False))
def test_the_order_of_the_samples_is_nothing(case, random):
    x, y = case
    order = random.sample(range(y.size), y.size)
    found, shuffled = score(x, y).as_record(), score(x[order], y[order]).as_record()
    assert shuffled.pop("loss") == pytest.approx(found.pop("loss"), rel=1e-13)
    assert shuffled == found


def test_nothing_given_is_written_to():
    x, y = np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([0, 1])
    x.flags.writeable = y.flags.writeable = False
    assert score(x, y).overall == 0.0


def test_one_class_alone():
    found = score([[3.0], [-3.0]], [0, 0])
    assert (found.overall, found.macro_f1, found.loss, found.auroc) == (1.0, 1.0, 0.0, None)


@pytest.mark.parametrize(
    ("counts", "name"),
    [([100] * 10, "overall"), ([120, 100], "overall"), ([121, 100], "balanced"), ([50, 0, 50], "overall"),
     ([500, 3], "balanced"), ([7], "overall"), ([0, 0], "overall")],
)  # fmt: skip
def test_headline(counts, name):
    assert headline(counts) == name


def test_on_an_even_test_set_both_headlines_agree():
    x, y = np.random.default_rng(2).normal(0, 1, (60, 4)), np.repeat([0, 1, 3], 20)
    assert headline(np.bincount(y)) == "overall"
    assert 0 < score(x, y).overall < 1
    assert score(x, y).overall == pytest.approx(score(x, y).balanced)


@pytest.mark.parametrize(
    ("logits", "labels", "error", "message"),
    [
        ([0.5], [0], ArgumentError, r"logits: expected floats, \(samples, classes\), got float64 \(1,\)"),
        ([[1, 2]], [0], ArgumentError, r"logits: expected floats, .*, got int64"),
        (np.empty((2, 0)), [0, 0], ArgumentError, r"logits: expected floats, .* \(2, 0\)"),
        (np.empty((0, 2)), [], ArgumentError, "expected the same length, at least 1, got 0 and 0"),
        ([[0.1, 0.2]], [0, 1], ArgumentError, "expected the same length, at least 1, got 1 and 2"),
        ([[0.1, 0.2]], [0.0], ArgumentError, r"labels: expected a row of class ids, got float64 \(1,\)"),
        ([[0.1, 0.2]], [[0]], ArgumentError, r"labels: expected a row of class ids, got int64 \(1, 1\)"),
        ([[0.1, 0.2]] * 2, [1, 2], DataError, "labels: expected ids from 0 to 1, got 2 at index 1"),
        ([[0.1, 0.2]], [-1], DataError, "labels: expected ids from 0 to 1, got -1 at index 0"),
    ],
)
def test_errors(logits, labels, error, message):
    with pytest.raises(error, match=message) as caught:
        score(logits, labels)
    assert "\n" not in str(caught.value)


def test_groups_of_other_classes():
    with pytest.raises(ArgumentError, match="groups: expected one group for each of 2 classes, got 3"):
        score([[0.1, 0.2]], [0], evaluation_groups([3, 2, 1]))
