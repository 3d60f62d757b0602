"""The expected effect of a re-labelling before any label changes, with warnings if it would do harm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_fraction
from fedrela.core.draws import expected_flow
from fedrela.core.equations import Floats
from fedrela.core.relabel_options import (
    PreviewKeywords,
    RelabelOptions,
    check_keywords,
    keyword_parameters,
    show_keywords,
)
from fedrela.core.relabelling import check_inputs
from fedrela.errors import ArgumentError, UnknownOptionError
from fedrela.text import percent, probability, shown

TAUS = (0.01, 0.03, 0.05, 0.1, 0.2)
USUAL_SHARE = 0.30  # a larger expected share of changed labels gives a warning
POOR_AGREEMENT, POOR_KAPPA = 0.60, 0.20  # below both, the model is hardly better than chance


@dataclass(frozen=True, eq=False)
class Preview:
    """Expected moves at several tau; nothing is drawn and nothing changes.

    Attributes
    ----------
    taus
        The values of tau, ``(T,)``.
    counts
        Samples of each class, ``(C,)``.
    flow
        Expected moves from class to class at each tau before `max_fraction`, ``(T, C, C)``.
    agreement
        Share of samples whose label is the model's prediction.
    kappa
        The same corrected for chance (Cohen's kappa); NaN if chance alone always agrees.
    warnings
        Reasons against re-labelling these data.
    refusal, refused_at
        Why `relabel` would refuse and at which row, or None.

    Examples
    --------
    >>> import fedrela
    >>> posterior = [[0.99, 0.01], [0.98, 0.02], [0.97, 0.03], [0.6, 0.4], [0.2, 0.8]]
    >>> found = fedrela.preview(posterior, [0, 0, 0, 0, 1], taus=(0.2, 0.4))
    >>> found.total.round(1).tolist(), found.counts.tolist(), found.agreement, found.warnings
    ([0.0, 0.9], [4, 1], 1.0, ())
    """

    taus: Floats
    counts: NDArray[np.int64]
    flow: Floats
    agreement: float
    kappa: float
    warnings: tuple[str, ...]
    refusal: str | None
    refused_at: int | None

    @property
    def into(self) -> Floats:
        """Expected moves into each class, ``(T, C)``."""
        return np.asarray(self.flow.sum(axis=1))

    @property
    def out_of(self) -> Floats:
        """Expected moves out of each class, ``(T, C)``."""
        return np.asarray(self.flow.sum(axis=2))

    @property
    def total(self) -> Floats:
        """Expected number of moves, ``(T,)``."""
        return np.asarray(self.flow.sum(axis=(1, 2)))

    @property
    def share(self) -> Floats:
        """Expected share of samples that move, ``(T,)``."""
        return self.total / max(int(self.counts.sum()), 1)

    def rows(self) -> list[dict[str, Any]]:
        """One plain row per tau, for tables and data frames."""
        return [
            {"tau": float(tau), "moves": float(total), "share": float(share), "into": into.tolist()}
            for tau, total, share, into in zip(self.taus, self.total, self.share, self.into, strict=True)
        ]

    def __str__(self) -> str:
        if self.refusal:
            return f"refused: {self.refusal}"
        reached = self.into.sum(axis=0)
        classes = [int(c) for c in np.argsort(-reached, kind="stable")[:8] if reached[c] > 0]
        lines = ["   tau  moves   share  " + "".join(f"{f'->{c}':>8}" for c in classes)]
        for row in self.rows():
            cells = "".join(f"{row['into'][c]:8.1f}" for c in classes)
            lines.append(f"{probability(row['tau']):>6} {row['moves']:6.1f} {percent(row['share']):>7}  {cells}")
        if self.counts.any():
            lines.append(f"the model's first choice is the label for {percent(self.agreement)} of the samples")
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


@show_keywords(keyword_parameters(*PreviewKeywords.__annotations__))
def preview(
    posterior: ArrayLike,
    labels: ArrayLike,
    taus: Sequence[float] = TAUS,
    *,
    num_classes: int | None = None,
    eligible: ArrayLike | None = None,
    class_names: Sequence[str] = (),
    ids: Sequence[str] = (),
    **options: Unpack[PreviewKeywords],
) -> Preview:
    """Return the expected moves from class to class at each of several tau, without drawing.

    Parameters
    ----------
    posterior : (n, C) floats
        One row per sample: the model's probability of every class, in class order.
    labels : (n,) integers from 0 to C - 1
        The current labels.
    taus
        The values of tau to try, each in [0, 1].
    num_classes : int, optional
        C, to check the posterior's width.
    eligible : (n,) booleans, optional
        Samples that may move.
    class_names, ids : strings, optional
        Names of the classes and of the rows, for limits that name them.
    options
        All other options of `fedrela.relabel`, with the same meaning.

    Examples
    --------
    >>> import fedrela
    >>> posterior = [[0.99, 0.01], [0.98, 0.02], [0.97, 0.03], [0.6, 0.4], [0.2, 0.8]]
    >>> fedrela.preview(posterior, [0, 0, 0, 0, 1], taus=(0.2, 0.4)).into.round(2)
    array([[0. , 0. ],
           [0. , 0.9]])
    """
    if "tau" in options:
        tau = options.get("tau")
        given = shown(tau) if type(tau) in (int, float) else "0.02"
        raise UnknownOptionError(f"preview takes several: give taus=({given},)", argument="tau")
    check_keywords(preview, options)
    if not isinstance(taus, Iterable):
        raise ArgumentError(f"expected a list of fractions, got {taus!r}", argument="taus")
    values = np.array([check_fraction("taus", tau, per_cent_hint=True) for tau in taus])
    inputs = check_inputs(posterior, labels, RelabelOptions(**options), num_classes, eligible, class_names, ids)
    flow = np.zeros((values.size, inputs.C, inputs.C))
    if inputs.refusal is not None:
        counts = np.zeros(inputs.C, np.int64)
        return Preview(values, counts, flow, np.nan, np.nan, (), str(inputs.refusal), inputs.refusal.index)
    for t, tau in enumerate(values):
        candidates = inputs.candidates(replace(inputs.options, tau=tau), np.random.default_rng(0))
        flow[t] = expected_flow(candidates, inputs.y, inputs.options.variant(inputs.C).target)
    counts = np.bincount(inputs.y, minlength=inputs.C).astype(np.int64)
    share, kappa = _agreement_and_kappa(inputs.Q, inputs.y)
    warnings = _warnings(values, flow.sum(axis=(1, 2)), counts, inputs.options.max_fraction, class_names)
    if poor := _poor(share, kappa):
        warnings = (poor, *warnings)
    return Preview(values, counts, flow, share, kappa, warnings, None, None)


def _agreement_and_kappa(Q: Floats, y: NDArray[Any]) -> tuple[float, float]:
    """Return the share of labels that the model predicts, and Cohen's kappa."""
    if y.size == 0:
        return np.nan, np.nan
    predicted = Q.argmax(axis=1)
    share = float(np.mean(predicted == y))
    shares = [np.bincount(classes, minlength=Q.shape[1]) / y.size for classes in (predicted, y)]
    chance = float(shares[0] @ shares[1])
    return share, (share - chance) / (1.0 - chance) if chance < 1.0 else np.nan


def poor_agreement(Q: Floats, y: NDArray[Any]) -> str:
    """Return a warning if the model confirms hardly more labels than chance, else an empty string."""
    return _poor(*_agreement_and_kappa(Q, y))


def _poor(share: float, kappa: float) -> str:
    if not share < POOR_AGREEMENT or kappa >= POOR_KAPPA:
        return ""
    return (
        f"the model agrees with {percent(share)} of the labels, hardly more than chance; "
        "a poor model moves more labels than a good one: re-label later, or check the order of the classes"
    )


def _warnings(
    taus: Floats, total: Floats, counts: NDArray[np.int64], max_fraction: float, class_names: Sequence[str]
) -> tuple[str, ...]:
    n, warnings = int(counts.sum()), []
    if np.count_nonzero(counts) == 1 and counts.size > 1:
        c = int(np.argmax(counts))
        only = f"one class only: all {n} samples are of class {class_names[c] if len(class_names) else c}"
        warnings.append(f"{only}, so every move adds a class that these data do not have")
    if (large := total > USUAL_SHARE * n).any():
        tau, share = taus[large.argmax()], total[large.argmax()] / n
        changed, usual = percent(share, 0), percent(USUAL_SHARE, 0)
        warnings.append(f"at tau {tau:g} {changed} of the labels would change, more than usual ({usual})")
    if (capped := total > max_fraction * n).any():
        tau = taus[capped.argmax()]
        warnings.append(f"at tau {tau:g}, more labels are expected to move than max_fraction {max_fraction:g} allows")
    return tuple(warnings)
