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


def test_the_difference_in_words():
    ledger = fedrela.relabel(CASE.Q, CASE.y, tau=0.3, seed=7).ledger
    none = fedrela.relabel(CASE.Q, CASE.y, tau=0.0).ledger
    row, old, new = (int(each[0]) for each in (ledger.index, ledger.old, ledger.new))
    end = f"; {len(ledger)} of 120 rows differ"
    moved, left = f"moves it from '{old}' to '{new}'", f"leaves it in '{old}'"
    assert first_difference(ledger, none) == f"row {row}: the ledger {moved}, the replay {left}{end}"
    named = replace(none, ids=tuple(f"p{row}" for row in range(120)), class_names=tuple("abcde"))
    moved, left = f"moves it from '{'abcde'[old]}' to '{'abcde'[new]}'", f"leaves it in '{'abcde'[old]}'"
    assert first_difference(named, ledger) == f"row {row} (id 'p{row}'): the ledger {left}, the replay {moved}{end}"


def refused(ledger, **given):
    with pytest.raises(DataError) as error:
        replay(ledger, CASE.Q, **given)
    return str(error.value)


def test_what_cannot_be_made_again():
    ledger = fedrela.relabel(CASE.Q, CASE.y, tau=0.3, seed=np.random.default_rng(1)).ledger
    assert refused(ledger) == "ledger: its draws came from a generator; without its seed they cannot be replayed"
    assert first_difference(ledger, replay(ledger, CASE.Q, seed=np.random.default_rng(1))) is None
    control = random_moves(ledger, CASE.Q, np.random.default_rng(0))
    assert refused(control, seed=1) == ("ledger: its samples were drawn at random, as a control; it cannot be replayed")
    assert refused(ledger, eligible=KEPT, seed=1) == "ledger: 0 samples were not eligible, got 40"
    kept = fedrela.relabel(CASE.Q, CASE.y, tau=0.3, eligible=KEPT).ledger
    assert refused(kept, eligible=np.ones(120, bool)) == "ledger: 40 samples were not eligible, got 0"
    wide = replay(kept, np.c_[CASE.Q, np.zeros(120)])
    assert wide.refusal == "wrong width: row 0: expected shape (n, 5), got (120, 6)"


def test_a_ledger_that_does_not_say_who_was_eligible_means_everybody():
    ledger = fedrela.relabel(CASE.Q, CASE.y, tau=0.3, seed=7).ledger
    silent = replace(ledger, options={name: ledger.options[name] for name in ledger.options if name != "ineligible"})
    assert replay(silent, CASE.Q) == ledger
    assert refused(silent, eligible=KEPT) == "ledger: 0 samples were not eligible, got 40"


def test_protected_rows_follow_their_ids():
    ledger = fedrela.relabel(CASE.Q, CASE.y, seed=7, **OPTIONS["rules"]).ledger
    ids = tuple(f"p{row}" for row in range(120))
    turned = replace(ledger, ids=ids).for_rows(ids[::-1])
    assert turned.options["ineligible_rows"] == [119 - row for row in np.flatnonzero(~KEPT)[::-1]]
    assert turned.for_rows(ids) == replace(ledger, ids=ids)
