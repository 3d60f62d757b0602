"""Matched arms: what makes each, and what is compared with what."""

from __future__ import annotations

import pytest

from fedrela.arms import ARMS, DROP, MATCHED, PAIRS
from fedrela.experiment.load import parse_config
from fedrela.experiment.overlay import overlay
from helpers.small_runs import small


@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_says_all_that_makes_it(arm):
    odd = {"start": 4, "moves": "random", "lr_scale": 0.5, "enabled": False, "tau": 0.3}
    found = overlay(parse_config(small(relabel=odd)), {"relabel": ARMS[arm].relabel()})
    assert found.relabel.enabled == ("baseline" not in arm)
    assert found.relabel.lr_scale == (DROP if arm.endswith("drop") else 1.0)
    assert "baseline" in arm or found.relabel.moves == arm.removesuffix("-drop")
    assert (found.relabel.start, found.relabel.tau) == (4, 0.3)


def test_pairs_differ_in_re_labelling_alone():
    for base, treated in PAIRS:
        assert ARMS[base].drop == ARMS[treated].drop
        assert treated.startswith("fedrela")
    assert {arm for pair in PAIRS for arm in pair} == set(ARMS)
    assert {arm for pair in PAIRS[:2] for arm in pair} == set(MATCHED)
