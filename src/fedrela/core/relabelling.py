"""FedReLa in one call: a posterior and labels in, new labels and a ledger out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.core.budget import cap
from fedrela.core.candidates import Candidates, no_candidates
from fedrela.core.checks import Refusal, check_array, check_seed
from fedrela.core.draw import choose_targets, draw_hits
from fedrela.core.ledger import Ledger
from fedrela.core.options import PreviewKeywords, RelabelKeywords, RelabelOptions, keyword_parameters, show_keywords
from fedrela.core.reallocator import Floats, Ints
from fedrela.core.request import Request, check_request
from fedrela.core.views import moves_frame, moves_html


@dataclass(frozen=True, eq=False)
class Relabelling:
    """The result of `relabel`.

    Attributes
    ----------
    labels
        The new labels, a new array of the dtype given.
    moved
        Indices of the samples whose label changed, ascending.
    threshold
        Equation (7), ``(C,)``; infinite where nothing was computed.
    weights
        Equation (6), varpi, ``(C,)``.
    refusal
        None, or why nothing was re-labelled, with the first offending row.
    refused_at
        That row as a number, where there is one.
    ledger
        Every move with its reasons; `fedrela.undo` takes it back.
    """

    labels: NDArray[Any]
    moved: Ints
    threshold: Floats
    weights: Floats
    refusal: str | None
    refused_at: int | None
    ledger: Ledger
    candidates: Candidates = field(repr=False)

    @property
    def rho(self) -> Floats:
        """Equation (8), the re-labelling probabilities ``(n, C)``; built anew at every access."""
        return self.candidates.dense_rho(self.labels.size)

    @property
    def share(self) -> float:
        """The share of samples whose label changed."""
        return self.moved.size / max(self.labels.size, 1)

    def to_pandas(self, class_names: Sequence[str] | None = None) -> Any:
        """Return a `pandas.DataFrame` with a row for each moved sample.

        Columns: ``index``, ``old`` and ``new`` class, and ``posterior``, ``z`` and ``rho`` of the new class. Classes
        are `class_names`, or numbers where nobody told their names.
        """
        return moves_frame(self.ledger, class_names)

    def _repr_html_(self) -> str:
        return moves_html(self.ledger)


@show_keywords(keyword_parameters("tau", *PreviewKeywords.__annotations__))
def relabel(
    posterior: ArrayLike,
    labels: ArrayLike,
    *,
    num_classes: int | None = None,
    allowed: ArrayLike | None = None,
    eligible: ArrayLike | None = None,
    seed: Any = 0,
    uniforms: ArrayLike | None = None,
    **options: Unpack[RelabelKeywords],
) -> Relabelling:
    """Re-label the majority-class samples that look most like a rarer class (the paper's Algorithm 1).

    Parameters
    ----------
    posterior : (n, C) floats
        One row a sample: the model's probability of every class, all C of them, in class order.
    labels : (n,) integers from 0 to C - 1
        The labels as they are. Never written to.
    num_classes : int, optional
        C, where a check of the posterior's width is wanted.
    tau : float in [0, 1]
        Share of samples that may pass the threshold of a class. The paper advises 0.03 to 0.05.
    preset : {"paper", "official"}
        Fixes the next three to the paper's equations or to what the official code does.
    spread : {"sample", "population"}, optional
        Equation (4) with n - 1, or with n and a floor of 1e-6.
    threshold : {"higher", "order", "linear"}, float or (C,) floats, optional
        Equation (7): the quantile's upper neighbour, the official order statistic, NumPy's interpolated quantile, or
        constant scores. Only the first two keep the promise that at most floor(tau * n) samples move into a class.
    target : {"argmax", "winner"}, optional
        A sample with a successful draw moves to its largest rho, or to the largest among its successful draws.
    normalize : {"zscore", "minmax", "none"}
        The paper's standardisation, or one of its ablations.
    max_fraction : float in [0, 1]
        At most floor(max_fraction * n) labels change; those with the largest rho stay changed.
    allowed : (C, C) booleans, optional
        Moves that may happen, from row to column.
    eligible : (n,) booleans, optional
        Samples that may move. All samples count for the class statistics and thresholds.
    seed : int, or what numpy.random.default_rng takes
        Seed of the draws.
    uniforms : (n, C) floats, optional
        The draws themselves: draw j of sample i succeeds where ``uniforms[i, j] < rho[i, j]``.

    Returns
    -------
    Relabelling
        Where a value is bad (NaN, a row that is no probability row, a label out of range) the labels are unchanged
        and `refusal` says why and where.

    Raises
    ------
    ArgumentError
        For a wrong argument: a tau of 5, an unknown preset, lengths that differ.

    References
    ----------
    Hu et al., FedReLa: Imbalanced Federated Learning via Re-Labeling, ICML 2026, Section 3.

    Examples
    --------
    Four samples look like class 0, one of them a little like class 1, which is rarer:

    >>> import fedrela
    >>> posterior = [[0.99, 0.01], [0.98, 0.02], [0.97, 0.03], [0.6, 0.4], [0.2, 0.8]]
    >>> done = fedrela.relabel(posterior, [0, 0, 0, 0, 1], tau=0.4, seed=3)
    >>> done.labels.tolist(), done.moved.tolist()
    ([0, 0, 0, 1, 1], [3])
    """
    request = check_request(
        posterior,
        labels,
        RelabelOptions(**options),
        num_classes=num_classes,
        allowed=allowed,
        eligible=eligible,
    )
    shape = (request.y.size, request.C)
    draws = check_seed(seed) if uniforms is None else check_array("uniforms", uniforms, shape, np.float64)
    if request.refusal is not None:
        return _unchanged(request, request.refusal)
    found = request.candidates(request.options)
    wanted = choose_targets(found, draw_hits(found, draws), request.options.variant(request.C).target)
    chosen = cap(found, wanted, int(request.options.max_fraction * request.y.size))
    named = seed if uniforms is None and isinstance(seed, int) else None
    ledger = _ledger(request, named, found, chosen, notes(found, request.y, capped=chosen.size < wanted.size))
    return Relabelling(ledger.labels, found.sample[chosen], found.threshold, found.varpi, None, None, ledger, found)


def notes(found: Candidates, y: NDArray[Any], *, capped: bool) -> tuple[str, ...]:
    """Return what is unusual about a client's data but no reason to refuse."""
    said = []
    if y.size and found.threshold.size > 1 and np.all(y == y[0]):
        said.append(f"one class only: all {y.size} samples are of class {y[0]}")
    if found.small_classes:
        said.append(f"class too small: {found.small_classes} class(es) with one sample have score 0")
    if found.flat_columns:
        said.append(f"no spread: {found.flat_columns} (class, column) pair(s) have score 0")
    if capped:
        said.append("cap reached: max_fraction kept the moves with the largest rho")
    return tuple(said)


def _unchanged(request: Request, refusal: Refusal) -> Relabelling:
    nothing = no_candidates(request.C)
    ledger = _ledger(request, None, nothing, nothing.sample, (), str(refusal))
    return Relabelling(
        ledger.labels, nothing.sample, nothing.threshold, nothing.varpi, str(refusal), refusal.index, ledger, nothing
    )


def _ledger(
    request: Request,
    seed: int | None,
    found: Candidates,
    chosen: Ints,
    said: tuple[str, ...],
    refusal: str | None = None,
) -> Ledger:
    index, new = found.sample[chosen], found.target[chosen]
    return Ledger(
        original=request.y,
        num_classes=request.C,
        index=index.astype(np.int64),
        old=request.y[index].astype(np.int64),
        new=new.astype(np.int64),
        posterior=request.Q[index, new].astype(np.float64) if index.size else np.empty(0),
        z=found.score[chosen],
        rho=found.rho[chosen],
        options=request.as_record() | {"seed": seed},
        notes=said,
        refusal=refusal,
    )
