"""The contract of a re-allocator: posterior, labels and options in, proposed moves with scores out.

The package does the rest for every re-allocator: argument checks, the budget, the owner's limits, the draws, the
ledger, and the schedule.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrela.core.candidates import Candidates, no_candidates
from fedrela.core.equations import class_weights
from fedrela.core.relabel_options import RelabelOptions
from fedrela.errors import ArgumentError
from fedrela.options import Options


class Reallocator:
    """Proposes moves. Derive from it, implement `propose`, and test it with `fedrela.testing.check_reallocator`.

    Parameters
    ----------
    params
        Values of the options that `Params` declares.

    Examples
    --------
    >>> import fedrela
    >>> class FirstChoice(Reallocator):
    ...     "Every sample to the model's first choice."
    ...     def propose(self, posterior, labels, options, rng):
    ...         sample = np.flatnonzero(posterior.argmax(axis=1) != labels)
    ...         target, score = posterior[sample].argmax(axis=1), posterior[sample].max(axis=1)
    ...         return Candidates(sample, target, score, rho=np.ones(sample.size))
    >>> fedrela.relabel([[0.2, 0.8], [0.9, 0.1]], [0, 0], tau=0.5, method=FirstChoice).labels.tolist()
    [1, 0]
    """

    label: ClassVar[str] = ""  #: in tables and pages; by default the name of the class
    description: ClassVar[str] = ""  #: what it does, in one line; by default the first line of the class docstring
    unused: ClassVar[tuple[str, ...]] = ()  #: options of `fedrela.relabel` that it ignores
    Params: ClassVar[type[Options]] = Options  #: its own parameters, each with a default; an instance of it is `params`
    own_budget: ClassVar[bool] = False  #: whether its own threshold limits the proposals, so that they are not cut

    def __init_subclass__(cls) -> None:
        cls.label = cls.__dict__.get("label") or cls.__name__
        cls.description = cls.__dict__.get("description") or (cls.__doc__ or "").partition("\n")[0]

    def __init__(self, **params: Any) -> None:
        self.params: Any = self.Params(**params)

    def propose(
        self, posterior: NDArray[Any], labels: NDArray[Any], options: RelabelOptions, rng: np.random.Generator
    ) -> Candidates:
        """Return the moves that may happen, each with a score and the probability rho of its draw.

        The posterior is ``(n, C)`` with n >= 1, checked and read-only, as are the labels ``(n,)``. All randomness comes
        from `rng`. The package keeps the proposals that the owner allows; of these, for each class, the floor(tau * n)
        with the largest rho, ties by score. It then draws for each, picks one target per sample and applies
        `max_fraction`.
        """
        raise ArgumentError(f"{self.label}: does not implement propose", argument="method")


def proposal(
    method: Reallocator, Q: NDArray[Any], y: NDArray[Any], C: int, options: RelabelOptions, rng: np.random.Generator
) -> Candidates:
    """Return the proposals of a re-allocator, checked and sorted by class; none if there are no samples."""
    if not y.size:
        return no_candidates(C)
    posterior, labels = Q.view(), y.view()
    posterior.flags.writeable = labels.flags.writeable = False
    proposed = method.propose(posterior, labels, options, rng)
    if wrong := _fault(proposed, y, C):
        raise ArgumentError(f"{method.label}: propose: {wrong}", argument="method")
    if np.any(np.diff(proposed.target) < 0):
        proposed = proposed.take(np.argsort(proposed.target, kind="stable"))
    if proposed.threshold.size == C and proposed.varpi.size == C:
        return proposed
    threshold = proposed.threshold if proposed.threshold.size == C else np.full(C, np.inf)
    return replace(proposed, threshold=threshold, varpi=class_weights(np.bincount(y, minlength=C)))


def _fault(proposed: Any, y: NDArray[Any], C: int) -> str:
    """Return what is wrong with a proposal, or an empty string."""
    if not isinstance(proposed, Candidates):
        return f"expected fedrela.core.Candidates, got {type(proposed).__name__}"
    columns = {name: getattr(proposed, name) for name in ("sample", "target", "score", "rho")}
    for name, values in columns.items():
        if not isinstance(values, np.ndarray) or values.shape != (np.size(proposed.rho),):
            return f"{name}: expected a NumPy array with one number per move"
        if values.dtype.kind not in ("iu" if name in ("sample", "target") else "f"):
            return f"{name}: unexpected dtype {values.dtype}"
    if not len(proposed.rho):
        return ""
    for name, limit in (("sample", y.size), ("target", C)):
        if columns[name].min() < 0 or columns[name].max() >= limit:
            return f"{name}: expected numbers from 0 to {limit - 1}"
    if not np.isfinite(proposed.score).all():
        return "score: expected finite numbers"
    if not (proposed.rho.min() >= 0 and proposed.rho.max() <= 1):  # false for NaN too
        return "rho: expected probabilities from 0 to 1"
    return "target: a sample has that label already" if np.any(y[proposed.sample] == proposed.target) else ""
