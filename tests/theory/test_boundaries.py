"""Every statement of the paper's Section 3 against direct numerical work on two Gaussians."""

from __future__ import annotations

import numpy as np
import pytest

from fedrela import theory
from fedrela.errors import ArgumentError
from fedrela.theory import Clients, TwoGaussians

GAUSSIANS = TwoGaussians(2.0)
X = np.linspace(-8.0, 12.0, 400_001)
P_L = np.exp(-(X**2) / 2) / np.sqrt(2 * np.pi)
P_J = np.exp(-((X - GAUSSIANS.distance) ** 2) / 2) / np.sqrt(2 * np.pi)
HETEROGENEOUS = Clients.of([[40, 10], [5, 400], [30, 900]])


def crossing(above: np.ndarray) -> float:
    """Return the first point of the grid from which a condition holds."""
    return float(X[int(np.argmax(above))])


def test_densities_and_recalls_are_those_of_the_grid():
    np.testing.assert_allclose(GAUSSIANS.ratio(X), P_J / P_L, rtol=1e-9)
    at = GAUSSIANS.point(5.0)
    found = [float(np.trapezoid(P_J[at <= X], X[at <= X])), float(np.trapezoid(P_L[at > X], X[at > X]))]
    np.testing.assert_allclose(GAUSSIANS.recalls(5.0), found, atol=1e-4)


@pytest.mark.parametrize("minority", [0.5, 0.1, 0.01])
def test_lemma_1_the_bayes_boundary_makes_the_fewest_errors(minority):
    gained = np.cumsum(minority * P_J - (1 - minority) * P_L)  # errors of a boundary further to the right
    fewest = float(X[int(np.argmin(gained))])
    assert GAUSSIANS.point(theory.bayes_threshold(minority, 1 - minority)) == pytest.approx(fewest, abs=1e-3)


@pytest.mark.parametrize(("rho", "back"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2), (0.4, 0.1)])
def test_lemma_2_the_boundary_of_a_client_after_relabelling(rho, back):
    minor, major = 0.1 * P_J, 0.9 * P_L
    relabelled = minor * (1 - back) + major * rho > major * (1 - rho) + minor * back
    threshold = theory.local_threshold(0.1, 0.9, rho, back)
    assert GAUSSIANS.point(threshold) == pytest.approx(crossing(relabelled), abs=1e-3)


def test_lemma_2_holds_up_to_one_half_only():
    with pytest.raises(ArgumentError, match="rho: expected a number from 0 to"):
        theory.local_threshold(0.1, 0.9, rho=0.6)


def aggregated(clients: Clients, rho=0.0, back=0.0) -> float:
    """Return the boundary of the aggregated posterior from the densities themselves."""
    total = np.zeros_like(X)
    rho, back = np.broadcast_to(rho, clients.weights.shape), np.broadcast_to(back, clients.weights.shape)
    for k, weight in enumerate(clients.weights):
        minor, major = clients.minority[k] * P_J, clients.majority[k] * P_L
        total += weight * (minor * (1 - back[k]) + major * rho[k]) / (minor + major)
    return crossing(total > 0.5)


@pytest.mark.parametrize("rho", [0.0, 0.2, np.array([0.0, 0.3, 0.1])])
def test_lemma_3_corrected_is_the_boundary_of_the_aggregated_posterior(rho):
    found = GAUSSIANS.point(theory.aggregated_threshold(HETEROGENEOUS, rho))
    assert found == pytest.approx(aggregated(HETEROGENEOUS, rho), abs=1e-3)


def test_lemma_3_as_printed_drops_denominators():
    printed = GAUSSIANS.point(theory.printed_threshold(HETEROGENEOUS, 0.2))
    assert aggregated(HETEROGENEOUS, 0.2) - printed > 0.2


def test_lemma_3_as_printed_is_right_where_clients_have_the_same_priors():
    same = Clients.of([[10, 90], [100, 900]])
    assert theory.aggregated_threshold(same, 0.2) == pytest.approx(theory.printed_threshold(same, 0.2))


def test_the_error_of_the_printed_formula_grows_with_heterogeneity():
    medians = []
    for alpha in (100, 1, 0.3, 0.1):
        clients = [theory.dirichlet_clients(20, alpha, minority=0.01, seed=seed) for seed in range(25)]
        medians.append(
            np.median([theory.aggregated_threshold(c, 0.3) / theory.printed_threshold(c, 0.3) for c in clients])
        )
    assert medians == sorted(medians)
    assert medians[0] == pytest.approx(1.0, abs=0.05)
    assert medians[-1] > 10


