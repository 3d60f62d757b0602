"""Example 1, two Gaussians, heterogeneous clients, and how far posterior and parameter aggregation differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError
from fedrela.streams import stream
from fedrela.theory.boundaries import (
    Clients,
    Floats,
    aggregated_threshold,
    bayes_threshold,
    parameter_threshold,
    printed_threshold,
)


@dataclass(frozen=True)
class Example1:
    """Example 1 of the paper in numbers, all thresholds on P_j / P_l.

    Attributes
    ----------
    local
        Of the two clients: 1 / (m_j - 1) and m_l - 1.
    bayes
        Of all data together, m_l / m_j.
    printed
        pi_j^[w] / pi_l^[w], the inverted ratio that the paper prints.
    corrected
        pi_l^[w] / pi_j^[w].
    true
        Of the aggregated posterior itself.
    parameters
        Of averaged parameters, if each client fits its own data exactly.

    Examples
    --------
    >>> found = example_1(10, 1000)
    >>> round(found.local[1]), round(found.true)
    (999, 979)
    """

    local: tuple[float, float]
    bayes: float
    printed: float
    corrected: float
    true: float
    parameters: float


def example_1(minority: int, majority: int, *, by_size: bool = True) -> Example1:
    """Return Example 1: client 1 has m_j - 1 of class j and one of class l, client 2 the rest.

    Parameters
    ----------
    minority, majority
        m_j and m_l.
    by_size
        Weights by size, or uniform.

    Examples
    --------
    Weights by size give exactly the global ratio in the corrected formula. The boundary itself is far worse: the
    exacerbation that the example is about is real, and the formula does not show it.

    >>> found = example_1(10, 1000)
    >>> round(found.corrected, 6), round(found.bayes, 6), round(found.true)
    (100.0, 100.0, 979)
    """
    if minority < 2 or majority < 2:
        raise ArgumentError(f"expected two or more samples per class, got {minority} and {majority}")
    clients = Clients.of([[minority - 1, 1], [1, majority - 1]], None if by_size else [1, 1])
    first, second = clients.thresholds.tolist()
    return Example1(
        local=(first, second),
        bayes=bayes_threshold(minority, majority),
        printed=1 / printed_threshold(clients),
        corrected=printed_threshold(clients),
        true=aggregated_threshold(clients),
        parameters=parameter_threshold(clients),
    )


@dataclass(frozen=True)
class TwoGaussians:
    """Two classes on a line with unit variance, as the source `gaussians`: l around -d / 2, and j around d / 2.

    Parameters
    ----------
    distance
        d.

    Examples
    --------
    >>> TwoGaussians(2.0).point(1.0)
    0.0
    """

    distance: float = 2.0

    def densities(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """Return P_j(x) and P_l(x)."""
        at, half = np.asarray(x, np.float64), self.distance / 2
        return _density(at - half), _density(at + half)

    def ratio(self, x: ArrayLike) -> Floats:
        """Return P_j(x) / P_l(x)."""
        return np.exp(self.distance * np.asarray(x, np.float64))

    def point(self, threshold: float) -> float:
        """Return where the likelihood ratio reaches a threshold."""
        return math.log(threshold) / self.distance if threshold > 0 else -math.inf

    def recalls(self, threshold: float) -> tuple[float, float]:
        """Return the recall of class j and of class l under a threshold.

        >>> [round(recall, 3) for recall in TwoGaussians(2.0).recalls(1.0)]
        [0.841, 0.841]
        """
        x, half = self.point(threshold), self.distance / 2
        return _normal(half - x), _normal(half + x)


def dirichlet_clients(
    clients: int, alpha: float, *, minority: float = 0.1, samples: int = 10_000, seed: int = 0
) -> Clients:
    """Return clients that get the samples of each class by Dirichlet proportions, as in the paper.

    Clients without samples are left out.

    Parameters
    ----------
    clients, alpha
        K, and the concentration: small values give each client few classes.
    minority
        The global prior of class j.
    samples
        Number of all samples.
    seed
        Seed of the draw.

    Examples
    --------
    >>> found = dirichlet_clients(5, 100.0, minority=0.25)
    >>> found.weights.size, round(found.aggregated[0], 6)
    (5, 0.25)
    """
    rng, rare = stream(seed, "theory clients"), round(minority * samples)
    shares = rng.dirichlet(np.full(clients, alpha), 2)
    counts = np.stack([rng.multinomial(n, share) for n, share in zip((rare, samples - rare), shares, strict=True)], 1)
    return Clients.of(counts[counts.sum(axis=1) > 0])


def printed_error(
    clients: int, alpha: float, *, minority: float, samples: int, rho: float = 0.0, draws: int = 200
) -> float:
    """Return the median of true over printed threshold, over the clients of seeds 0, 1, 2, ...

    Parameters
    ----------
    clients, alpha, minority, samples
        As for `dirichlet_clients`.
    rho
        Probability of re-labelling l to j.
    draws
        Number of seeds.

    Examples
    --------
    >>> round(printed_error(20, 100, minority=0.1, samples=100_000, rho=0.3, draws=20), 2)
    1.0
    """
    if not 0 <= rho < 0.5:
        raise ArgumentError(f"expected a number >= 0 and < 0.5, got {rho}", argument="rho")
    drawn = [dirichlet_clients(clients, alpha, minority=minority, samples=samples, seed=seed) for seed in range(draws)]
    return float(np.median([aggregated_threshold(each, rho) / printed_threshold(each, rho) for each in drawn]))


def aggregation_gap(parameters: ArrayLike, weights: ArrayLike, x: ArrayLike) -> float:
    """Return the largest difference between aggregated posteriors and the posterior of aggregated parameters.

    For logistic regressions sigmoid(a x + b). The paper calls both first-order equivalent: shrinking the parameters
    towards a common point by a factor s shrinks the gap by about s squared.

    Parameters
    ----------
    parameters : (K, 2)
        Slope and intercept per client.
    weights : (K,)
        Aggregation weights, which sum to 1.
    x : (n,)
        Where both are compared.

    Examples
    --------
    >>> theta = np.array([[1.0, 0.0], [1.4, -0.8]])
    >>> near = theta.mean(axis=0) + (theta - theta.mean(axis=0)) / 10
    >>> x, w = np.linspace(-4, 4, 81), [0.5, 0.5]
    >>> 80 < aggregation_gap(theta, w, x) / aggregation_gap(near, w, x) < 120
    True
    """
    theta, w, at = (np.asarray(each, np.float64) for each in (parameters, weights, x))
    posteriors = _sigmoid(theta[:, :1] * at + theta[:, 1:])
    a, b = w @ theta
    return float(np.abs(w @ posteriors - _sigmoid(a * at + b)).max())


def _sigmoid(values: NDArray[np.float64]) -> Floats:
    return np.asarray(1 / (1 + np.exp(-values)))


def _density(x: Floats) -> Floats:
    return np.asarray(np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi))


def _normal(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2
