"""The preview: exact expectations, and warnings before harm."""

from __future__ import annotations

import numpy as np
import pytest

import fedrela
from fedrela.core.previews import Preview
from fedrela.errors import ArgumentError
from fedrela.text import percent
from helpers.core_cases import make

CASE = make(300, 6, 0.1, 8, skew=1.5, skill=3.0, digits=None)


def test_sums_and_shapes():
    table = fedrela.preview(CASE.Q, CASE.y)
    assert table.taus.tolist() == [0.01, 0.03, 0.05, 0.1, 0.2]
    assert table.flow.shape == (5, 6, 6)
    np.testing.assert_allclose(table.into.sum(axis=1), table.total)
    np.testing.assert_allclose(table.out_of.sum(axis=1), table.total)
    np.testing.assert_allclose(table.share, table.total / 300)
    assert np.all(np.diff(table.total) > 0)
    assert table.counts.tolist() == np.bincount(CASE.y, minlength=6).tolist()
    assert [row["tau"] for row in table.rows()] == table.taus.tolist()
    assert table.warnings == ()


@pytest.mark.parametrize("target", ["argmax", "winner"])
def test_expectation_is_the_average_of_relabel(target):
    table = fedrela.preview(CASE.Q, CASE.y, taus=[0.1], target=target)
    flows = [fedrela.relabel(CASE.Q, CASE.y, tau=0.1, target=target, seed=s).ledger.flow for s in range(400)]
    np.testing.assert_allclose(np.mean(flows, axis=0), table.flow[0], atol=0.5)


def test_expectation_where_sample_one_is_the_first_that_may_move():
    rho = fedrela.relabel(CASE.Q, CASE.y, tau=0.2, preset="official").rho
    stays, moves = int(np.argmin(rho.max(axis=1))), int(np.argmax((rho > 0).sum(axis=1)))
    order = np.r_[stays, moves, np.delete(np.arange(300), [stays, moves])]
    Q, y = CASE.Q[order], CASE.y[order]
    assert (rho[moves] > 0).sum() > 1
    expected = np.zeros((6, 6))
    for i, row in enumerate(rho[order]):
        nobody = 1.0
        for c in np.argsort(-row, kind="stable"):
            expected[y[i], c] += nobody * row[c]
            nobody *= 1.0 - row[c]
    np.testing.assert_allclose(fedrela.preview(Q, y, taus=[0.2], preset="official").flow[0], expected, atol=1e-9)


def test_the_owners_rules_count():
    allowed = np.ones((6, 6), bool)
    allowed[:, 2] = False
    free = fedrela.preview(CASE.Q, CASE.y)
    table = fedrela.preview(CASE.Q, CASE.y, allowed=allowed, eligible=CASE.y != 1)
    assert free.into[-1, 2] > 0
    assert table.into[-1, 2] == 0
    assert not table.out_of[:, 1].any()


def test_a_poor_model_is_warned_of():
    rng = np.random.default_rng(0)
    table = fedrela.preview(rng.dirichlet(np.ones(6), 300), CASE.y)
    assert table.warnings[0] == (
        f"the model agrees with {percent(table.agreement)} of the labels, hardly more than chance; "
        "a poor model moves more labels than a good one: re-label later, or check the order of the classes"
    )
    assert abs(table.kappa) < 0.2
    constant = np.tile([0.9, 0.02, 0.02, 0.02, 0.02, 0.02], (300, 1))
    assert "hardly more than chance" in fedrela.preview(constant, CASE.y).warnings[0]


@pytest.mark.parametrize(
    ("said", "labels", "agreement", "kappa"),
    [([0, 0, 0, 1, 0], [0, 0, 0, 0, 1], 0.6, -0.25), ([0, 1, 1, 0], [0, 0, 1, 2], 0.5, 0.2)],
)
def test_a_model_that_is_just_good_enough(said, labels, agreement, kappa):
    table = fedrela.preview(np.eye(3)[said], labels, taus=[0.0])
    assert table.agreement == agreement
    assert table.kappa == (kappa if kappa > 0 else pytest.approx(kappa))
    assert table.warnings == ()


