"""The door, word for word and at its borders."""

from __future__ import annotations

import numpy as np
import pytest

import fedrela
from fedrela.arguments import check_fraction
from fedrela.core import input_checks
from fedrela.errors import ArgumentError

GOOD = [0.5, 0.3, 0.2]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, np.nan, 0.5], "not finite: row 1: column 1 is nan"),
        ([0.5, 0.5, np.inf], "not finite: row 1: column 2 is inf"),
        ([-np.inf, np.inf, 1.0], "not finite: row 1: column 0 is -inf"),
        ([0.6, 0.5, -0.1], "not normalised: row 1: column 2 is negative (-0.1)"),
        ([0.0, 1.1, -0.1], "not normalised: row 1: column 2 is negative (-0.1)"),
        ([-0.25, 0.75, 0.5], "not normalised: row 1: column 0 is negative (-0.25)"),
        (
            [0.0, 0.0, 0.0],
            "not normalised: row 1: expected a sum of 1, got 0; if these are logits, take the softmax first",
        ),
        (
            [0.0, 2.0, 0.5],
            "not normalised: row 1: expected a sum of 1, got 2.5; if these are logits, take the softmax first",
        ),
        ([60.0, 30.0, 9.5], "not normalised: row 1: expected a sum of 1, got 99.5; divide per cent by 100"),
    ],
)
def test_what_is_wrong_with_a_row(row, message):
    refusal = input_checks.refuse_posterior(np.array([GOOD, row, GOOD]), 3)
    assert str(refusal) == message
    assert refusal.index == 1


def test_zeros_are_probabilities():
    assert input_checks.refuse_posterior(np.array([[1.0, 0.0], [0.0, 1.0]]), 2) is None


def test_a_zero_before_a_bad_row_is_not_blamed():
    refusal = input_checks.refuse_posterior(np.array([[1.0, 0.0], [0.5, np.nan]]), 2)
    assert str(refusal) == "not finite: row 1: column 1 is nan"


def test_a_shape_or_type_is_named():
    assert str(input_checks.refuse_posterior(np.ones((2, 2)) / 2, 3)) == (
        "wrong width: row 0: expected shape (n, 3), got (2, 2)"
    )
    assert str(input_checks.refuse_posterior(np.eye(3, dtype=int), 3)) == (
        "wrong type: row 0: expected floating-point probabilities, got int64"
    )
    nothing = input_checks.refuse_posterior(np.empty(0), 3)
    assert nothing.index is None
    assert str(nothing) == "wrong width: expected shape (n, 3), got (0,)"


def said(call, *args, **kwargs):
    """What an error says, with the name of its argument in front, as its field says too."""
    with pytest.raises(ArgumentError) as error:
        call(*args, **kwargs)
    assert str(error.value).startswith(f"{error.value.argument}: ")
    return str(error.value)


def test_a_list_that_is_no_array_is_named():
    ragged = [[0.5, 0.5], [1.0]]
    assert said(fedrela.relabel, ragged, [0, 1]) == "posterior: its rows differ in length"
    assert said(input_checks.as_labels, ragged) == "labels: its rows differ in length"
    assert said(input_checks.check_array, "allowed", ragged, (2, 2), np.bool_) == "allowed: its rows differ in length"


def test_labels_are_integers_in_one_dimension():
    assert said(input_checks.as_labels, [[0, 1]]) == "labels: expected one dimension, got shape (1, 2)"
    assert said(input_checks.as_labels, [0.0, 1.0]) == "labels: expected integers, got float64"
    assert said(input_checks.as_labels, [True]) == "labels: expected integers, got bool"
    assert said(input_checks.as_labels, np.empty(0, bool)) == "labels: expected integers, got bool"
    for given in ([], np.empty(0, np.float32)):
        assert input_checks.as_labels(given).dtype == np.int64
    for dtype in (np.int8, np.uint16):
        assert input_checks.as_labels(np.zeros(2, dtype)).dtype == dtype


def test_the_first_label_out_of_range_is_named():
    y = np.array([0, 2, 3, -1])
    assert input_checks.refuse_labels(y[:2], 3) is None
    refusal = input_checks.refuse_labels(y, 3)
    assert (str(refusal), refusal.index) == ("label out of range: row 2: expected a label from 0 to 2, got 3", 2)
    assert str(input_checks.refuse_labels(y, 4)) == "label out of range: row 3: expected a label from 0 to 3, got -1"


def test_a_refusal_is_no_warning():
    with np.errstate(all="raise"):
        refusals = [input_checks.refuse_posterior(np.array([row]), 2) for row in ([np.inf, -np.inf], [1.7e308] * 2)]
    assert [str(refusal).partition(";")[0] for refusal in refusals] == [
        "not finite: row 0: column 0 is inf",
        "not normalised: row 0: expected a sum of 1, got inf",
    ]


def test_short_floats_are_summed_as_long_ones():
    row = np.array([[0.3, 0.1, 0.9]], np.float16)  # 1.3 in float16 is 1.2998
    assert "expected a sum of 1, got 1.29993;" in str(input_checks.refuse_posterior(row, 3))


@pytest.mark.parametrize(("total", "fits"), [(1.049, True), (0.951, True), (1.051, False), (0.949, False)])
def test_rounded_probabilities_sum_to_almost_one(total, fits):
    assert (input_checks.refuse_posterior(np.array([[0.5, total - 0.5]]), 2) is None) == fits


