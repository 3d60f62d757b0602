"""`relabel` as its users call it: edge cases, the owner's rules, thresholds, and wrong arguments."""

from __future__ import annotations

import numpy as np
import pytest

import fedrela
from fedrela.errors import ArgumentError
from helpers.core_cases import make

CASE = make(200, 6, 0.1, 5, skew=1.5, skill=1.5, digits=None)
SURE = np.zeros(CASE.Q.shape)  # with these draws every positive probability succeeds


def run(**options) -> fedrela.Relabelling:
    return fedrela.relabel(CASE.Q, CASE.y, **({"tau": 0.1, "uniforms": SURE} | options))


def test_no_sample():
    done = fedrela.relabel(np.empty((0, 4)), [])
    assert done.refusal is None
    assert done.labels.shape == (0,)
    assert done.rho.shape == (0, 4)
    assert np.isinf(done.threshold).all()
    assert done.share == 0.0


def test_one_sample_never_moves():
    for preset in ("paper", "official"):
        done = fedrela.relabel([[0.2, 0.8]], [0], tau=1.0, preset=preset, uniforms=[[0.0, 0.0]])
        assert done.labels.tolist() == [0]
        assert "class too small" in done.ledger.notes[-1]


def test_one_class_only_relabels_and_is_noted():
    Q = make(60, 4, 0.1, 3, skew=0, skill=1, digits=None).Q
    done = fedrela.relabel(Q, np.full(60, 2), tau=0.1, uniforms=np.zeros((60, 4)))
    assert done.moved.size > 0
    assert 2 not in done.labels[done.moved]
    assert done.ledger.notes == ("one class only: all 60 samples are of class 2",)


def test_two_classes_move_one_way():
    Q = make(80, 2, 0.1, 3, skew=0, skill=1, digits=None).Q
    y = np.repeat([0, 1], [60, 20])
    done = fedrela.relabel(Q, y, tau=0.2, uniforms=np.zeros((80, 2)))
    assert done.moved.size > 0
    assert set(y[done.moved]) == {0}


def test_a_thousand_classes():
    case = make(700, 1000, 0.05, 1, skew=0.5, skill=3, digits=None)
    done = fedrela.relabel(case.Q, case.y.astype(np.int16), tau=0.05)
    assert done.moved.size > 0
    assert done.rho.shape == (700, 1000)


def test_absent_classes_are_targets():
    y = np.repeat([0, 1], 40)  # equal and present; classes 2 to 5 are absent
    done = fedrela.relabel(CASE.Q[:80], y, tau=0.1, uniforms=SURE[:80])
    assert done.moved.size > 0
    assert set(done.labels[done.moved]) <= {2, 3, 4, 5}


def test_a_class_of_one_sample_is_not_absent():
    y = np.repeat([0, 1], [79, 1])
    done = fedrela.relabel(CASE.Q[:80], y, tau=0.1, uniforms=SURE[:80], absent=False)
    assert set(done.labels[done.moved]) == {1}


def test_no_spread_is_noted_and_not_refused():
    Q = np.tile([0.7, 0.2, 0.1], (30, 1))
    y = np.repeat([0, 1, 2], [20, 8, 2])
    for preset in ("paper", "official"):
        done = fedrela.relabel(Q, y, tau=0.5, preset=preset, uniforms=np.zeros((30, 3)))
        assert done.refusal is None
        assert done.moved.size == 0
        assert done.ledger.notes == ("no spread: score 0 for 9 (class, column) pairs",)


def test_constant_columns_are_flat_whatever_the_rounding_of_their_mean():
    """The mean of equal numbers is seldom exact; that rounding must not become a score."""
    y = np.repeat([0, 1], [41, 7])
    for value in (0.1, 0.3, 1 / 3, 0.7):
        Q = np.tile([value, 1 - value], (48, 1))
        assert not fedrela.relabel(Q, y, tau=0.5, uniforms=np.zeros((48, 2))).rho.any()


def test_forbidden_moves_do_not_happen():
    free = run()
    busiest = np.unravel_index(free.ledger.flow.argmax(), (6, 6))
    allowed = np.ones((6, 6), bool)
    allowed[busiest] = False
    done = run(allowed=allowed)
    assert free.ledger.flow[busiest] > 0
    assert done.ledger.flow[busiest] == 0
    assert not done.rho[CASE.y == busiest[0], busiest[1]].any()
    assert done.ledger.options["forbidden"] == [[int(c) for c in busiest]]
    np.testing.assert_array_equal(done.threshold, free.threshold)


def test_samples_that_must_stay_stay():
    free = run()
    eligible = np.ones(CASE.n, bool)
    eligible[free.moved[::2]] = False
    done = run(eligible=eligible)
    np.testing.assert_array_equal(done.moved, free.moved[1::2])
    assert done.ledger.options["ineligible"] == free.moved[::2].size
    np.testing.assert_array_equal(done.threshold, free.threshold)


