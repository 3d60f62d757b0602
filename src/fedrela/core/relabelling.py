"""FedReLa in one call: a posterior and labels in, new labels and a ledger out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_integer
from fedrela.core import input_checks as checks
from fedrela.core.candidates import Candidates, no_candidates
from fedrela.core.draws import cap, choose_targets, draw_hits
from fedrela.core.equations import Floats, Ints
from fedrela.core.ledger import Ledger
from fedrela.core.notebook import moves_frame, moves_html
from fedrela.core.reallocators import proposal
from fedrela.core.relabel_options import (
    PreviewKeywords,
    RelabelKeywords,
    RelabelOptions,
    check_keywords,
    keyword_parameters,
    show_keywords,
)
from fedrela.errors import ArgumentError


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
        Equation (7), ``(C,)``; infinite if nothing was computed.
    weights
        Equation (6), varpi, ``(C,)``.
    refusal
        None, or why nothing was re-labelled, with the first offending row.
    refused_at
        The number of that row, or None.
    ledger
        Every move with its scores; `fedrela.undo` reverses it.

    Examples
    --------
    >>> import fedrela
    >>> done = fedrela.relabel([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]], [0, 0, 0, 1], tau=0.5, seed=1)
    >>> done.labels.tolist(), done.moved.tolist(), done.share
    ([0, 1, 0, 1], [1], 0.25)
    >>> done
    <Relabelling: 1 of 4 labels moved>
    >>> done.rho.round(1).tolist()
    [[0.0, 0.0], [0.0, 0.8], [0.0, 0.0], [0.0, 0.0]]
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
        """Equation (8), the re-labelling probabilities ``(n, C)``; computed at every access."""
        return self.candidates.dense_rho(self.labels.size)

    @property
    def share(self) -> float:
        """The share of samples whose label changed."""
        return self.moved.size / max(self.labels.size, 1)

    def to_pandas(self, class_names: Sequence[str] | None = None) -> Any:
        """Return a `pandas.DataFrame` with a row for each moved sample.

        Columns: ``index``, ``id`` if the rows have ids, ``old`` and ``new`` class, and ``posterior``, ``z`` and ``rho``
        of the new class. Classes are named by `class_names`, by default those of the ledger; without names they are
        numbers.
        """
        return moves_frame(self.ledger, class_names)

    def __repr__(self) -> str:
        return repr(self.ledger).replace("Ledger", "Relabelling", 1)

    def _repr_html_(self) -> str:
        return moves_html(self.ledger)


@show_keywords(keyword_parameters("tau", *PreviewKeywords.__annotations__))
def relabel(
    posterior: ArrayLike,
    labels: ArrayLike,
    *,
    num_classes: int | None = None,
    eligible: ArrayLike | None = None,
    seed: Any = 0,
    uniforms: ArrayLike | None = None,
    class_names: Sequence[str] = (),
    ids: Sequence[str] = (),
    **options: Unpack[RelabelKeywords],
) -> Relabelling:
    """Re-label the majority-class samples that look most like a rarer class (the paper's Algorithm 1).

    Parameters
    ----------
    posterior : (n, C) floats
        One row per sample: the model's probability of every class, in class order.
    labels : (n,) integers from 0 to C - 1
        The current labels; the array is not modified.
    num_classes : int, optional
        C, to check the posterior's width.
    tau : float in [0, 1]
        Share of samples that may pass the threshold of a class. The paper advises 0.03 to 0.05.
    preset : {"paper", "official"}
        Fixes the next three to the paper's equations or to what the official code does.
    spread : {"sample", "population"}, optional
        Equation (4) with n - 1, or with n and a floor of 1e-6.
    threshold : {"higher", "order", "linear"}, float or (C,) floats, optional
        Equation (7): the quantile's upper neighbour, the official order statistic, NumPy's interpolated quantile, or
        constant scores. With the first two at most floor(tau * n) samples move into a class.
    target : {"argmax", "winner"}, optional
        A sample with a successful draw moves to the class of its largest rho, or of the largest among its successful
        draws.
    normalize : {"zscore", "minmax", "none"}
        The paper's standardisation, or one of its ablations.
    method : str, Reallocator or a class of one
        What proposes the moves: the paper's equations ``"fedrela"``, ``"margin"``, ``"confident"``, ``"random"``, or
        your own re-allocator, also by name as ``"package.module:Name"``; see `fedrela.core.Reallocator`.
    params : dict, optional
        The method's own parameters.
    max_fraction : float in [0, 1]
        At most floor(max_fraction * n) labels change: those with the largest rho.
    allowed : (C, C) booleans, or pairs of classes, optional
        Allowed moves, from the class of the row to the class of the column; or all allowed moves as pairs (from, to).
    forbidden : pairs of classes, optional
        Moves that may not happen.
    keep : row numbers or ids, or (n,) booleans, optional
        Rows whose labels are verified and stay.
    absent : bool
        Whether samples may move into a class that has no samples.
    class_tau : table class -> float in [0, 1], optional
        Tau of single classes, in place of `tau`.
    eligible : (n,) booleans, optional
        Samples that may move. All samples count for the class statistics and thresholds.
    seed : int, or anything that numpy.random.default_rng accepts
        Seed of the draws.
    uniforms : (n, C) floats, optional
        The draws themselves: draw j of sample i succeeds where ``uniforms[i, j] < rho[i, j]``.
    class_names : C strings, optional
        Names of the classes, for the ledger and for limits that name classes.
    ids : n distinct strings, optional
        Names of the rows, for the ledger and for `keep`.

    Returns
    -------
    Relabelling
        If a value is bad (NaN, a row that is not a probability distribution, a label out of range), the labels are
        unchanged, and `refusal` says why and where.

    Raises
    ------
    ArgumentError
        For a wrong argument: a tau of 5, an unknown preset, lengths that differ.

    References
    ----------
    Hu et al., FedReLa: Imbalanced Federated Learning via Re-Labeling, ICML 2026, Section 4.

    Examples
    --------
    Four samples look like class 0, one of them also a little like class 1, which is rarer:

    >>> import fedrela
    >>> posterior = [[0.99, 0.01], [0.98, 0.02], [0.97, 0.03], [0.6, 0.4], [0.2, 0.8]]
    >>> done = fedrela.relabel(posterior, [0, 0, 0, 0, 1], tau=0.4, seed=3)
    >>> done.labels.tolist(), done.moved.tolist()
    ([0, 0, 0, 1, 1], [3])
    """
    check_keywords(relabel, options)
    inputs = check_inputs(posterior, labels, RelabelOptions(**options), num_classes, eligible, class_names, ids)
    shape = (inputs.y.size, inputs.C)
    rng = checks.check_seed(seed)
    draws = rng if uniforms is None else checks.check_array("uniforms", uniforms, shape, np.float64)
    candidates = inputs.candidates(inputs.options, rng)
    drawn = choose_targets(candidates, draw_hits(candidates, draws), inputs.options.variant(inputs.C).target)
    chosen = cap(candidates, drawn, int(inputs.options.max_fraction * inputs.y.size))
    index, new = candidates.sample[chosen], candidates.target[chosen]
    refusal = inputs.refusal
    repeatable = int(seed) if uniforms is None and isinstance(seed, int | np.integer) else None
    ledger = Ledger(
        original=inputs.y,
        num_classes=inputs.C,
        index=index.astype(np.int64),
        old=inputs.y[index].astype(np.int64),
        new=new.astype(np.int64),
        posterior=inputs.Q[index, new].astype(np.float64) if index.size else np.empty(0),
        z=candidates.score[chosen],
        rho=candidates.rho[chosen],
        options=inputs.as_record() | {"seed": repeatable},
        notes=() if refusal else _notes(candidates, inputs.y, capped=chosen.size < drawn.size),
        refusal=str(refusal) if refusal else None,
        class_names=tuple(map(str, class_names)),
        ids=inputs.ids,
    )
    row, threshold = refusal.index if refusal else None, candidates.threshold
    return Relabelling(ledger.labels, index, threshold, candidates.varpi, ledger.refusal, row, ledger, candidates)


@dataclass(frozen=True)
class Inputs:
    """The checked arguments that `relabel` and `preview` share; `refusal` is set if values are bad."""

    Q: NDArray[Any]
    y: NDArray[Any]
    C: int
    options: RelabelOptions
    allowed: NDArray[np.bool_] | None
    eligible: NDArray[np.bool_] | None
    ids: tuple[str, ...]
    refusal: checks.Refusal | None

    def candidates(self, options: RelabelOptions, rng: np.random.Generator) -> Candidates:
        """Return the pairs that may move under `options` and the owner's limits: none if values are bad."""
        if self.refusal:
            return no_candidates(self.C)
        method = options.reallocator()
        candidates = proposal(method, self.Q, self.y, self.C, options, rng)
        if self.allowed is not None:
            candidates = candidates.take(self.allowed[self.y[candidates.sample], candidates.target])
        if self.eligible is not None:
            candidates = candidates.take(self.eligible[candidates.sample])
        if not options.absent:
            candidates = candidates.take(np.bincount(self.y, minlength=self.C)[candidates.target] > 0)
        limit = (options.taus(self.C) * self.y.size).astype(np.intp)
        return candidates if method.own_budget else candidates.largest(limit)

    def as_record(self) -> dict[str, Any]:
        """Return the options and the owner's limits as plain values, for the ledger."""
        forbidden = [] if self.allowed is None else np.argwhere(~self.allowed & ~np.eye(self.C, dtype=bool)).tolist()
        rows = [] if self.eligible is None else np.flatnonzero(~self.eligible).tolist()
        which = {"ineligible_rows": rows} if 0 < len(rows) < self.y.size else {}
        return self.options.as_record(self.C) | {"forbidden": forbidden, "ineligible": len(rows), **which}


def check_inputs(
    posterior: ArrayLike,
    labels: ArrayLike,
    options: RelabelOptions,
    num_classes: int | None,
    eligible: ArrayLike | None,
    class_names: Sequence[str],
    ids: Sequence[str],
) -> Inputs:
    """Check all arguments: raise if one is wrong, record a refusal if a value is bad."""
    y, names, classes = checks.as_labels(labels), tuple(map(str, ids)), tuple(map(str, class_names))
    Q = checks.as_array("posterior", posterior)
    if Q.ndim > 0 and Q.shape[0] != y.size:
        raise ArgumentError(f"posterior and labels differ in length: {Q.shape[0]} and {y.size}")
    width = Q.shape[1] if Q.ndim == 2 else 1
    C = max(width, 1) if num_classes is None else check_integer("num_classes", num_classes)
    if np.iinfo(y.dtype).max < C - 1:  # a moved label would overflow
        raise ArgumentError(f"{y.dtype} cannot hold class {C - 1}; use a wider integer dtype", argument="labels")
    for name, texts, size in (("class_names", classes, C), ("ids", names, y.size)):
        if len(texts) and (len(texts) != size or len(set(texts)) != size):
            raise ArgumentError(
                f"expected {size} distinct strings, got {len(set(texts))} in {len(texts)}", argument=name
            )
    options = options.numbered(classes)
    for check in (options.variant, options.taus):  # raise if an option is for another number of classes
        check(C)
    allowed = options.allowed_moves(C)
    may_move = None if eligible is None else checks.check_array("eligible", eligible, (y.size,), np.bool_)
    if len(options.keep):
        may_move = ~options.kept_rows(y.size, names) & (True if may_move is None else may_move)
    refusal = checks.refuse_posterior(Q, C) or checks.refuse_labels(y, C)
    return Inputs(Q, y, C, options, allowed, may_move, names, refusal)


def _notes(candidates: Candidates, y: NDArray[Any], *, capped: bool) -> tuple[str, ...]:
    """Return remarks on unusual data that are no reason to refuse."""
    notes = []
    if y.size and candidates.threshold.size > 1 and np.all(y == y[0]):
        notes.append(f"one class only: all {y.size} samples are of class {y[0]}")
    notes += candidates.notes
    if capped:
        notes.append("cap reached: max_fraction kept the moves with the largest rho")
    return tuple(notes)
