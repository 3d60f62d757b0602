"""What the owner protects does not move: rows, classes by name, classes that are absent, and tau by class."""

from __future__ import annotations

import numpy as np
import pytest

import fedrela
from fedrela.core.limits import Limits
from fedrela.errors import ArgumentError
from helpers.core_cases import make

CASE = make(150, 4, 0.2, 3, skew=1.5, skill=1.0, digits=None)
NAMES = ("well", "cold", "flu", "rare")
IDS = tuple(f"p{row}" for row in range(150))
PLAIN = fedrela.relabel(CASE.Q, CASE.y, tau=0.2, seed=1)


def run(y=CASE.y, **limits):
    return fedrela.relabel(CASE.Q, y, **{"tau": 0.2, "seed": 1} | limits)


def pairs(done):
    return {(int(a), int(b)) for a, b in zip(done.ledger.old, done.ledger.new, strict=True)}


def test_proven_rows_stay():
    proven = PLAIN.moved[::2]
    assert proven.size > 1
    mask = np.isin(np.arange(150), proven)
    by_number, by_mask = run(keep=proven.tolist()), run(keep=mask)
    by_id = run(keep=[f"p{row}" for row in proven], ids=IDS)
    assert not set(proven.tolist()) & set(by_number.moved.tolist())
    assert by_number.moved.tolist() == by_mask.moved.tolist() == by_id.moved.tolist()
    np.testing.assert_array_equal(by_number.threshold, PLAIN.threshold)  # they count for the statistics all the same
    assert by_id.ledger.options["ineligible_rows"] == proven.tolist()
    assert by_id.ledger.ids == IDS
    eligible = np.arange(150) < 100
    assert run(keep=proven, eligible=eligible).moved.tolist() == run(eligible=eligible & ~mask).moved.tolist()


def test_classes_are_named_by_name_or_number():
    busiest = max(pairs(PLAIN), key=lambda pair: PLAIN.ledger.flow[pair])
    named = tuple(NAMES[c] for c in busiest)
    assert busiest not in pairs(run(forbidden=[busiest]))
    assert run(forbidden=[named], class_names=NAMES).labels.tolist() == run(forbidden=[busiest]).labels.tolist()
    assert pairs(run(allowed=[named], class_names=NAMES)) == {busiest}
    matrix = np.zeros((4, 4), bool)
    matrix[busiest] = True
    assert run(allowed=matrix).labels.tolist() == run(allowed=[busiest]).labels.tolist()
    assert run(allowed=matrix.tolist(), forbidden=[busiest]).moved.size == 0
    assert run(class_names=NAMES).ledger.class_names == NAMES


def test_a_number_that_is_the_name_of_another_class_is_no_answer():
    limits = Limits(forbidden=[(1, 2)])
    assert limits.numbered(("0", "1", "2")).forbidden == ((1, 2),)
    with pytest.raises(ArgumentError, match=r"forbidden: 1 is the name of one class and the number of another; .*'1'"):
        limits.numbered(("1", "2", "3"))
    assert Limits(class_tau={"3": 0.1}).numbered(("1", "2", "3")).class_tau == {"2": 0.1}


def test_no_move_into_a_class_that_is_absent():
    y = np.where(CASE.y == 3, 0, CASE.y)
    assert 3 in run(y).ledger.new
    without = run(y, absent=False)
    assert 3 not in without.ledger.new
    assert without.moved.size
    assert without.ledger.options["absent"] is False
    assert "absent" not in run(y).ledger.options  # so the ledgers of before keep their bytes


@pytest.mark.parametrize("method", ["fedrela", "margin", "confident", "random"])
def test_tau_by_class(method):
    done = run(class_tau={"rare": 0.0, "2": 0.3}, class_names=NAMES, method=method, tau=0.1)
    into = np.bincount(done.ledger.new, minlength=4)
    assert into[3] == 0
    assert into[2] <= 0.3 * 150
    assert into[1] <= 0.1 * 150
    assert done.ledger.options["class_tau"] == {"2": 0.3, "3": 0.0}
    if method == "fedrela":
        alone = {tau: fedrela.relabel(CASE.Q, CASE.y, tau=tau).threshold for tau in (0.0, 0.1, 0.3)}
        expected = [alone[0.1][0], alone[0.1][1], alone[0.3][2], alone[0.0][3]]
        np.testing.assert_array_equal(done.threshold, expected)


def test_a_preview_takes_the_same_limits():
    limits = {"forbidden": [("well", "rare")], "absent": False, "class_tau": {"flu": 0.0}, "class_names": NAMES}
    flow = fedrela.preview(CASE.Q, CASE.y, [0.2], **limits).flow[0]
    assert flow[0, 3] == 0
    assert flow[:, 2].sum() == 0
    assert flow.sum() > 0


def test_a_replay_has_the_same_limits():
    from fedrela.core.replay import first_difference, replay

    limits = {"forbidden": [("well", "rare")], "absent": False, "class_tau": {"flu": 0.3}, "keep": [3, 5, 9]}
    ledger = run(**limits, class_names=NAMES).ledger
    assert first_difference(ledger, replay(ledger, CASE.Q)) is None


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"keep": [150]}, "keep: expected a row from 0 to 149, got 150"),
        ({"keep": ["p3"]}, "keep: expected a row from 0 to 149, got 'p3'"),
        ({"keep": ["p999"], "ids": IDS}, "keep: expected one of the ids, got 'p999'"),
        ({"keep": 3}, "keep: expected a list of rows"),
        ({"keep": [1.5]}, "keep: expected a row number >= 0 or an id"),
        ({"forbidden": [("wel", "rare")], "class_names": NAMES}, "forbidden: unknown class 'wel'; nearest: 'well'"),
        ({"forbidden": [("well", "rare")]}, "forbidden: unknown class 'well'; give class_names"),
        ({"forbidden": [(0, 4)]}, "forbidden: expected classes from 0 to 3, got 4"),
        ({"forbidden": [(1, 1)]}, "forbidden: expected two different classes, got 1 twice"),
        ({"allowed": [(0, 4)]}, "allowed: expected classes from 0 to 3, got 4"),
        ({"class_tau": {"9": 0.1}}, "class_tau.9: expected a class from 0 to 3, got '9'"),
        ({"class_tau": {"sick": 0.1}}, "class_tau.sick: unknown class 'sick'"),
        ({"class_tau": {-1: 0.1}}, "class_tau.-1: expected a class number >= 0"),
        ({"class_tau": {0: 5}}, "class_tau.0: expected a fraction from 0 to 1, got 5"),
        ({"class_tau": 0.1}, "class_tau: expected a table"),
        ({"class_names": NAMES[:3]}, "class_names: expected 4 distinct strings, got 3 in 3"),
        ({"ids": ["a"] * 150}, "ids: expected 150 distinct strings, got 1 in 150"),
    ],
)
def test_wrong_limits_are_named(limits, said):
    with pytest.raises(ArgumentError, match=said):
        run(**limits)


def test_limits_with_numbers_stay_as_they_are():
    limits = Limits(allowed=[(0, 1)], forbidden=[(1, 0)], class_tau={1: 0.5})
    assert limits.numbered(()) == limits
