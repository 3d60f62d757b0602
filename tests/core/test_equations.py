"""The equations one by one, on numbers small enough to do by hand."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from fedrela.core import equations as eq

Y = np.array([1, 0, 1, 0, 0])
GROUPS = eq.ClassGroups.of(Y, np.bincount(Y))
# one column; class 0 holds 0.1, 0.3, 0.5 and class 1 holds 0.2, 0.6
Q = np.array([0.2, 0.1, 0.6, 0.3, 0.5])[GROUPS.order][None]


def test_index_sets():
    assert GROUPS.order.tolist() == [1, 3, 4, 0, 2]
    assert GROUPS.present.tolist() == [0, 1]
    assert (GROUPS.starts.tolist(), GROUPS.sizes.tolist()) == ([0, 3], [3, 2])


def test_frequent_classes_come_first():
    y = np.array([2, 0, 2, 3, 0, 2])
    groups = eq.ClassGroups.of(y, np.bincount(y, minlength=5))
    assert groups.present.tolist() == [2, 0, 3]
    assert groups.order.tolist() == [0, 2, 5, 1, 4, 3]
    assert (groups.starts.tolist(), groups.sizes.tolist()) == ([0, 3, 5], [3, 2, 1])


def test_classes_of_one_size_stay_in_their_order():
    """Draws follow this order, so it must not depend on how a sort works."""
    counts = np.random.default_rng(0).integers(1, 4, 300)
    groups = eq.ClassGroups.of(np.repeat(np.arange(300), counts), counts)
    assert groups.present.tolist() == sorted(range(300), key=lambda c: -counts[c])


@pytest.mark.parametrize("classes", [65_536, 65_537])
def test_more_classes_than_16_bits_can_number(classes):
    y = np.arange(classes)[::-1]
    groups = eq.ClassGroups.of(y, np.ones(classes, int))
    np.testing.assert_array_equal(groups.order, y)
    np.testing.assert_array_equal(groups.present, y[::-1])


def test_mean_and_deviation():
    mu = eq.class_means(Q, GROUPS)
    np.testing.assert_allclose(mu, [[0.3, 0.4]])
    centred = Q - GROUPS.per_sample(mu)
    np.testing.assert_allclose(eq.class_deviations(centred, mu, GROUPS, "sample"), [[0.2, np.sqrt(0.08)]])
    np.testing.assert_allclose(eq.class_deviations(centred, mu, GROUPS, "population"), [[np.sqrt(0.08 / 3), 0.2]])


def test_scores():
    z, _ = eq.z_scores(Q, GROUPS, "sample")
    np.testing.assert_allclose(z, [[-1, 0, 1, -np.sqrt(0.5), np.sqrt(0.5)]], atol=1e-15)
    z, _ = eq.z_scores(Q, GROUPS, "population")
    np.testing.assert_allclose(z[0, 3:], [-1, 1])
    scores, width = eq.minmax_scores(Q, GROUPS)
    np.testing.assert_allclose(scores, [[0, 0.5, 1, 0, 1]])
    np.testing.assert_allclose(width, [[0.4, 0.4]])


def test_the_official_floor_is_the_least_deviation():
    flat = np.full((1, 5), 0.25)
    tight = flat + np.array([[0, 1e-7, 2e-7, 0, 0]])
    z, sigma = eq.z_scores(tight, GROUPS, "population")
    np.testing.assert_array_equal(sigma, [[1e-6, 0.0]])
    assert z[0, 2] == pytest.approx(0.1)
    assert not z[0, 3:].any()


@pytest.mark.parametrize("spread", ["sample", "population"])
def test_a_class_that_is_never_predicted_has_no_spread(spread):
    z, sigma = eq.z_scores(np.zeros((1, 5)), GROUPS, spread)
    assert not sigma.any()
    assert not z.any()


def test_agreement_is_unknown_without_samples():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(eq.agreement(np.empty((0, 3)), np.empty(0, int)))


def test_tiny_posteriors_have_scores_of_their_own():
    """Scores compare samples of a class with each other, however small the posterior of a rare class is."""
    large, small = eq.z_scores(Q, GROUPS, "sample")[0], eq.z_scores(Q * 1e-30, GROUPS, "sample")[0]
    np.testing.assert_allclose(small, large, rtol=1e-12)


def test_weights():
    np.testing.assert_allclose(eq.class_weights(np.array([50, 10, 30])), [0, 1, 0.5])
    np.testing.assert_array_equal(eq.class_weights(np.array([7, 7])), [1, 1])
    np.testing.assert_array_equal(eq.weight_gain(0.5, np.array([0.0, 0.5, 1.0])), [0.5, 0.0, 0.0])


@pytest.mark.parametrize(
    ("n", "tau", "rule", "rank"),
    [
        (100, 0.05, "higher", (95, 95, 0.0)), (101, 0.05, "higher", (95, 95, 0.0)), (100, 0.0, "higher", (99, 99, 0.0)),
        (100, 1.0, "higher", (0, 0, 0.0)), (1, 0.5, "higher", (0, 0, 0.0)), (500, 0.05, "order", (474, 474, 0.0)),
        (37, 0.05, "order", (35, 35, 0.0)), (19, 0.05, "order", (18, 18, 0.0)), (10, 1.0, "order", (0, 0, 0.0)),
        (5, 0.125, "linear", (3, 4, 0.5)), (5, 0.0, "linear", (4, 4, 0.0)), (5, 1.0, "linear", (0, 1, 0.0)),
    ],
)  # fmt: skip
def test_ranks(n, tau, rule, rank):
    assert eq.quantile_rank(n, tau, rule) == rank


def test_no_rounding_lets_one_sample_more_through():
    for n in range(1, 400):
        for tau in (0.01, 0.05, 0.07, 0.1, 0.29, 1 / 3, 0.58, 0.99):
            for rule in ("higher", "order"):
                assert n - 1 - eq.quantile_rank(n, tau, rule)[0] <= int(tau * n)
    n, tau = 93_535_307, 1.0691150027443642e-08  # tau * n is a little less than 1
    assert eq.quantile_rank(n, tau, "higher")[0] == n - 1


@pytest.mark.parametrize("n", [2, 7, 40])
def test_linear_thresholds_are_those_of_numpy_to_the_bit(n):
    Z = np.random.default_rng(n).normal(size=(50, n))
    for tau in (0.0, 0.03, 0.25, 0.5, 0.77, 1.0):
        np.testing.assert_array_equal(eq.quantile_threshold(Z, tau, "linear"), np.quantile(Z, 1 - tau, axis=1))


def test_probability():
    z, t, gain = np.array([2.0, 1.0, 0.5, 3.0]), 1.0, np.array([1.0, 1.0, 1.0, 0.5])
    np.testing.assert_allclose(eq.probability(z, t, gain), [np.tanh(1), 0, 0, np.tanh(2) / 2])
    q, t = np.array([0.2, 0.1, 1.03]), 0.1
    np.testing.assert_allclose(eq.raw_probability(q, t, np.full(3, 0.5)), [0.1, 0, 0.5])


def test_very_small_posteriors_are_not_flat_under_the_floor():
    """The official floor damps tiny spreads, it does not erase them."""
    z, sigma = eq.z_scores(Q * 1e-9, GROUPS, "population")
    np.testing.assert_array_equal(sigma, [[1e-6, 1e-6]])
    np.testing.assert_allclose(z, (Q - GROUPS.per_sample(eq.class_means(Q, GROUPS))) * 1e-3, rtol=1e-9)


def test_minmax_without_width_is_zero():
    flat = np.array([[0.2, 0.2, 0.2, 0.1, 0.4]])
    scores, width = eq.minmax_scores(flat, GROUPS)
    np.testing.assert_array_equal(scores, [[0, 0, 0, 0, 1]])
    np.testing.assert_array_equal(width, [[0, 0.4 - 0.1]])
