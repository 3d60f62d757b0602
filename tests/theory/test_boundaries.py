"""Every statement of the paper's Section 3 and Appendix A against direct numerical integration on two Gaussians."""

from __future__ import annotations

import numpy as np
import pytest

from fedrela import theory
from fedrela.errors import ArgumentError
from fedrela.theory import Clients, TwoGaussians

GAUSSIANS = TwoGaussians(2.0)
X = np.linspace(-9.0, 11.0, 400_001)
P_L = np.exp(-((X + 1) ** 2) / 2) / np.sqrt(2 * np.pi)
P_J = np.exp(-((X - 1) ** 2) / 2) / np.sqrt(2 * np.pi)
HETEROGENEOUS = Clients.of([[40, 10], [5, 400], [30, 900]])
AGREEING = Clients.of([[5, 95], [10, 90], [30, 70]])


def crossing(above: np.ndarray) -> float:
    """Return the first point of the grid from which a condition holds."""
    return float(X[int(np.argmax(above))])


def local_densities(clients: Clients, k: int) -> tuple[np.ndarray, np.ndarray]:
    return clients.minority[k] * P_J, clients.majority[k] * P_L


def aggregated(clients: Clients, rho=0.0, back=0.0) -> float:
    """Return the boundary of the aggregated posterior from the densities themselves; rho may be a function of eta."""
    total = np.zeros_like(X)
    for k, weight in enumerate(clients.weights):
        minor, major = local_densities(clients, k)
        forth, again = (
            each(minor / (minor + major)) if callable(each) else np.broadcast_to(each, clients.weights.shape)[k]
            for each in (rho, back)
        )
        total += weight * (minor * (1 - again) + major * forth) / (minor + major)
    return crossing(total > 0.5)


def test_densities_and_recalls_are_those_of_the_grid():
    np.testing.assert_allclose(GAUSSIANS.densities(X), (P_J, P_L), rtol=1e-12)
    np.testing.assert_allclose(GAUSSIANS.ratio(X), P_J / P_L, rtol=1e-9)
    at = GAUSSIANS.point(5.0)
    found = [float(np.trapezoid(P_J[at <= X], X[at <= X])), float(np.trapezoid(P_L[at > X], X[at > X]))]
    np.testing.assert_allclose(GAUSSIANS.recalls(5.0), found, atol=1e-4)
    assert GAUSSIANS.recalls(0.0) == (1.0, 0.0)
    assert GAUSSIANS.recalls(float("inf")) == (0.0, 1.0)


@pytest.mark.parametrize("minority", [0.5, 0.1, 0.01])
def test_lemma_1_the_bayes_boundary_makes_the_fewest_errors(minority):
    gained = np.cumsum(minority * P_J - (1 - minority) * P_L)  # errors of a boundary further to the right
    fewest = float(X[int(np.argmin(gained))])
    assert GAUSSIANS.point(theory.bayes_threshold(minority, 1 - minority)) == pytest.approx(fewest, abs=1e-3)


def test_a_class_without_a_sample_has_no_boundary():
    assert theory.bayes_threshold(0.0, 1.0) == float("inf")
    assert Clients.of([[0, 5], [1, 1]]).thresholds.tolist() == [float("inf"), 1.0]
    assert theory.aggregated_threshold(Clients.of([[0, 9], [1, 1]])) == float("inf")  # absent where most samples are
    assert theory.aggregated_threshold(Clients.of([[9, 0], [1, 1]])) == 0.0


@pytest.mark.parametrize(("rho", "back"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2), (0.4, 0.1)])
def test_lemma_2_the_boundary_of_a_client_after_relabelling(rho, back):
    minor, major = 0.1 * P_J, 0.9 * P_L
    relabelled = minor * (1 - back) + major * rho > major * (1 - rho) + minor * back
    threshold = theory.local_threshold(0.1, 0.9, rho, back)
    assert GAUSSIANS.point(threshold) == pytest.approx(crossing(relabelled), abs=1e-3)