@pytest.mark.parametrize("seed", range(20))
def test_relabelling_lowers_the_aggregated_boundary_whatever_the_clients(seed):
    clients = theory.dirichlet_clients(8, 0.3, seed=seed)
    thresholds = [theory.aggregated_threshold(clients, rho) for rho in (0.0, 0.1, 0.2, 0.4)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[0] > thresholds[-1]


def test_rho_that_grows_with_the_posterior():
    """The re-allocator's rho is proportional to the posterior, so it depends on the sample."""
    clients = HETEROGENEOUS

    def rho(ratio):
        return 0.4 * theory.posterior(ratio, clients.minority, clients.majority)

    total = np.zeros_like(X)
    for k, weight in enumerate(clients.weights):
        eta = clients.minority[k] * P_J / (clients.minority[k] * P_J + clients.majority[k] * P_L)
        total += weight * theory.relabelled_posterior(eta, 0.4 * eta)
    assert GAUSSIANS.point(theory.aggregated_threshold(clients, rho)) == pytest.approx(crossing(total > 0.5), abs=1e-3)


def test_condition_1_as_printed_promises_more_than_it_keeps():
    clients, priors = HETEROGENEOUS, HETEROGENEOUS.aggregated
    assert theory.balance_condition(clients, *priors, rho=0.05) < 1
    assert not theory.is_balanced(clients, *priors, rho=0.05)
    assert theory.is_balanced(clients, *priors, rho=0.4)


def test_condition_1_with_weights_by_size_is_the_mean_share_that_stays():
    clients, priors = HETEROGENEOUS, HETEROGENEOUS.aggregated
    rho = np.array([0.1, 0.2, 0.3])
    mean = float(clients.weights @ (clients.majority * (1 - 2 * rho))) / priors[1]
    assert theory.balance_condition(clients, *priors, rho) == pytest.approx(mean)


def test_example_1_exchanges_the_two_priors():
    found = theory.example_1(10, 1000)
    assert found.local == pytest.approx((1 / 9, 999))
    assert found.printed == pytest.approx(1 / 100)
    assert found.corrected == pytest.approx(found.bayes) == pytest.approx(100)
    assert found.true == pytest.approx(979.22, abs=0.01)
    uniform = theory.example_1(10, 1000, by_size=False)
    assert uniform.corrected == pytest.approx((9 / 10 + 1 / 1000) ** -1 * (1 / 10 + 999 / 1000), rel=0.05)
    assert uniform.true > uniform.corrected


def test_the_direction_by_local_priors_with_the_indicator_at_rho():
    """The last remark multiplies whole terms by the indicator: its denominator is 0 where all clients agree."""
    clients = Clients.of([[5, 95], [10, 90], [30, 70]])
    agrees = clients.majority > clients.minority
    assert float((clients.weights * clients.minority * ~agrees).sum()) == 0.0
    corrected = theory.aggregated_threshold(clients, 0.3 * agrees, 0.3 * ~agrees)
    assert corrected == pytest.approx(theory.aggregated_threshold(clients, 0.3))


def test_the_direction_by_local_priors_where_clients_contradict():
    clients = HETEROGENEOUS
    forth, back = 0.3 * (clients.majority > clients.minority), 0.3 * (clients.majority < clients.minority)
    found = GAUSSIANS.point(theory.aggregated_threshold(clients, forth, back))
    assert found == pytest.approx(aggregated(clients, forth, back), abs=1e-3)
    assert theory.aggregated_threshold(clients, forth, back) < theory.aggregated_threshold(clients)


def test_both_aggregations_agree_to_first_order():
    theta, x, w = np.array([[1.0, 0.5], [2.0, -1.0], [0.5, 0.0]]), np.linspace(-5, 5, 201), np.array([0.5, 0.3, 0.2])
    centre = w @ theta
    gaps = [theory.aggregation_gap(centre + s * (theta - centre), w, x) for s in (1.0, 0.1, 0.01)]
    assert gaps[1] / gaps[2] == pytest.approx(100, rel=0.05)
    assert gaps[0] / gaps[1] == pytest.approx(100, rel=0.6)


@pytest.mark.parametrize(
    ("counts", "weights", "words"),
    [
        ([[1, 2, 3]], None, "counts: expected finite counts >= 0 of shape"),
        ([[1, -2]], None, "counts: expected finite counts"),
        ([[1, 2], [0, 0]], None, "counts: client 1 has no samples"),
        ([[1, 2]], [0.0], "weights: expected 1 numbers"),
    ],
)
def test_wrong_clients(counts, weights, words):
    with pytest.raises(ArgumentError, match=words):
        Clients.of(counts, weights)