@pytest.mark.parametrize(("stay", "rows"), [([], None), ([7], [7]), ([0, 3, 199], [0, 3, 199]), (range(200), None)])
def test_the_ledger_names_the_rows_that_stay_unless_it_is_none_or_all(stay, rows):
    eligible = np.ones(CASE.n, bool)
    eligible[list(stay)] = False
    options = run(eligible=eligible).ledger.options
    assert (options["ineligible"], options.get("ineligible_rows")) == (len(stay), rows)
    assert "ineligible_rows" not in run().ledger.options


def test_cap_reached_is_noted():
    done = run(max_fraction=0.02)
    assert done.moved.size == 4
    assert done.share == 0.02
    assert done.ledger.notes[-1].startswith("cap reached")
    assert not any("cap" in note for note in run().ledger.notes)


def test_constant_threshold_a_class_or_for_all():
    one, each = run(threshold=1.25), run(threshold=[1.25] * 6)
    np.testing.assert_array_equal(one.rho, each.rho)
    np.testing.assert_array_equal(one.threshold, np.full(6, 1.25))
    closed = run(threshold=[1.25, 1.25, 1.25, 1e9, 1.25, 1.25])
    assert (one.labels == 3).sum() > (CASE.y == 3).sum()
    assert not closed.rho[:, 3].any()


def test_thresholds_are_numpy_quantiles():
    from fedrela.core import equations as eq

    groups = eq.ClassGroups.of(CASE.y, np.bincount(CASE.y, minlength=6))
    z = eq.z_scores(CASE.Q[groups.order].T.copy(), groups, "sample")[0]
    for rule in ("higher", "linear"):
        for tau in (0.0, 0.03, 0.05, 0.5, 1.0):
            expected = np.quantile(z, 1 - tau, axis=1, method=rule)
            np.testing.assert_allclose(run(threshold=rule, tau=tau).threshold, expected, rtol=1e-13)


def test_minmax_scores_lie_between_zero_and_one():
    done = run(normalize="minmax")
    assert done.moved.size > 0
    assert done.ledger.z.min() > 0
    assert done.ledger.z.max() <= 1
    assert done.threshold.max() <= 1


def test_without_standardisation_rho_is_posterior_times_gain():
    done = run(normalize="none")
    i, c = done.moved, done.labels[done.moved]
    gain = done.weights[c] - done.weights[CASE.y[i]]
    np.testing.assert_allclose(done.ledger.rho, CASE.Q[i, c] * gain)
    np.testing.assert_array_equal(done.ledger.z, done.ledger.posterior)
    np.testing.assert_array_equal(done.threshold, np.quantile(CASE.Q, 0.9, axis=0, method="higher"))


@pytest.mark.parametrize("target", ["argmax", "winner"])
def test_ties_go_to_the_lowest_class(target):
    """Classes 1 and 2 are equally rare and equally likely for every sample."""
    twin = np.array([0.05, 0.1, 0.02, 0.3, 0.08, 0.01, 0.2, 0.2])
    Q = np.c_[1 - 2 * twin, twin, twin]
    done = fedrela.relabel(Q, [0, 0, 0, 0, 0, 0, 1, 2], tau=0.5, target=target, uniforms=np.zeros(Q.shape))
    assert done.moved.size > 1
    np.testing.assert_array_equal(done.rho[done.moved, 1], done.rho[done.moved, 2])
    assert set(done.labels[done.moved]) == {1}


def test_a_seed_of_numpy_is_recorded_as_well():
    ledger = fedrela.relabel(CASE.Q, CASE.y, tau=0.1, seed=np.int64(7)).ledger
    assert ledger.options["seed"] == 7
    assert ledger == fedrela.relabel(CASE.Q, CASE.y, tau=0.1, seed=7).ledger