@pytest.mark.parametrize(("rho", "back"), [(0.3, 0.0), (0.4, 0.1)])
def test_lemma_2_is_the_boundary_with_the_fewest_errors_on_relabelled_data(rho, back):
    """Errors are integrals of the joint density of feature and new label."""
    minor, major = 0.1 * P_J, 0.9 * P_L
    of_j, of_l = minor * (1 - back) + major * rho, major * (1 - rho) + minor * back
    fewest = float(X[int(np.argmin(np.cumsum(of_j - of_l)))])  # errors of a boundary further to the right
    assert GAUSSIANS.point(theory.local_threshold(0.1, 0.9, rho, back)) == pytest.approx(fewest, abs=1e-3)


def test_the_posterior_after_relabelling_gives_the_share_of_new_labels():
    """Its integral over all features is the share of class j after re-labelling, counted class by class."""
    eta = theory.posterior(GAUSSIANS.ratio(X), 0.1, 0.9)
    rho = theory.posterior_rho(eta, 3.0)
    share = np.trapezoid(theory.relabelled_posterior(eta, rho, 0.2) * (0.1 * P_J + 0.9 * P_L), X)
    kept, gained = 0.1 * (1 - 0.2), 0.9 * np.trapezoid(rho * P_L, X)
    assert share == pytest.approx(kept + gained)


def test_lemma_2_holds_up_to_one_half_only():
    with pytest.raises(ArgumentError, match="rho: expected a number from 0 to"):
        theory.local_threshold(0.1, 0.9, rho=0.6)
    assert theory.local_threshold(0.1, 0.9, back=0.5) == float("inf")


@pytest.mark.parametrize("strength", [0.2, 0.5, 1.0])
def test_lemma_2_with_rho_in_proportion_to_the_posterior(strength):
    """eta + (1 - eta) c eta = 1/2 has the solution eta = (1 + c - sqrt(1 + c^2)) / 2c."""
    one = Clients.of([[10, 90]])
    threshold = theory.aggregated_threshold(one, lambda eta: strength * eta)
    assert GAUSSIANS.point(threshold) == pytest.approx(aggregated(one, lambda eta: strength * eta), abs=1e-3)
    eta = (1 + strength - np.sqrt(1 + strength**2)) / (2 * strength)
    assert float(theory.posterior(threshold, 0.1, 0.9)) == pytest.approx(eta)
    assert threshold == pytest.approx(theory.local_threshold(0.1, 0.9, strength * eta))  # rho at the boundary


def test_rho_that_divides_every_threshold():
    def rho(eta):
        return theory.posterior_rho(eta, 3.0)

    for clients in (HETEROGENEOUS, AGREEING, Clients.of([[10, 90]])):
        before, after = theory.aggregated_threshold(clients), theory.aggregated_threshold(clients, rho)
        assert after == pytest.approx(before / 3)
        assert GAUSSIANS.point(after) == pytest.approx(aggregated(clients, rho), abs=1e-3)
    small = np.array([1e-5, 1e-4])
    np.testing.assert_allclose(rho(small), 2 * small, rtol=1e-3)  # in proportion to a small posterior


@pytest.mark.parametrize("rho", [0.0, 0.2, np.array([0.0, 0.3, 0.1])])
def test_lemma_3_corrected_is_the_boundary_of_the_aggregated_posterior(rho):
    found = GAUSSIANS.point(theory.aggregated_threshold(HETEROGENEOUS, rho))
    assert found == pytest.approx(aggregated(HETEROGENEOUS, rho), abs=1e-3)


def test_lemma_3_corrected_is_its_own_formula():
    rho, clients = np.array([0.1, 0.3, 0.2]), HETEROGENEOUS
    r = theory.aggregated_threshold(clients, rho)
    weights = clients.weights / (clients.minority * r + clients.majority)  # w_k / D_k
    assert r == pytest.approx((weights @ (clients.majority * (1 - 2 * rho))) / (weights @ clients.minority))


def test_s_w_as_printed_drops_denominators():
    """Weights by size: the printed S^[w] is the Bayes boundary, and the aggregated posterior has another."""
    assert theory.printed_threshold(HETEROGENEOUS) == pytest.approx(1310 / 75)
    assert aggregated(HETEROGENEOUS) - GAUSSIANS.point(1310 / 75) > 0.2