@pytest.mark.parametrize("seed", [-1, 1.5, "seed"])
def test_a_seed_is_a_number_or_a_generator(seed):
    assert said(input_checks.check_seed, seed) == f"seed: expected an integer >= 0, or a NumPy generator, got {seed!r}"
    rng = np.random.default_rng(3)
    assert input_checks.check_seed(rng) is rng
    assert input_checks.check_seed(3).random() == np.random.default_rng(3).random()


def test_labels_must_fit_their_dtype():
    """127 is the last class that int8 holds."""
    fedrela.relabel(np.full((1, 128), 1 / 128), np.zeros(1, np.int8))
    with pytest.raises(ArgumentError, match="labels: int8 cannot hold class 128; use a wider integer dtype"):
        fedrela.relabel(np.full((1, 129), 1 / 129), np.zeros(1, np.int8))


@pytest.mark.parametrize("value", [1.0000001, 1.5, 2, -1e-9])
def test_fractions_end_at_zero_and_one(value):
    with pytest.raises(ArgumentError) as error:
        check_fraction("max_fraction", value)
    assert str(error.value) == f"max_fraction: expected a fraction from 0 to 1, got {value!r}"
    assert check_fraction("x", 0) == 0.0
    assert check_fraction("x", np.float32(1)) == 1.0


@pytest.mark.parametrize(
    ("value", "shape", "dtype", "message"),
    [
        (np.eye(2, dtype=int), (2, 2), np.bool_, "u: expected booleans, got int64"),
        ([True], (1,), np.float64, "u: expected numbers, got bool"),
        (["a"], (1,), np.float64, "u: expected numbers, got <U1"),
        ([1.0], (2,), np.float64, "u: expected shape (2,), got (1,)"),
        ([1.0, np.nan], (2,), np.float64, "u: expected finite numbers, got NaN or infinity"),
        ([1.0, np.inf], (2,), np.float64, "u: expected finite numbers, got NaN or infinity"),
        ([1.0, -np.inf], (2,), np.float64, "u: expected finite numbers, got NaN or infinity"),
    ],
)
def test_arrays_of_rules(value, shape, dtype, message):
    assert said(input_checks.check_array, "u", value, shape, dtype) == message


def test_arrays_keep_their_values():
    for given in ([1], np.array([1], np.uint8), np.array([1], np.float32)):
        array = input_checks.check_array("u", given, (1,), np.float64)
        assert (array.dtype, array.tolist()) == (np.float64, [1.0])
    assert input_checks.check_array("u", [], (0,), np.float64).size == 0
    mask = np.array([True, False])
    assert input_checks.check_array("u", mask, (2,), np.bool_) is mask


def test_nothing_to_do_has_no_notes():
    done = fedrela.relabel(np.empty((0, 3)), [])
    assert done.ledger.notes == ()
    assert done.weights.tolist() == [1.0, 1.0, 1.0]
    assert fedrela.relabel([GOOD, [0.1, 0.8, 0.1]] * 9, [0, 1] * 9, normalize="none").ledger.notes == ()


def test_one_class_in_all():
    done = fedrela.relabel(np.ones((3, 1)), [0, 0, 0], num_classes=1, tau=1.0)
    assert done.refusal is None
    assert not any("one class only" in note for note in done.ledger.notes)
    assert done.ledger.options["ineligible"] == 0
    assert done.ledger.options["forbidden"] == []
    assert done.share == 0.0


def test_what_is_no_matrix_is_refused():
    assert fedrela.relabel(None, [0, 1]).refusal == "wrong width: row 0: expected shape (n, 1), got ()"
    assert fedrela.relabel([0.5, 0.5], [0, 0]).refusal == (
        "wrong width: row 0: expected one column per class, shape (n, C), got (2,); "
        "with two classes: numpy.column_stack([1 - p, p])"
    )
    assert fedrela.relabel(np.empty((2, 0)), [0, 0]).refusal == "wrong width: expected shape (n, 1), got (2, 0)"


def test_two_equal_labels_of_two_classes_are_one_class_only():
    assert fedrela.relabel([[0.5, 0.5], [0.4, 0.6]], [1, 1]).ledger.notes[0] == (
        "one class only: all 2 samples are of class 1"
    )
    warnings = fedrela.preview([[0.4, 0.6], [0.3, 0.7]], [1, 1]).warnings
    assert (
        warnings[0]
        == "one class only: all 2 samples are of class 1, so every move adds a class that these data do not have"
    )


def test_the_default_seed_is_zero():
    rng = np.random.default_rng(5)
    Q, y = rng.dirichlet(np.ones(4), 200), np.repeat([0, 1, 2, 3], [120, 50, 20, 10])
    np.testing.assert_array_equal(fedrela.relabel(Q, y, tau=0.2).labels, fedrela.relabel(Q, y, tau=0.2, seed=0).labels)
    assert (fedrela.relabel(Q, y, tau=0.2).labels != fedrela.relabel(Q, y, tau=0.2, seed=1).labels).any()


@pytest.mark.parametrize("given", [["cat", "dog"], np.array(["cat", "dog"], object), np.array([None, "cat"])])
def test_labels_as_text_get_the_way_to_convert_them(given):
    how = "; for class names in the order of the posterior's columns: [names.index(label) for label in labels]"
    assert said(input_checks.as_labels, given).endswith(how)
    assert how not in said(input_checks.as_labels, np.array([1, None]))
