"""Thresholds on the likelihood ratio: Lemmas 1 to 3, condition (1) and the remark on directions, printed and corrected.

The printed Lemma 3 and the set S^[w] before it replace sum_k w_k pi_j^(k) P_j / D_k by sum_k w_k pi_j^(k) P_j, which
drops each client's own denominator D_k(x) = pi_j^(k) P_j(x) + pi_l^(k) P_l(x). That is exact only where all clients
have the same priors. Names that start with `printed` are the printed formulas; the others are correct.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError

Floats = NDArray[np.float64]
Rho = float | Floats | Callable[[Floats], Floats]  # one for all clients, one per client, or a function of eta_j^(k)
GRID = 121


@dataclass(frozen=True, eq=False)
class Clients:
    """The two priors and the aggregation weight of every client.

    Attributes
    ----------
    minority, majority
        pi_j^(k) and pi_l^(k), (K,); they sum to 1 per client.
    weights
        w_k, (K,); they sum to 1.

    Examples
    --------
    >>> clients = Clients.of([[1, 3], [4, 4]])
    >>> clients.thresholds.tolist(), round(clients.contradicting, 2)
    ([3.0, 1.0], 0.67)
    """

    minority: Floats
    majority: Floats
    weights: Floats

    @classmethod
    def of(cls, counts: ArrayLike, weights: ArrayLike | None = None) -> Clients:
        """Return the clients of a count matrix.

        Parameters
        ----------
        counts : (K, 2)
            Samples of class j and of class l per client.
        weights : (K,), optional
            By default the sizes of the clients, as FedAvg weights them.

        Examples
        --------
        >>> clients = Clients.of([[1, 3], [4, 4]])
        >>> clients.minority.tolist(), clients.weights.round(2).tolist()
        ([0.25, 0.5], [0.33, 0.67])
        """
        n = np.asarray(counts, np.float64)
        if n.ndim != 2 or n.shape[1] != 2 or not len(n) or not np.isfinite(n).all() or (n < 0).any():
            raise ArgumentError(f"expected finite counts >= 0 of shape (K, 2), got shape {n.shape}", argument="counts")
        sizes = n.sum(axis=1)
        if not sizes.all():
            raise ArgumentError(f"client {int(np.argmin(sizes))} has no samples", argument="counts")
        w = sizes if weights is None else np.asarray(weights, np.float64)
        if w.shape != sizes.shape or not np.isfinite(w).all() or (w < 0).any() or not w.sum():
            raise ArgumentError(f"expected {len(n)} numbers >= 0 that are not all 0", argument="weights")
        return cls(n[:, 0] / sizes, n[:, 1] / sizes, w / w.sum())

    @property
    def aggregated(self) -> tuple[float, float]:
        """The aggregated priors pi_j^[w] and pi_l^[w]; with weights by size they are the global priors."""
        return float(self.weights @ self.minority), float(self.weights @ self.majority)

    @property
    def thresholds(self) -> Floats:
        """The boundary of every client, pi_l^(k) / pi_j^(k), (K,)."""
        with np.errstate(divide="ignore"):
            return self.majority / self.minority

    @property
    def contradicting(self) -> float:
        """The weight of the clients on which class j is not the rarer one; at most 2 pi_j by size."""
        return float(self.weights[self.minority >= self.majority].sum())


def bayes_threshold(minority: float, majority: float) -> float:
    """Return Lemma 1's boundary, pi_l / pi_j: infinite if class j has no sample.

    Parameters
    ----------
    minority, majority
        The priors pi_j and pi_l.

    Examples
    --------
    >>> bayes_threshold(0.01, 0.99)
    99.0
    """
    return majority / minority if minority > 0 else float("inf")


def local_threshold(minority: float, majority: float, rho: float = 0.0, back: float = 0.0) -> float:
    """Return Lemma 2's boundary of a client after re-labelling.

        P_j / P_l = (1 - 2 rho_{l -> j}) / (1 - 2 rho_{j -> l}) * pi_l^(k) / pi_j^(k)

    Parameters
    ----------
    minority, majority
        The client's priors of class j and class l.
    rho, back
        Probability of re-labelling l to j, and j to l, at the boundary; both at most 0.5.

    Examples
    --------
    >>> local_threshold(0.1, 0.9), round(local_threshold(0.1, 0.9, rho=0.3), 6)
    (9.0, 3.6)
    """
    for name, value in (("rho", rho), ("back", back)):
        if not 0 <= value <= 0.5:
            raise ArgumentError(f"expected a number from 0 to 0.5, as Lemma 2 assumes, got {value}", argument=name)
    if back == 0.5:
        return float("inf")
    return (1 - 2 * rho) / (1 - 2 * back) * bayes_threshold(minority, majority)


def posterior(ratio: ArrayLike, minority: ArrayLike, majority: ArrayLike) -> Floats:
    """Return eta_j = pi_j r / (pi_j r + pi_l) at the likelihood ratio r = P_j / P_l.

    Parameters
    ----------
    ratio
        One or more r.
    minority, majority
        The priors pi_j and pi_l.

    Examples
    --------
    >>> float(posterior(9.0, 0.1, 0.9))
    0.5
    """
    joint = np.asarray(minority) * np.asarray(ratio, np.float64)
    return np.asarray(joint / (joint + np.asarray(majority)))


def relabelled_posterior(eta: ArrayLike, rho: ArrayLike, back: ArrayLike = 0.0) -> Floats:
    """Return the posterior of class j after re-labelling, eta (1 - rho_{j -> l}) + (1 - eta) rho_{l -> j}.

    Parameters
    ----------
    eta
        The posterior of class j before.
    rho, back
        Probability of re-labelling l to j, and j to l.

    Examples
    --------
    >>> float(relabelled_posterior(0.25, 0.2))
    0.4
    """
    eta = np.asarray(eta, np.float64)
    return np.asarray(eta * (1 - np.asarray(back)) + (1 - eta) * np.asarray(rho))


def posterior_rho(eta: ArrayLike, factor: float) -> Floats:
    """Return the rho that divides every threshold by `factor`, at a client and after aggregation, exactly.

    It is eta (f - 1) / (1 + eta (f - 1)): about proportional to a small posterior, as Section 3.2 asks, and below 0.5
    on the boundary. It multiplies the odds of class j by f, so that a logistic model stays one.

    Parameters
    ----------
    eta
        The posterior of class j.
    factor
        f, at least 1.

    Examples
    --------
    >>> round(float(posterior_rho(0.2, 4.0)), 6), float(relabelled_posterior(0.2, posterior_rho(0.2, 4.0)))
    (0.375, 0.5)
    """
    odds = np.asarray(eta, np.float64) * (factor - 1)
    return np.asarray(odds / (1 + odds))


def printed_threshold(clients: Clients, rho: ArrayLike = 0.0) -> float:
    """Return the boundary as Lemma 3 prints it; without re-labelling it is S^[w], pi_l^[w] / pi_j^[w].

    Parameters
    ----------
    clients
        Priors and weights.
    rho
        Probability of re-labelling l to j: one number, or one per client.

    Examples
    --------
    >>> printed_threshold(Clients.of([[99, 1], [1, 9899]])), printed_threshold(Clients.of([[10, 90]]), 0.3)
    (99.0, 3.6)
    """
    stays = 1 - 2 * np.asarray(rho, np.float64)
    above = float(clients.weights @ (clients.majority * stays))
    below = float(clients.weights @ clients.minority)
    return round(above / below, 12) if below else float("inf")


def aggregated_threshold(clients: Clients, rho: Rho = 0.0, back: Rho = 0.0) -> float:
    """Return the boundary of the aggregated posterior itself, Lemma 3 with each client's denominator.

    It is the ratio r at which sum_k w_k eta~_j^(k) reaches 1/2, so, with D_k(r) = pi_j^(k) r + pi_l^(k)::

        r = [sum_k w_k pi_l^(k) (1 - 2 rho_{l -> j}^(k)) / D_k(r)]
            / [sum_k w_k pi_j^(k) (1 - 2 rho_{j -> l}^(k)) / D_k(r)]

    Parameters
    ----------
    clients
        Priors and weights.
    rho, back
        Probability of re-labelling l to j, and j to l: one number, one per client, or a function of eta_j^(k).

    Returns
    -------
    float
        The lowest such ratio; 0 if class j wins everywhere, infinite if it never does.

    Examples
    --------
    Where all clients have the same priors, the printed formula is right:

    >>> same = Clients.of([[10, 90], [20, 180]])
    >>> round(aggregated_threshold(same), 6), round(printed_threshold(same), 6)
    (9.0, 9.0)
    """
    low, high = -60.0, 60.0  # log ratios; beyond e^60 nothing is left of either class
    for _ in range(7):
        grid = np.linspace(low, high, GRID)
        above = np.flatnonzero(margin(np.exp(grid), clients, rho, back) > 0)
        if not above.size:
            return float("inf")
        if above[0] == 0:
            return 0.0
        low, high = float(grid[above[0] - 1]), float(grid[above[0]])
    return float(np.exp(high))


def margin(ratio: ArrayLike, clients: Clients, rho: Rho = 0.0, back: Rho = 0.0) -> Floats:
    """Return sum_k w_k (eta~_j^(k) - eta~_l^(k)) at likelihood ratios; positive where class j is predicted.

    Parameters
    ----------
    ratio
        One or more P_j / P_l.
    clients, rho, back
        As for `aggregated_threshold`.

    Examples
    --------
    >>> margin([1.0, 9.0, 81.0], Clients.of([[10, 90]])).round(6).tolist()
    [-0.8, 0.0, 0.8]
    """
    eta = posterior(np.asarray(ratio)[..., None], clients.minority, clients.majority)
    to_j, to_l = (each(eta) if callable(each) else np.asarray(each) for each in (rho, back))
    return np.asarray((eta * (1 - 2 * to_l) - (1 - eta) * (1 - 2 * to_j)) @ clients.weights)


def parameter_threshold(clients: Clients) -> float:
    """Return the boundary of averaged parameters of logistic regressions that fit their clients exactly.

    Their intercepts differ by the logarithms of the thresholds, so it is the weighted geometric mean of these.

    Parameters
    ----------
    clients
        Priors and weights.

    Examples
    --------
    >>> round(parameter_threshold(Clients.of([[1, 1], [1, 1]], [1, 3])), 6)
    1.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.exp(clients.weights @ np.log(clients.thresholds)))


