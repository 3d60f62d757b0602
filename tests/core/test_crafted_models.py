"""Battery B4: models crafted to move as many labels as possible stay within the bounds (G2, threat T1)."""

from __future__ import annotations

import numpy as np
import pytest

import fedrela
from helpers import batteries
from helpers.core_cases import make, softmax

SETTINGS = [(C, tau) for C in (2, 10, 100) for tau in (0.01, 0.05, 0.10)]
ATTEMPTS = -(-batteries.count(200, 5000) // len(SETTINGS))


def climb(logits, y, tau, rng):
    """One step of a hill-climb on the expected number of moves: keep a change of some rows if it moves more."""
    trial = logits.copy()
    rows = rng.choice(len(y), max(1, len(y) // 8), replace=False)
    trial[rows] += rng.normal(scale=rng.choice([0.5, 3.0, 20.0]), size=(rows.size, logits.shape[1]))
    score = [fedrela.preview(softmax(each), y, taus=[tau]).total[0] for each in (logits, trial)]
    return trial if score[1] > score[0] else logits


@pytest.mark.parametrize(("C", "tau"), SETTINGS)
def test_bounds_hold_for_every_model_on_the_way(C, tau):
    rng = np.random.default_rng(C * 1000 + int(tau * 100))
    moved_most = 0
    for attempt in range(ATTEMPTS):
        if attempt % 12 == 0:  # a new start: another client and a random model
            case = make(240, C, tau, attempt, skew=1.0, skill=0.0, digits=None)
            logits = rng.normal(size=case.Q.shape)
        logits = climb(logits, case.y, tau, rng)
        done = fedrela.relabel(softmax(logits), case.y, tau=tau, uniforms=np.zeros(case.Q.shape))
        into = np.bincount(done.labels[done.moved], minlength=C)
        assert into.max() <= int(tau * case.n)
        assert done.moved.size <= min(case.n, (C - 1) * int(tau * case.n))
        capped = fedrela.relabel(softmax(logits), case.y, tau=tau, max_fraction=0.1, uniforms=np.zeros(case.Q.shape))
        assert capped.moved.size <= 24
        counts = np.bincount(case.y, minlength=C)
        assert not np.isin(done.moved, np.flatnonzero(counts[case.y] == counts.min())).any()
        moved_most = max(moved_most, done.moved.size)
        batteries.tried()
    assert moved_most > 0, "the search never moved a label: it would prove nothing"
