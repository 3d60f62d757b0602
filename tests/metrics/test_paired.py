"""Metrics over seeds: paired differences with Student's t interval, and their description."""

from __future__ import annotations

import math
import statistics

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from fedrela.errors import ArgumentError
from fedrela.metrics.paired import Spread, in_words, is_noise, paired
from helpers.batteries import examples

shares = st.floats(0, 1)
pairs = st.lists(st.tuples(shares, shares), min_size=2, max_size=12)


@given(pairs)
@examples(200, 5_000)
def test_a_paired_interval_is_that_of_a_one_sample_t_test(values):
    base, treated = zip(*values, strict=True)
    found = paired(base, treated)
    assert found.values == tuple(after - before for before, after in values)
    assert math.isclose(found.mean, statistics.fmean(found.values), abs_tol=1e-12)
    assert math.isclose(found.deviation, statistics.stdev(found.values), abs_tol=1e-9)
    if found.deviation > 1e-6:
        expected = scipy.stats.ttest_1samp(found.values, 0).confidence_interval(0.95)
        assert math.isclose(found.low, expected.low, abs_tol=1e-9)
        assert math.isclose(found.high, expected.high, abs_tol=1e-9)
    other = paired(treated, base)
    if found.low is None:
        assert found.deviation < 1e-12 < abs(found.mean)
        assert other.low is None
        return
    assert math.isclose(other.low, -found.high, abs_tol=1e-12)
    assert is_noise(found.as_record()) == (found.low <= 0 <= found.high)


def test_one_seed_has_no_interval():
    found = paired([0.5], [0.75])
    assert found.as_record() == {"mean": 0.25, "deviation": None, "values": [0.25], "low": None, "high": None}
    assert is_noise(found.as_record()) is None
    assert in_words(found.as_record()) == "+25.0 points"


def test_what_is_missing_stays_missing():
    assert Spread.of([0.5, None]).as_record() == {"mean": None, "deviation": None, "values": [0.5, None]}
    assert Spread.of([]).mean is None
    found = paired([0.5, None, 0.25], [0.75, 0.5, 0.5])
    assert found.values == (0.25, None, 0.25)
    assert (found.mean, found.low, found.high) == (None, None, None)
    assert in_words(found.as_record()) == "unknown"


def test_seeds_that_agree_by_chance_have_no_interval():
    assert in_words(paired([0.5, 0.5], [0.5, 0.5]).as_record()) == "0.0 points, within noise (95 % interval 0.0 to 0.0)"
    assert in_words(paired([0.5, 0.25], [0.25, 0.0]).as_record()) == "-25.0 points"


def test_arms_of_other_seeds_are_no_pairs():
    with pytest.raises(ArgumentError, match="treated: expected 2 values, one per seed, got 1"):
        paired([0.5, 0.5], [0.5])
