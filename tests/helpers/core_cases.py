"""Made clients for the batteries: any counts, absent and one-member classes, ties, any tau."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Case:
    """One client: posterior, labels, draws and a tau."""

    Q: np.ndarray
    y: np.ndarray
    U: np.ndarray
    tau: float

    @property
    def C(self) -> int:
        return self.Q.shape[1]

    @property
    def n(self) -> int:
        return self.y.size


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def make(n: int, C: int, tau: float, seed: int, *, skew: float, skill: float, digits: int | None) -> Case:
    """A client with `n` samples whose labels follow a tail of steepness `skew` and a model of some `skill`."""
    rng = np.random.default_rng(seed)
    weight = np.arange(1, C + 1) ** -skew
    y = rng.permutation(C)[rng.choice(C, n, p=weight / weight.sum())]
    logits = rng.normal(size=(n, C)) * rng.uniform(0.2, 3.0)
    logits[np.arange(n), y] += skill
    Q = softmax(logits)
    if digits is not None:  # rounding makes ties, and whole columns without spread
        Q = np.round(Q, digits)
        off = np.abs(Q.sum(axis=1) - 1) > 0.04
        Q[off] = np.eye(C)[y[off]]
    return Case(Q, y.astype(np.int64), rng.random((n, C)), tau)


TAUS = st.one_of(st.sampled_from([0.05, 0.1, 0.2, 0.5, 0.01, 1.0, 0.0]), st.floats(0.01, 1))
SHAPES = [
    {"skew": skew, "skill": skill, "digits": digits, "luck": luck}
    for skew, skill, digits, luck in product(
        [1.0, 0.5, 2.0, 0.0, 6.0], [-1.0, 0.0, 2.0, 6.0], [None, None, 1, 2, 3], [1.0, 0.3, 0.0]
    )
]


def clients(max_n: int = 400, max_C: int = 120, ties: bool = True) -> st.SearchStrategy[Case]:
    """Clients with any number of samples and classes; few choices for each, since every one costs Hypothesis time."""
    C = st.one_of(st.integers(2, 12), st.integers(2, max_C))
    n = st.one_of(st.integers(0, 30), st.integers(max_n // 4, max_n), st.integers(max_n // 2, max_n))
    shapes = [shape for shape in SHAPES if ties or shape["digits"] is None]
    return st.builds(shaped, n, C, TAUS, st.integers(0, 2**32 - 1), st.sampled_from(shapes))


def shaped(n: int, C: int, tau: float, seed: int, shape: dict) -> Case:
    """Make a client; with less `luck` draws are smaller and succeed more often, so that more cases move labels."""
    case = make(n, C, tau, seed, **{key: value for key, value in shape.items() if key != "luck"})
    return replace(case, U=case.U * shape["luck"])


def settled(rho: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Which samples' fate does not hang on a tie: no two positive rho level, and no draw level with its rho."""
    ranked = np.sort(rho, axis=1)
    level = (np.diff(ranked, axis=1) < 1e-9) & (ranked[:, 1:] > 0)
    return ~level.any(axis=1) & ~(np.abs(rho - U) < 1e-9).any(axis=1)


STYLES = [
    {"spread": spread, "threshold": threshold, "target": target, "normalize": normalize}
    for spread, threshold, target, normalize in product(
        ["sample", "population"], ["higher", "order"], ["argmax", "winner"], ["zscore", "zscore", "minmax", "none"]
    )
]


def styles() -> st.SearchStrategy[dict]:
    """Options that keep the promise of at most floor(tau * n) moves into a class."""
    return st.sampled_from(STYLES)
