"""What the owner protects does not move: rows, classes by name, classes that are absent, and tau by class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedrela
from fedrela.core.limits import Limits, OwnerLimits, eligible_by_agreement
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
    backwards = [str(row) for row in range(149, -1, -1)]  # ids that look like the numbers of other rows
    assert run(keep=mask, ids=backwards).moved.tolist() == by_mask.moved.tolist()
    assert run(keep=[int(backwards[row]) for row in proven], ids=map(int, backwards)).ledger.ids == tuple(backwards)
    eligible = np.arange(150) < 100
    assert run(keep=proven, eligible=eligible).moved.tolist() == run(eligible=eligible & ~mask).moved.tolist()


def test_integers_of_numpy_are_numbers():
    rows, pair = PLAIN.moved[:2], max(pairs(PLAIN), key=lambda pair: PLAIN.ledger.flow[pair])
    assert run(keep=list(rows)).moved.tolist() == run(keep=rows.tolist()).moved.tolist()
    assert run(forbidden=[tuple(np.array(pair))]).moved.tolist() == run(forbidden=[pair]).moved.tolist()
    assert run(class_tau={np.int64(3): 0.0}).moved.tolist() == run(class_tau={3: 0.0}).moved.tolist()


@pytest.mark.parametrize("kind", [list, np.array])
def test_class_names_that_are_numbers_are_names(kind, tmp_path):
    names = kind([1, 2, 3, 4])
    with pytest.raises(ArgumentError, match=r"1 is the name of one class and the number of another; write '1'"):
        run(forbidden=[(1, 2)], class_names=names)
    done = run(forbidden=[("1", "2")], class_names=names)
    assert (0, 1) not in pairs(done)
    done.ledger.save(tmp_path / "ledger.json")
    assert fedrela.Ledger.load(tmp_path / "ledger.json").class_names == ("1", "2", "3", "4")


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


ROW = "expected a row number >= 0 or an id, got"
CLASS = "expected a class number >= 0 or a class name, got"
PAIR = "expected a pair of classes [from, to], got"
PAIRS = "expected a list of pairs of classes [from, to], got"
NAMED = {"class_names": NAMES}


@pytest.mark.parametrize(
    ("limits", "said", "item"),
    [
        ({"keep": [0, 150]}, "keep: expected a row from 0 to 149, got 150", (1,)),
        ({"keep": ["p3"]}, "keep: expected a row from 0 to 149, got 'p3'", (0,)),
        ({"keep": ["\u0663"]}, "keep: expected a row from 0 to 149, got '\u0663'", (0,)),
        ({"keep": ["p3", "p999"], "ids": IDS}, "keep: expected one of the ids, got 'p999'", (1,)),
        ({"keep": 3}, "keep: expected a list of rows, by number or id, got 3", ()),
        ({"keep": [0, 1.5]}, f"keep: {ROW} 1.5", (1,)),
        ({"keep": [-1]}, f"keep: {ROW} -1", (0,)),
        ({"keep": [True]}, f"keep: {ROW} true", (0,)),
        ({"keep": np.ones((1, 150), bool)}, "keep: expected shape (150,), got (1, 150)", ()),
        ({"keep": np.ones(3, bool), "ids": IDS}, "keep: expected shape (150,), got (3,)", ()),
        ({"keep": np.zeros(3, bool)}, "keep: expected shape (150,), got (3,)", ()),
        ({"forbidden": "ab"}, f"forbidden: {PAIRS} 'ab'", ()),
        ({"forbidden": [(0, 1), "ab"]}, f"forbidden: {PAIR} 'ab'", (1,)),
        ({"forbidden": [(0, 1, 2)]}, f"forbidden: {PAIR} a list", (0,)),
        ({"forbidden": [(0, 1), (2, 1.5)]}, f"forbidden: {CLASS} 1.5", (1, 1)),
        ({"forbidden": [(-1, 0)]}, f"forbidden: {CLASS} -1", (0, 0)),
        ({"forbidden": [(0, 1), (1, 1)]}, "forbidden: expected two different classes, got 1 twice", (1,)),
        ({"forbidden": [(0, 4)]}, "forbidden: expected classes from 0 to 3, got 4", (0, 1)),
        (
            {"forbidden": [(0, 1), ("well", "rar")], **NAMED},
            "forbidden: unknown class 'rar'; nearest: 'rare'",
            (1, 1),
        ),
        (
            {"forbidden": [(0, 1), ("well", "rare")]},
            "forbidden: unknown class 'well'; give class_names in the order of the posterior's columns",
            (1, 0),
        ),
        ({"forbidden": [("1", "rare")], **NAMED}, "forbidden: unknown class '1'", (0, 0)),
        (
            {"forbidden": [(0, 1)], "class_names": "3210"},
            "forbidden: 0 is the name of one class and the number of another; write '0' for the name",
            (0, 0),
        ),
        ({"allowed": [(0, 1), (4, 0)]}, "allowed: expected classes from 0 to 3, got 4", (1, 0)),
        ({"allowed": [[]]}, f"allowed: {PAIR} a list", (0,)),
        ({"allowed": [True, False]}, "allowed: expected shape (4, 4), got (2,)", ()),
        ({"allowed": [[True, False], [True]]}, "allowed: its rows differ in length", ()),
        ({"allowed": np.eye(4)}, "allowed: expected booleans, got float64", ()),
        ({"class_tau": {"4": 0.1}}, "class_tau.4: expected a class from 0 to 3, got '4'", ("4",)),
        (
            {"class_tau": {"sick": 0.1}},
            "class_tau.sick: unknown class 'sick'; give class_names in the order of the posterior's columns",
            ("sick",),
        ),
        ({"class_tau": {-1: 0.1}}, f"class_tau.-1: {CLASS} -1", ("-1",)),
        ({"class_tau": {1.5: 0.1}}, f"class_tau.1.5: {CLASS} 1.5", ("1.5",)),
        (
            {"class_tau": {0: 0.1, 1: 5}},
            "class_tau.1: expected a fraction from 0 to 1, got 5; "
            "the official code counts in per cent: 5 there is 0.05 here",
            ("1",),
        ),
        ({"class_tau": 0.1}, "class_tau: expected a table class -> fraction, got 0.1", ()),
        (
            {"class_tau": {1: 0.1, "1": 0.2}},
            "class_tau.1: expected each class once, got 1 as number and as text",
            ("1",),
        ),
        (
            {"class_tau": {"rare": 0.1, 3: 0.2}, "class_names": NAMES},
            "class_tau.rare: expected each class once, got class 3 by its number and by its name",
            ("rare",),
        ),
        ({"class_names": NAMES[:3]}, "class_names: expected 4 distinct strings, got 3 in 3", ()),
        ({"ids": ["a"] * 150}, "ids: expected 150 distinct strings, got 1 in 150", ()),
    ],
)
def test_wrong_limits_are_named(limits, said, item):
    with pytest.raises(ArgumentError) as error:
        run(**limits)
    assert (str(error.value), error.value.argument, error.value.item) == (said, said.split(":")[0].split(".")[0], item)


def test_limits_in_every_form_become_one():
    limits = Limits(keep=["b", 3, "a", 0, 3], class_tau={"b": 0.2, 10: 0, "2": 1})
    assert limits.keep == (0, 3, "a", "b")
    assert list(limits.class_tau.items()) == [("10", 0.0), ("2", 1.0), ("b", 0.2)]
    assert Limits(keep={2, 1}) == Limits(keep=np.array([1, 2]))
    assert Limits(keep=np.array([False, True])).kept_rows(2, ids=("1", "0")).tolist() == [False, True]
    with pytest.raises(ArgumentError, match=r"^keep: expected a list of rows, by number or id, got booleans$"):
        OwnerLimits(keep=np.array([True]))
    assert Limits(forbidden={(0, 1)}) == Limits(forbidden=frozenset([(0, 1)])) == Limits(forbidden=[[0, 1]])
    assert Limits(class_tau={}) == Limits() == Limits(allowed=None, forbidden=(), keep=(), absent=True, class_tau=None)
    assert Limits(allowed=()).allowed == ()


def test_allowed_moves_as_a_matrix():
    assert Limits().allowed_moves(2) is None
    assert Limits(allowed=[]).allowed_moves(2).tolist() == [[False, False], [False, False]]
    assert Limits(forbidden=[(1, 0)]).allowed_moves(2).tolist() == [[True, True], [False, True]]
    assert Limits(allowed=[(1, 0), (0, 1)], forbidden=[(1, 0)]).allowed_moves(2).tolist() == [
        [False, True],
        [False, False],
    ]
    given = np.ones((2, 2), bool)
    for form in (given, given.tolist(), list(given)):
        assert Limits(allowed=form, forbidden=[(1, 0)]).allowed_moves(2).tolist() == [[True, True], [False, True]]
    assert given.all()
    assert Limits(allowed=[[True]]).allowed_moves(1).tolist() == [[True]]
    with pytest.raises(ArgumentError, match=r"^forbidden: expected classes from 0 to 1, got ill$"):
        Limits(forbidden=[("ill", "well")]).allowed_moves(2)


def test_kept_rows_and_taus_at_their_borders():
    assert Limits(keep=["0", 2]).kept_rows(3).tolist() == [True, False, True]
    assert Limits(keep=["a", 1]).kept_rows(3, ("1", "b", "a")).tolist() == [True, False, True]
    assert Limits(class_tau={"2": 0.5}).class_taus(0.1, 3).tolist() == [0.1, 0.1, 0.5]
    assert Limits(class_tau={"2": 0.5}).class_taus(1, 3).tolist() == [1.0, 1.0, 0.5]
    with pytest.raises(ArgumentError, match=r"^class_tau\.rare: expected a class from 0 to 2, got 'rare'$"):
        Limits(class_tau={"rare": 0.5}).class_taus(0.1, 3)


def test_the_stricter_of_two_limits():
    ours = OwnerLimits(
        tau=0.2,
        max_fraction=0.1,
        min_agreement=0.3,
        allowed=[(0, 2), ("a", 1), (0, 1)],
        forbidden=[(2, 0)],
        keep=[1],
        class_tau={1: 0.1, 2: 0.4},
    )
    theirs = OwnerLimits(
        enabled=False,
        tau=0.3,
        max_fraction=0.05,
        min_agreement=0.5,
        allowed=[(1, 2), (0, 2), ("a", 1)],
        forbidden=[("b", 0)],
        keep=["x"],
        absent=False,
        class_tau={2: 0.3, 3: 0.5},
    )
    both = OwnerLimits(
        enabled=False,
        tau=0.2,
        max_fraction=0.05,
        min_agreement=0.5,
        allowed=[("a", 1), (0, 2)],
        forbidden=[("b", 0), (2, 0)],
        keep=[1, "x"],
        absent=False,
        class_tau={1: 0.1, 2: 0.3, 3: 0.2},
    )
    assert ours.stricter(theirs) == theirs.stricter(ours) == both
    for limits in (ours, theirs):
        assert replace(limits.stricter(OwnerLimits()), allowed=limits.allowed) == limits
        assert OwnerLimits().stricter(limits) == limits.stricter(OwnerLimits()) == limits.stricter(limits)
    assert OwnerLimits().stricter(OwnerLimits()) == OwnerLimits()


def test_owners_limits_are_pairs_since_a_file_holds_no_matrix():
    with pytest.raises(ArgumentError) as error:
        OwnerLimits(allowed=np.eye(2, dtype=bool))
    assert str(error.value) == f"allowed: {PAIRS} booleans"
    assert error.value.argument == "allowed"


def test_agreement_just_enough_and_just_too_small():
    assert eligible_by_agreement(0.5, 0.5, 3) is None
    nobody = eligible_by_agreement(0.49, 0.5, 150)
    assert run(eligible=nobody).ledger.options["ineligible"] == nobody.size == 150


@pytest.mark.parametrize(("agreement", "broken"), [(0.5, ""), (0.49, "min_agreement"), (None, "min_agreement")])
def test_earlier_moves_need_the_agreement_too_and_an_unknown_one_is_too_small(agreement, broken):
    ledger = replace(PLAIN.ledger, provenance=fedrela.core.Provenance(agreement=agreement))
    assert OwnerLimits(min_agreement=0.5).broken_by(ledger) == broken
    assert OwnerLimits().broken_by(ledger) == ""
    assert OwnerLimits(min_agreement=0.5).broken_by(run(eligible=np.zeros(150, np.bool_)).ledger) == ""


def test_limits_with_numbers_stay_as_they_are():
    limits = Limits(allowed=[(0, 1)], forbidden=[(1, 0)], class_tau={1: 0.5})
    assert limits.numbered(()) == limits
