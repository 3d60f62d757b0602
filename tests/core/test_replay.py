"""A ledger made again: equal under every option, and where it differs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedrela
from fedrela.core.draws import random_moves
from fedrela.core.replay import first_difference, replay
from fedrela.errors import DataError
from helpers.core_cases import make

CASE = make(120, 5, 0.2, 4, skew=1.5, skill=1.0, digits=None)
KEPT = np.arange(120) % 3 > 0
ALLOWED = np.arange(25).reshape(5, 5) % 4 > 0
OPTIONS = {
    "plain": {"tau": 0.2},
    "official": {"preset": "official", "tau": 0.3},
    "thresholds": {"threshold": [0.3] * 5, "normalize": "minmax", "max_fraction": 0.05},
    "rules": {"tau": 0.4, "allowed": ALLOWED, "eligible": KEPT},
    "nobody": {"tau": 0.4, "eligible": np.zeros(120, bool)},
    "limits": {"tau": 0.4, "keep": [3, 7, 8], "class_tau": {"1": 0.3}, "absent": False, "forbidden": [[2, 0]]},
    "method": {"method": "margin", "tau": 0.2},
}


@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("form", ["json", "npz"])
def test_a_ledger_is_enough_to_make_its_moves_again(tmp_path, case, form):
    done = fedrela.relabel(CASE.Q, CASE.y, seed=7, **OPTIONS[case])
    done.ledger.save(tmp_path / f"a.{form}")
    back = fedrela.Ledger.load(tmp_path / f"a.{form}")
    again = replay(back, CASE.Q)
    assert first_difference(back, again) is None
    assert again == back
    assert len(back) > 0 or case == "nobody"


def test_the_first_difference_is_named():
    ledger = fedrela.relabel(CASE.Q, CASE.y, tau=0.3, seed=7).ledger
    other = replay(ledger, CASE.Q, seed=8)
    rows = np.flatnonzero(ledger.labels != other.labels)
    said = first_difference(ledger, other)
    assert said.startswith(f"row {rows[0]}: the ledger ")
    assert said.endswith(f"; {rows.size} of 120 rows differ")
    named = replace(ledger, ids=tuple(f"p{row}" for row in range(120)), class_names=tuple("abcde"))
    assert f"(id 'p{rows[0]}')" in first_difference(named, other)


def test_what_cannot_be_made_again():
    ledger = fedrela.relabel(CASE.Q, CASE.y, tau=0.3, seed=np.random.default_rng(1)).ledger
    with pytest.raises(DataError, match="its draws came from a generator"):
        replay(ledger, CASE.Q)
    assert first_difference(ledger, replay(ledger, CASE.Q, seed=np.random.default_rng(1))) is None
    with pytest.raises(DataError, match="drawn at random, as a control"):
        replay(random_moves(ledger, CASE.Q, np.random.default_rng(0)), CASE.Q, seed=1)
    with pytest.raises(DataError, match="0 samples were not eligible, got 40"):
        replay(ledger, CASE.Q, eligible=KEPT, seed=1)


def test_protected_rows_follow_their_ids():
    ledger = fedrela.relabel(CASE.Q, CASE.y, seed=7, **OPTIONS["rules"]).ledger
    ids = tuple(f"p{row}" for row in range(120))
    turned = replace(ledger, ids=ids).for_rows(ids[::-1])
    assert turned.options["ineligible_rows"] == [119 - row for row in np.flatnonzero(~KEPT)[::-1]]
    assert turned.for_rows(ids) == replace(ledger, ids=ids)