def test_draws_depend_on_the_seed_alone():
    first, again, other = (fedrela.relabel(CASE.Q, CASE.y, tau=0.1, seed=s).labels for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_draw_frequencies_match_rho():
    """Over many seeds a sample moves as often as the product of its probabilities says."""
    rho = run().rho
    sample = int(np.argmax((rho > 0.2).sum(axis=1) * (rho.max(axis=1) < 0.9)))
    moves = [sample in fedrela.relabel(CASE.Q, CASE.y, tau=0.1, seed=s).moved for s in range(3000)]
    assert np.mean(moves) == pytest.approx(1 - np.prod(1 - rho[sample]), abs=0.03)


def test_draws_succeed_strictly_below_rho():
    rho = run().rho
    assert run(uniforms=rho).moved.size == 0
    assert run(uniforms=np.nextafter(rho, 0)).moved.size == run().moved.size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tau": 5}, "tau: expected a fraction from 0 to 1, got 5; the official code counts in per cent"),
        ({"tau": -0.1}, "tau: expected a fraction"),
        ({"tau": float("nan")}, "tau: expected a fraction"),
        ({"tau": "0.05"}, "tau: expected a fraction"),
        ({"tau": True}, "tau: expected a fraction"),
        ({"preset": "papr"}, "preset: expected one of paper, official, got 'papr'"),
        ({"spread": "std"}, "spread: expected one of sample, population"),
        ({"threshold": "lower"}, "one of higher, order, linear"),
        ({"threshold": [1.0, 2.0]}, r"expected shape \(6,\), got \(2,\)"),
        ({"threshold": float("nan")}, "threshold: expected finite numbers"),
        ({"threshold": float("inf")}, "expected finite numbers"),
        ({"threshold": ""}, "threshold: expected one of higher"),
        ({"threshold": float("-inf")}, "expected finite numbers"),
        ({"threshold": [[1.0], [1.0, 2.0]]}, "expected a z value, got a list"),
        ({"seed": -1, "uniforms": None}, "seed: expected an integer >= 0"),
        ({"seed": "a", "uniforms": None}, "seed: expected an integer >= 0"),
        ({"seed": 1.5, "uniforms": None}, "seed: expected an integer >= 0"),
        ({"allowed": [[True], [True, False]]}, "allowed: its rows differ in length"),
        ({"target": "best"}, "target: expected one of argmax, winner"),
        ({"normalize": "rank"}, "normalize: expected one of zscore, minmax, none"),
        ({"max_fraction": 30}, "max_fraction: expected a fraction from 0 to 1"),
        ({"allowed": np.ones((5, 5), bool)}, r"allowed: expected shape \(6, 6\)"),
        ({"allowed": np.ones((6, 6))}, "allowed: expected booleans"),
        ({"eligible": np.ones(3, bool)}, r"eligible: expected shape \(200,\)"),
        ({"eligible": np.arange(200)}, "eligible: expected booleans"),
        ({"uniforms": np.zeros((200, 5))}, r"uniforms: expected shape \(200, 6\)"),
        ({"uniforms": np.full((200, 6), np.nan)}, "uniforms: expected finite numbers"),
        ({"num_classes": 0}, "num_classes: expected an integer >= 1, got 0"),
        ({"num_classes": 6.0}, "num_classes: expected an integer >= 1, got 6.0"),
        ({"num_classes": True}, "num_classes: expected an integer >= 1, got true"),
    ],
)
def test_wrong_arguments_raise(options, message):
    with pytest.raises(ArgumentError, match=message) as error:
        run(**options)
    assert error.value.exit_code == 2
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    ("posterior", "labels", "message"),
    [
        (CASE.Q, CASE.y[:-1], "posterior and labels differ in length: 200 and 199"),
        (CASE.Q, CASE.y.astype(float), "labels: expected integers, got float64"),
        (CASE.Q, CASE.y > 2, "labels: expected integers, got bool"),
        (CASE.Q, CASE.y[:, None], "labels: expected one dimension"),
        ([[0.5, 0.5], [1.0]], [0, 1], "posterior: its rows differ in length"),
        ([0.5, 0.5, 0.5], [0, 0], "posterior and labels differ in length: 3 and 2"),
        ([[0.5, 0.5]] * 2, [[0], [1, 2]], "labels: its rows differ in length"),
        (np.full((1, 200), 1 / 200), np.zeros(1, np.int8), "labels: int8 cannot hold class 199"),
    ],
)
def test_wrong_shapes_raise(posterior, labels, message):
    with pytest.raises(ArgumentError, match=message):
        fedrela.relabel(posterior, labels)


def test_block_borders_do_not_show():
    """Columns are walked in blocks and rows in tiles; the result must not depend on where they are cut."""
    from fedrela.core import candidates

    case = make(2500, 150, 0.05, 9, skew=1.0, skill=2, digits=None)
    whole = fedrela.relabel(case.Q, case.y, uniforms=case.U)
    for columns, rows, numbers in ((1, 7, 1), (149, 2499, 10_000), (64, 100_000, 10**9)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(candidates, "TRANSPOSE_COLUMNS", columns)
            patch.setattr(candidates, "TRANSPOSE_ROWS", rows)
            patch.setattr(candidates, "CACHE_NUMBERS", numbers)
            cut = fedrela.relabel(case.Q, case.y, uniforms=case.U)
        np.testing.assert_array_equal(cut.labels, whole.labels)
        np.testing.assert_array_equal(cut.rho, whole.rho)
