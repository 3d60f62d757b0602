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


def test_arrays_of_rules():
    with pytest.raises(ArgumentError, match=r"allowed: expected booleans, got int64"):
        input_checks.check_array("allowed", np.eye(2, dtype=int), (2, 2), np.bool_)
    with pytest.raises(ArgumentError, match=r"u: expected numbers, got <U1"):
        input_checks.check_array("u", ["a"], (1,), np.float64)
    assert input_checks.check_array("u", [1], (1,), np.float64).dtype == np.float64


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
    assert fedrela.relabel([0.5, 0.5], [0, 0]).refusal == "wrong width: row 0: expected shape (n, 1), got (2,)"
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