def directed(clients: Clients, rho: float) -> tuple[Floats, Floats]:
    """Return rho_{l -> j}^(k) and rho_{j -> l}^(k) if local priors set the direction, as in the remark of Appendix A.

    For `aggregated_threshold`. With one rho for all, it lowers the threshold if and only if `clients.contradicting`
    is below 1/2 (clients with equal priors aside), which pi_j <= 1/4 guarantees under weights by size.

    Parameters
    ----------
    clients
        Priors and weights.
    rho
        Probability of re-labelling from a client's more frequent class to the other.

    Examples
    --------
    >>> [rho.tolist() for rho in directed(Clients.of([[1, 9], [9, 1]]), 0.3)]
    [[0.3, 0.0], [0.0, 0.3]]
    """
    minor, major = clients.minority, clients.majority
    return np.where(major > minor, rho, 0.0), np.where(major < minor, rho, 0.0)


def printed_directed_threshold(clients: Clients, rho: float) -> float:
    """Return the same boundary as printed: infinite if all clients agree with the global order.

    Parameters
    ----------
    clients, rho
        As for `directed`.

    Examples
    --------
    >>> printed_directed_threshold(Clients.of([[1, 9], [2, 8]]), 0.3)
    inf
    """
    agrees, contradicts = clients.majority > clients.minority, clients.majority < clients.minority
    above = float(clients.weights @ (clients.majority * (1 - 2 * rho) * agrees))
    below = float(clients.weights @ (clients.minority * (1 - 2 * rho) * contradicts))
    return above / below if below else float("inf")