def test_lemma_3_as_printed_drops_denominators():
    printed = GAUSSIANS.point(theory.printed_threshold(HETEROGENEOUS, 0.2))
    assert aggregated(HETEROGENEOUS, 0.2) - printed > 0.2


def test_lemma_3_as_printed_is_right_where_clients_have_the_same_priors():
    same = Clients.of([[10, 90], [100, 900]])
    assert theory.aggregated_threshold(same, 0.2) == pytest.approx(theory.printed_threshold(same, 0.2))


def test_posteriors_weighted_by_density_too_give_the_bayes_boundary():
    """What weights by size alone do not: w_k D_k(x) in place of w_k gives the posterior of all data."""
    clients, total = HETEROGENEOUS, np.zeros((2, *X.shape))
    for k, weight in enumerate(clients.weights):
        minor, major = local_densities(clients, k)
        total += weight * (minor + major) * np.stack([minor, major]) / (minor + major)
    bayes = theory.bayes_threshold(*clients.aggregated)
    assert crossing(total[0] > total[1]) == pytest.approx(GAUSSIANS.point(bayes), abs=1e-3)


@pytest.mark.parametrize("rho", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(10))
def test_heterogeneity_raises_the_threshold_wherever_the_printed_one_is_above_1(rho, seed):
    """By Jensen's inequality: at a ratio above 1 the posterior is concave in the prior, below 1 it is convex."""
    for minority in (0.05, 0.2, 0.4, 0.45, 0.6):
        clients = theory.dirichlet_clients(8, 0.5, minority=minority, samples=2_000, seed=seed)
        printed, true = theory.printed_threshold(clients, rho), theory.aggregated_threshold(clients, rho)
        assert (true > printed) == (printed > 1)


def test_the_error_of_the_printed_formula_grows_with_heterogeneity():
    errors = [
        theory.printed_error(20, a, minority=1 / 16, samples=3_200, rho=0.3, draws=100) for a in (100, 1, 0.3, 0.1)
    ]
    assert errors == sorted(errors)
    assert errors[0] == pytest.approx(1.03, abs=0.02)
    assert errors[-1] > 20


