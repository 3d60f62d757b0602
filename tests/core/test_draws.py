"""The control: the same moves from class to class, of other samples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fedrela
from fedrela.core.draws import random_moves
from helpers.batteries import examples


def ledger_of(n, classes, tau, seed):
    rng = np.random.default_rng(seed)
    Q, y = rng.dirichlet(np.ones(classes), n), rng.integers(0, classes, (2, n)).min(axis=0)
    return Q, fedrela.relabel(Q, y, num_classes=classes, tau=tau, seed=seed).ledger


@examples(100, 3000)
@given(st.integers(0, 120), st.integers(2, 6), st.floats(0, 1), st.integers(0, 999))
def test_the_flow_is_the_same_and_the_ledger_sound(n, classes, tau, seed):
    Q, ledger = ledger_of(n, classes, tau, seed)
    control = random_moves(ledger, Q, np.random.default_rng(seed))
    control.check()
    assert control.flow.tolist() == ledger.flow.tolist()
    assert control.labels.dtype == ledger.labels.dtype
    assert np.bincount(control.labels, minlength=1).tolist() == np.bincount(ledger.labels, minlength=1).tolist()
    assert control.posterior.tolist() == Q[control.index, control.new].tolist()
    assert fedrela.undo(control).tolist() == ledger.original.tolist()
    assert random_moves(ledger, Q, np.random.default_rng(seed)) == control


def test_every_sample_of_a_class_is_as_likely():
    Q, ledger = ledger_of(60, 3, 0.4, 5)
    assert 5 < len(ledger) < 40
    times = np.zeros(60)
    for seed in range(400):
        times[random_moves(ledger, Q, np.random.default_rng(seed)).index] += 1
    for old in range(3):
        of_class = ledger.original == old
        share = (ledger.old == old).sum() / of_class.sum()
        spread = 5 * np.sqrt(max(share * (1 - share), 1e-12) / 400)
        assert np.abs(times[of_class] / 400 - share).max() <= spread


def test_no_move_stays_no_move():
    Q, ledger = ledger_of(40, 3, 0.0, 1)
    assert len(random_moves(ledger, Q, np.random.default_rng(0))) == 0


def test_random_moves_have_no_score_and_no_probability():
    Q = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]])
    done = fedrela.relabel(Q, [0, 0, 0, 1], tau=0.5, seed=1)
    control = random_moves(done.ledger, Q, np.random.default_rng(0))
    assert len(control) == len(done.ledger) > 0
    assert not control.rho.any()
    assert not control.z.any()


def test_what_may_not_move_does_not_move_at_random_either():
    Q, ledger = ledger_of(60, 3, 0.4, 5)
    keep = ledger.original == 0
    keep[ledger.index] = False
    kept = fedrela.relabel(Q, ledger.original, num_classes=3, tau=0.4, seed=5, keep=keep).ledger
    assert len(kept) > 5
    for seed in range(20):
        control = random_moves(kept, Q, np.random.default_rng(seed))
        assert not keep[control.index].any()
        assert control.flow.tolist() == kept.flow.tolist()