def test_a_client_with_a_dominant_class_is_no_reason_to_warn():
    """Its model may well say the dominant class always; that is what the method is for."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [291, 9])
    sure = np.clip(rng.normal(0.95, 0.02, 300), 0, 1)
    assert fedrela.preview(np.c_[sure, 1 - sure], y).warnings == ()
    alone = fedrela.preview(np.c_[sure, 1 - sure], np.zeros(300, int)).warnings
    assert [text.split(":")[0] for text in alone] == ["one class only"]


def test_a_model_right_half_of_the_time_among_many_classes_knows_something():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 400)
    said = np.where(rng.random(400) < 0.5, y, rng.integers(0, 10, 400))
    table = fedrela.preview(np.eye(10)[said] * 0.9 + 0.01, y, taus=[0.01])
    assert 0.4 < table.kappa < table.agreement < 0.6
    assert table.warnings == ()


def test_agreement_of_a_good_model():
    table = fedrela.preview(np.eye(6)[CASE.y] * 0.94 + 0.01, CASE.y)
    assert (table.agreement, table.kappa) == (1.0, 1.0)


def test_an_unusual_share_is_warned_of():
    case = make(400, 100, 0.2, 1, skew=0.5, skill=4.0, digits=None)
    said = " ".join(fedrela.preview(case.Q, case.y, taus=[0.001, 0.2]).warnings)
    assert "at tau 0.2" in said
    assert "more than usual" in said


def test_one_class_only_is_warned_of():
    table = fedrela.preview(CASE.Q, np.full(300, 4))
    assert any(text.startswith("one class only: all 300 samples are of class 4") for text in table.warnings)
    names = [f"kind {c}" for c in range(CASE.Q.shape[1])]
    said = fedrela.preview(CASE.Q, np.full(300, 4), class_names=names).warnings
    assert any(text.startswith("one class only: all 300 samples are of class kind 4") for text in said)


def test_a_cap_that_will_bind_is_said():
    table = fedrela.preview(CASE.Q, CASE.y, max_fraction=0.02)
    assert any("expected to move than max_fraction 0.02 allows" in text for text in table.warnings)


def test_text():
    text = str(fedrela.preview(CASE.Q, CASE.y))
    assert text.splitlines()[0].split()[:3] == ["tau", "moves", "share"]
    assert "first choice is the label for" in text
    assert str(fedrela.preview(CASE.Q * np.nan, CASE.y)) == "refused: not finite: row 0: column 0 is nan"


def test_nothing_at_all():
    table = fedrela.preview(np.empty((0, 3)), [])
    assert table.total.tolist() == [0.0] * 5
    assert table.warnings == ()
    assert "nan" not in str(table)
    assert "the label for 100.0 % of the samples" in str(fedrela.preview([[0.9, 0.1], [0.8, 0.2]], [0, 0]))


def test_wrong_tau():
    with pytest.raises(ArgumentError, match="taus: expected a fraction from 0 to 1, got 5; the official"):
        fedrela.preview(CASE.Q, CASE.y, taus=[0.05, 5])
    with pytest.raises(ArgumentError, match=r"taus: expected a list of fractions, got 0\.05"):
        fedrela.preview(CASE.Q, CASE.y, taus=0.05)


def test_the_text_word_for_word():
    """By hand: z of sample 3 is 1.498, the threshold is the lone class-1 sample's 0, tanh(1.498) = 0.905."""
    posterior = [[0.99, 0.01], [0.98, 0.02], [0.97, 0.03], [0.6, 0.4], [0.2, 0.8]]
    table = fedrela.preview(posterior, [0, 0, 0, 0, 1], taus=[0.4], max_fraction=0.1)
    assert table.flow[0].round(3).tolist() == [[0, 0.905], [0, 0]]
    assert str(table).splitlines() == [
        "   tau  moves   share       ->1",
        " 0.400    0.9  18.1 %       0.9",
        "the model's first choice is the label for 100.0 % of the samples",
        "warning: at tau 0.4, more labels are expected to move than max_fraction 0.1 allows",
    ]


def test_a_tau_below_a_thousandth_is_not_zero():
    assert str(fedrela.preview(CASE.Q, CASE.y, taus=[0.0004])).splitlines()[1].startswith(" 4e-04 ")


def test_at_most_eight_targets_are_listed_the_busiest_first():
    case = make(600, 14, 0.1, 2, skew=1.0, skill=2.0, digits=None)
    table = fedrela.preview(case.Q, case.y, taus=[0.1])
    named = [int(word[2:]) for word in str(table).splitlines()[0].split() if word.startswith("->")]
    assert named == np.argsort(-table.into[0], kind="stable")[:8].tolist()


def test_of_equally_busy_targets_the_first_are_listed():
    flow = np.zeros((1, 40, 40))
    flow[0, 0, 1::2], flow[0, 0, 2::2] = 0.5, 1.0
    table = Preview(np.array([0.1]), np.full(40, 10), flow, 0.9, 0.9, (), None, None)
    assert str(table).splitlines()[:2] == [
        "   tau  moves   share       ->2     ->4     ->6     ->8    ->10    ->12    ->14    ->16",
        " 0.100   29.0   7.2 %  " + "     1.0" * 8,
    ]


def test_the_unusual_share_in_words():
    case = make(400, 100, 0.2, 1, skew=0.5, skill=4.0, digits=None)
    table = fedrela.preview(case.Q, case.y, taus=[0.2])
    assert (
        f"at tau 0.2 {percent(table.share[0], 0)} of the labels would change, more than usual (30 %)" in table.warnings
    )


def test_a_refused_preview_expects_nothing():
    table = fedrela.preview(CASE.Q * 2, CASE.y)
    assert not table.flow.any()
    assert not table.counts.any()
    assert np.isnan(table.agreement)
    assert table.share.tolist() == [0.0] * 5


def test_one_sample_agrees_or_not():
    assert fedrela.preview([[0.2, 0.8]], [1]).agreement == 1.0
    assert fedrela.preview([[0.2, 0.8]], [0]).agreement == 0.0
    assert fedrela.preview([[1.0]], [0]).warnings == ()