@pytest.mark.parametrize("seed", range(20))
def test_relabelling_lowers_the_aggregated_boundary_whatever_the_clients(seed):
    clients = theory.dirichlet_clients(8, 0.3, seed=seed)
    thresholds = [theory.aggregated_threshold(clients, rho) for rho in (0.0, 0.1, 0.2, 0.4)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[0] > thresholds[-1]


def test_condition_1_as_printed_promises_more_than_it_keeps():
    clients, priors = HETEROGENEOUS, HETEROGENEOUS.aggregated
    bayes = GAUSSIANS.point(theory.bayes_threshold(*priors))
    assert theory.printed_condition(clients, *priors, rho=0.05) < 1
    assert theory.balance_condition(clients, *priors, rho=0.05) > 1
    assert aggregated(clients, 0.05) > bayes
    assert theory.balance_condition(clients, *priors, rho=0.4) < 1
    assert aggregated(clients, 0.4) < bayes


def test_the_rho_that_condition_1_needs():
    clients, priors = HETEROGENEOUS, HETEROGENEOUS.aggregated
    rho = theory.needed_rho(clients, *priors)
    assert 0 < rho < 0.5
    assert theory.balance_condition(clients, *priors, rho) == pytest.approx(1)
    assert aggregated(clients, rho) == pytest.approx(GAUSSIANS.point(theory.bayes_threshold(*priors)), abs=1e-3)


def test_edges_of_the_domain_are_named():
    with pytest.raises(ArgumentError, match="minority: expected a prior > 0, got 0"):
        theory.needed_rho(theory.Clients.of([[0, 5], [0, 4]]), 0.0, 1.0)
    with pytest.raises(ArgumentError, match=r"rho: expected a number >= 0 and < 0\.5, got 0\.5"):
        theory.printed_error(5, 1.0, minority=0.1, samples=100, rho=0.5, draws=2)


def test_condition_1_with_weights_by_size_is_the_mean_share_that_stays():
    clients, priors = HETEROGENEOUS, HETEROGENEOUS.aggregated
    rho = np.array([0.1, 0.2, 0.3])
    mean = float(clients.weights @ (clients.majority * (1 - 2 * rho))) / priors[1]
    assert theory.printed_condition(clients, *priors, rho) == pytest.approx(mean)


def test_example_1_exchanges_the_two_priors():
    found = theory.example_1(10, 1000)
    assert found.local == pytest.approx((1 / 9, 999))
    assert found.printed == pytest.approx(1 / 100)
    assert found.corrected == pytest.approx(found.bayes) == pytest.approx(100)
    assert found.true == pytest.approx(979.22, abs=0.01)
    assert GAUSSIANS.point(found.true) == pytest.approx(aggregated(Clients.of([[9, 1], [1, 999]])), abs=1e-3)


def test_example_1_with_uniform_weights():
    """Two clients of the same weight meet at the geometric mean of their thresholds."""
    found = theory.example_1(10, 1000, by_size=False)
    assert found.printed == pytest.approx((9 / 20 + 1 / 2000) / (1 / 20 + 999 / 2000))
    assert found.corrected == pytest.approx(1 / found.printed)
    assert found.true == pytest.approx(np.sqrt(999 / 9)) == pytest.approx(found.parameters)


def test_example_1_needs_two_samples_per_class():
    with pytest.raises(ArgumentError, match="two or more samples per class"):
        theory.example_1(1, 1000)


def test_the_direction_by_local_priors_where_all_clients_agree():
    """The last remark multiplies whole terms by the indicator: its denominator is 0 where all clients agree."""
    assert theory.printed_directed_threshold(AGREEING, 0.3) == float("inf")
    corrected = theory.aggregated_threshold(AGREEING, *theory.directed(AGREEING, 0.3))
    assert corrected == pytest.approx(theory.aggregated_threshold(AGREEING, 0.3))
    assert GAUSSIANS.point(corrected) == pytest.approx(aggregated(AGREEING, 0.3), abs=1e-3)


def test_the_direction_by_local_priors_where_clients_contradict():
    clients = HETEROGENEOUS
    forth, back = theory.directed(clients, 0.3)
    assert (forth.tolist(), back.tolist()) == ([0.0, 0.3, 0.3], [0.3, 0.0, 0.0])
    found = GAUSSIANS.point(theory.aggregated_threshold(clients, forth, back))
    assert found == pytest.approx(aggregated(clients, forth, back), abs=1e-3)
    assert found < GAUSSIANS.point(theory.aggregated_threshold(clients))
    printed = theory.printed_directed_threshold(clients, 0.3)
    assert printed == pytest.approx((400 + 900) / 40)
    assert GAUSSIANS.point(printed) > found


def test_the_direction_by_local_priors_corrects_where_contradicting_clients_have_less_than_half_the_weight():
    seen = set()
    for seed in range(200):
        minority = (0.1, 0.3, 0.5)[seed % 3]
        clients = theory.dirichlet_clients(6, 0.3, minority=minority, seed=seed)
        before, after = (theory.aggregated_threshold(clients, *theory.directed(clients, rho)) for rho in (0.0, 0.1))
        if 0 < before < float("inf"):
            seen.add(after < before)
            assert (after < before) == (clients.contradicting < 0.5)
        assert clients.contradicting < 2 * clients.aggregated[0]
    assert seen == {True, False}


def test_both_aggregations_agree_to_first_order():
    theta, x, w = np.array([[1.0, 0.5], [2.0, -1.0], [0.5, 0.0]]), np.linspace(-5, 5, 201), np.array([0.5, 0.3, 0.2])
    centre = w @ theta
    gaps = [theory.aggregation_gap(centre + s * (theta - centre), w, x) for s in (1.0, 0.1, 0.01)]
    assert gaps[1] / gaps[2] == pytest.approx(100, rel=0.05)
    assert gaps[0] / gaps[1] == pytest.approx(100, rel=0.6)


def test_averaged_parameters_of_exact_models_have_the_geometric_mean_as_boundary():
    clients = HETEROGENEOUS
    intercepts = -np.log(clients.thresholds)
    averaged = GAUSSIANS.distance * X + clients.weights @ intercepts
    assert GAUSSIANS.point(theory.parameter_threshold(clients)) == pytest.approx(crossing(averaged > 0), abs=1e-3)


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
