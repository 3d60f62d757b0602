"""Thresholds on the likelihood ratio: Lemmas 1 to 3, condition (1) and both remarks, as printed and as they hold.

The printed Lemma 3 and the set S^[w] before it replace sum_k w_k pi_j^(k) P_j / D_k by sum_k w_k pi_j^(k) P_j, which
drops each client's own denominator D_k(x) = pi_j^(k) P_j(x) + pi_l^(k) P_l(x). That is exact only where all clients
have the same priors. `printed_threshold` is the formula in print, `aggregated_threshold` the boundary itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError

Floats = NDArray[np.float64]
Rho = float | Floats | Callable[[float], ArrayLike]  # one for all clients, one per client, or a function of the ratio


@dataclass(frozen=True, eq=False)
class Clients:
    """The two priors and the aggregation weight of every client.

    Attributes
    ----------
    minority, majority
        pi_j^(k) and pi_l^(k), (K,); they sum to 1 per client.
    weights
        w_k, (K,); they sum to 1.
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


def bayes_threshold(minority: float, majority: float) -> float:
    """Return Lemma 1's boundary, pi_l / pi_j: infinite where class j has no sample.

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

    >>> float(posterior(9.0, 0.1, 0.9))
    0.5
    """
    r = np.asarray(ratio, np.float64)
    joint = np.asarray(minority) * r
    return np.asarray(joint / (joint + np.asarray(majority)))


def relabelled_posterior(eta: ArrayLike, rho: ArrayLike, back: ArrayLike = 0.0) -> Floats:
    """Return the posterior of class j after re-labelling, eta (1 - rho_{j -> l}) + (1 - eta) rho_{l -> j}.

    >>> float(relabelled_posterior(0.25, 0.2))
    0.4
    """
    eta = np.asarray(eta, np.float64)
    return np.asarray(eta * (1 - np.asarray(back)) + (1 - eta) * np.asarray(rho))


def printed_threshold(clients: Clients, rho: ArrayLike = 0.0) -> float:
    """Return the boundary as Lemma 3 prints it; without re-labelling it is S^[w], pi_l^[w] / pi_j^[w].

    >>> printed_threshold(Clients.of([[99, 1], [1, 9899]])), printed_threshold(Clients.of([[10, 90]]), 0.3)
    (99.0, 3.6)
    """
    stays = 1 - 2 * np.asarray(rho, np.float64)
    above = float(clients.weights @ (clients.majority * stays))
    below = float(clients.weights @ clients.minority)
    return round(above / below, 12) if below else float("inf")


def aggregated_threshold(clients: Clients, rho: Rho = 0.0, back: Rho = 0.0) -> float:
    """Return the boundary of the aggregated posterior itself, Lemma 3 with each client's denominator.

    It is the ratio r at which sum_k w_k eta~_j^(k) reaches 1/2, so

        r = [sum_k w_k pi_l^(k) (1 - 2 rho_{l -> j}^(k)) / D_k(r)]
            / [sum_k w_k pi_j^(k) (1 - 2 rho_{j -> l}^(k)) / D_k(r)]
        D_k(r) = pi_j^(k) r + pi_l^(k)

    The left side of ``margin(r) = 0`` rises in r for constant rho, and in rho for every r: whatever the weights and
    priors, re-labelling l to j lowers the threshold. This is what survives of the lemma.

    Parameters
    ----------
    clients
        Priors and weights.
    rho, back
        Probability of re-labelling l to j, and j to l: one number, one per client, or a function of the ratio.

    Returns
    -------
    float
        The lowest such ratio; 0 where class j wins everywhere, infinite where it never does.

    Examples
    --------
    Where all clients have the same priors, the printed formula is right:

    >>> same = Clients.of([[10, 90], [20, 180]])
    >>> round(aggregated_threshold(same), 6), round(printed_threshold(same), 6)
    (9.0, 9.0)
    """
    grid = np.linspace(-60.0, 60.0, 2401)  # log ratios; beyond e^60 nothing is left of either class
    margins = np.array([margin(float(np.exp(at)), clients, rho, back) for at in grid])
    above = np.flatnonzero(margins > 0)
    if not above.size:
        return float("inf")
    if above[0] == 0:
        return 0.0
    low, high = float(grid[above[0] - 1]), float(grid[above[0]])
    for _ in range(60):
        middle = (low + high) / 2
        if margin(float(np.exp(middle)), clients, rho, back) > 0:
            high = middle
        else:
            low = middle
    return float(np.exp((low + high) / 2))


def margin(ratio: float, clients: Clients, rho: Rho = 0.0, back: Rho = 0.0) -> float:
    """Return sum_k w_k (eta~_j^(k) - eta~_l^(k)) at a likelihood ratio; positive where class j is predicted."""
    eta = posterior(ratio, clients.minority, clients.majority)
    moved = relabelled_posterior(eta, _at(rho, ratio), _at(back, ratio))
    return float(clients.weights @ (2 * moved - 1))


def balance_condition(clients: Clients, minority: float, majority: float, rho: ArrayLike = 0.0) -> float:
    """Return the left side of condition (1) as printed; the paper says that a value below 1 balances.

        [sum_k w_k pi_l^(k) (1 - 2 rho^(k)) / pi_l] / [sum_k w_k pi_j^(k) / pi_j]

    >>> round(balance_condition(Clients.of([[10, 90]]), 0.1, 0.9, rho=0.3), 6)
    0.4
    """
    return printed_threshold(clients, rho) / bayes_threshold(minority, majority)


def is_balanced(clients: Clients, minority: float, majority: float, rho: Rho = 0.0) -> bool:
    """Whether the aggregated boundary lies below the global one, pi_l / pi_j, which condition (1) is meant to tell."""
    return margin(bayes_threshold(minority, majority), clients, rho) > 0


def _at(rho: Rho, ratio: float) -> Floats:
    return np.asarray(rho(ratio) if callable(rho) else rho, np.float64)