def printed_condition(clients: Clients, minority: float, majority: float, rho: ArrayLike = 0.0) -> float:
    """Return the left side of condition (1) as printed; the paper says that a value below 1 balances.

        [sum_k w_k pi_l^(k) (1 - 2 rho^(k)) / pi_l] / [sum_k w_k pi_j^(k) / pi_j]

    Parameters
    ----------
    clients, rho
        As for `printed_threshold`.
    minority, majority
        The global priors.

    Examples
    --------
    >>> round(printed_condition(Clients.of([[10, 90]]), 0.1, 0.9, rho=0.3), 6)
    0.4
    """
    return printed_threshold(clients, rho) / bayes_threshold(minority, majority)


def balance_condition(clients: Clients, minority: float, majority: float, rho: Rho = 0.0) -> float:
    """Return condition (1) corrected: below 1 where the aggregated boundary lies below the global one, pi_l / pi_j.

        [sum_k w_k eta_l^(k) (1 - 2 rho^(k))] / [sum_k w_k eta_j^(k)]   where P_j / P_l = pi_l / pi_j

    Parameters
    ----------
    clients, rho
        As for `aggregated_threshold`.
    minority, majority
        The global priors.

    Examples
    --------
    >>> round(balance_condition(Clients.of([[10, 90]]), 0.1, 0.9, rho=0.3), 6)
    0.4
    """
    if not minority > 0:
        raise ArgumentError(f"expected a prior > 0, got {minority}", argument="minority")
    ratio = bayes_threshold(minority, majority)
    eta_j = float(clients.weights @ posterior(ratio, clients.minority, clients.majority))
    return 1 - float(margin(ratio, clients, rho)) / eta_j


def needed_rho(clients: Clients, minority: float, majority: float) -> float:
    """Return the rho, the same for all clients, that undoes what their heterogeneity adds to the threshold.

    Parameters
    ----------
    clients, minority, majority
        As for `balance_condition`.

    Examples
    --------
    >>> needed_rho(Clients.of([[10, 90]]), 0.1, 0.9)
    0.0
    """
    return max(0.0, (1 - 1 / balance_condition(clients, minority, majority)) / 2)
