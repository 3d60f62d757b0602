"""Scores of a model on a test set: accuracies, F1, confusion, loss, and for two classes AUROC and AUPRC."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError, DataError
from fedrela.metrics.groups import Groups

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BALANCED_WITHIN = 1.2  # a test set is balanced if its class counts differ by at most this factor
NO_PREDICTION = -1


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores that `score` returns.

    A row of logits without a finite maximum (NaN anywhere, plus infinity, or all minus infinity) has no softmax. It
    predicts no class: it counts as wrong in every accuracy, and is in no column of the confusion matrix.

    Attributes
    ----------
    overall
        Fraction of the samples predicted correctly.
    balanced
        Mean of `per_class` over the classes with test samples.
    per_class : (C,)
        Recall: fraction of a class's samples predicted correctly; NaN for a class without any.
    groups
        Fraction of the samples of a group's classes predicted correctly; None for a group without samples (0 in the
        official code).
    macro_f1
        Mean of ``2 TP / (2 TP + FP + FN)`` over the classes with test samples or predictions.
    confusion : (C, C)
        Samples of class a (row) predicted as class b (column).
    loss
        Mean cross-entropy ``-log softmax(logits)[label]``; not finite if some logits are not.
    auroc
        Two classes: the probability that a sample of class 1 has a larger ``logit 1 - logit 0`` than one of class 0,
        ties counting half. None with more classes, if one class has no sample, or if some row has no softmax.
    auprc
        Likewise the average precision of class 1: precision at each distinct score, weighted by the gain in recall.
    samples
        Number of test samples.

    Examples
    --------
    >>> found = score([[2.0, 0.0], [1.0, 0.5], [0.2, 0.1], [0.0, 1.0]], [0, 0, 1, 1])
    >>> found.samples, found.balanced, found.as_record()["per_class"]
    (4, 0.75, [1.0, 0.5])
    """

    overall: float
    balanced: float
    per_class: Floats
    groups: dict[str, float | None]
    macro_f1: float
    confusion: Ints
    loss: float
    auroc: float | None
    auprc: float | None
    samples: int

    def as_record(self) -> dict[str, Any]:
        """Return plain values for JSON; None stands for values that are undefined or not finite."""
        record: dict[str, Any] = {
            "overall": self.overall,
            "balanced": _finite_or_none(self.balanced),
            "per_class": [None if np.isnan(share) else share for share in self.per_class.tolist()],
            "groups": dict(self.groups),
            "macro_f1": _finite_or_none(self.macro_f1),
            "confusion": None if np.isnan(self.per_class).all() else self.confusion.tolist(),
            "loss": _finite_or_none(self.loss),
        }
        two_classes = self.per_class.size == 2
        return record | ({"auroc": self.auroc, "auprc": self.auprc} if two_classes else {})


def _finite_or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None


def score(logits: ArrayLike, labels: ArrayLike, groups: Groups | None = None) -> Scores:
    """Score the logits of a model.

    Parameters
    ----------
    logits : (n, C) floats
        One row per sample; the largest is the prediction, the first of equal ones.
    labels : (n,) integers from 0 to C - 1
        The true classes of at least one sample.
    groups
        Groups of classes whose accuracy is reported.

    Examples
    --------
    >>> found = score([[2.0, 0.0], [1.0, 0.5], [0.2, 0.1], [0.0, 1.0]], [0, 0, 1, 1])
    >>> found.overall, found.per_class.tolist(), found.confusion.tolist(), found.auroc
    (0.75, [1.0, 0.5], [[2, 0], [1, 1]], 1.0)
    """
    x = np.asarray(logits)
    if x.ndim != 2 or x.shape[1] == 0 or x.dtype.kind != "f":
        raise ArgumentError(f"logits: expected floats, (samples, classes), got {x.dtype} {x.shape}")
    C = x.shape[1]
    y = class_ids("labels", labels, C)
    if y.size != x.shape[0] or y.size == 0:
        raise ArgumentError(f"logits and labels: expected the same length, at least 1, got {len(x)} and {y.size}")
    if groups is not None and groups.of_class.size != C:
        raise ArgumentError(f"groups: expected one group for each of {C} classes, got {groups.of_class.size}")
    predicted, loss = _predict(x, y)
    has_prediction = predicted != NO_PREDICTION
    confusion = np.bincount(y[has_prediction] * C + predicted[has_prediction], minlength=C * C).reshape(C, C)
    counts = np.bincount(y, minlength=C)
    rankings = _rankings(x, y) if C == 2 and has_prediction.all() and counts.all() else (None, None)
    return _scores(confusion, counts, groups, loss, rankings)


def score_sums(confusion: Ints, hits: int, samples: int, groups: Groups | None = None) -> Scores:
    """Return the scores from sums over clients that scored their own samples; loss and rankings are unknown.

    Parameters
    ----------
    confusion : (C, C + 1)
        Samples by true and predicted class, those without a prediction in the last column.
    hits, samples
        How many of all samples were predicted correctly, and how many there are, including those of clients that report
        only hits.
    groups
        Groups of classes whose accuracy is reported.

    Examples
    --------
    >>> score_sums(np.array([[3, 1, 0], [0, 2, 0]]), hits=8, samples=10).overall
    0.8
    """
    scores = _scores(confusion[:, :-1], confusion.sum(axis=1), groups, float("nan"), (None, None))
    return replace(scores, overall=hits / samples, samples=samples)


def _scores(
    confusion: Ints, counts: Ints, groups: Groups | None, loss: float, rankings: tuple[float | None, float | None]
) -> Scores:
    """Return the scores that follow from a confusion matrix and the number of samples of each class."""
    correct, predicted, C = confusion.diagonal(), confusion.sum(axis=0), counts.size
    per_class = np.divide(correct, counts, out=np.full(C, np.nan), where=counts > 0)
    occurs, total = counts + predicted > 0, int(counts.sum())
    return Scores(
        overall=int(correct.sum()) / max(total, 1),
        balanced=float(per_class[counts > 0].mean()) if total else float("nan"),
        per_class=per_class,
        groups={} if groups is None else _group_accuracies(groups, correct, counts),
        macro_f1=float((2 * correct[occurs] / (counts + predicted)[occurs]).mean()) if total else float("nan"),
        confusion=confusion,
        loss=loss,
        auroc=rankings[0],
        auprc=rankings[1],
        samples=total,
    )


def best_threshold(logits: ArrayLike, labels: ArrayLike) -> float | None:
    """Return the decision threshold with the highest balanced accuracy: class 1 where ``logit 1 - logit 0`` exceeds it.

    It lies midway between two scores, or one beyond them all; of equally good ones it is the nearest to 0, the usual
    threshold. None if a class has no sample, or a row no softmax.

    Parameters
    ----------
    logits : (n, 2) floats
        One row per sample.
    labels : (n,) integers, 0 or 1
        The true classes.

    Examples
    --------
    >>> best_threshold([[2.0, 0.0], [1.0, 0.0], [0.5, 0.0], [0.0, 1.0]], [0, 0, 1, 1])
    -0.75
    """
    x, y = np.asarray(logits, np.float64), class_ids("labels", labels, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        distinct, rank = np.unique(x[:, 1] - x[:, 0], return_inverse=True)
    counts = np.bincount(y, minlength=2)
    if not counts.all() or not np.isfinite(distinct).all():
        return None
    below = [np.append(0, np.cumsum(np.bincount(rank[y == c], minlength=distinct.size))) for c in (0, 1)]
    balanced = below[0] / counts[0] + 1 - below[1] / counts[1]
    between = np.concatenate([[distinct[0] - 1], (distinct[:-1] + distinct[1:]) / 2, [distinct[-1] + 1]])
    best = between[np.isclose(balanced, balanced.max(), rtol=0, atol=1e-12)]
    return float(best[np.abs(best).argmin()])


def headline(test_counts: ArrayLike) -> str:
    """Return the accuracy to report first: ``"overall"`` on a balanced test set, ``"balanced"`` on any other.

    A test set is balanced if its largest class has at most 1.2 times the samples of its smallest. Classes without
    samples do not count: they enter neither accuracy.

    Parameters
    ----------
    test_counts : (C,)
        Test samples of each class.

    Examples
    --------
    >>> headline([100, 100, 95]), headline([900, 100])
    ('overall', 'balanced')
    """
    counts = np.asarray(test_counts)
    counts = counts[counts > 0]
    return "balanced" if counts.size and counts.max() > BALANCED_WITHIN * counts.min() else "overall"


def class_ids(name: str, values: ArrayLike, num_classes: int) -> Ints:
    """Return class ids as 64-bit integers, or raise if one is out of range."""
    ids = np.asarray(values)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ArgumentError(f"{name}: expected a row of class ids, got {ids.dtype} {ids.shape}")
    wrong = (ids < 0) | (ids >= num_classes)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise DataError(f"{name}: expected ids from 0 to {num_classes - 1}, got {ids[i]} at index {i}")
    return ids.astype(np.int64, copy=False)


def _predict(logits: NDArray[Any], y: Ints) -> tuple[Ints, float]:
    """Return each row's predicted class, or NO_PREDICTION, and the mean cross-entropy.

    ``-log softmax(x)[y] = log sum_c exp(x_c - m) - (x_y - m)`` with m the largest logit, to avoid overflow.
    """
    rows = np.arange(y.size)
    best = logits.argmax(axis=1)  # of a row with NaN: the first NaN
    peak = logits[rows, best]
    x = logits.astype(np.float64, order="C")  # the memory layout decides the order of a sum, and so its last bits
    with np.errstate(invalid="ignore", over="ignore"):  # rows without a softmax come out as NaN
        x -= peak[:, None]
        own = x[rows, y]
        loss = float((np.log(np.exp(x, out=x).sum(axis=1)) - own).mean())
    return np.where(np.isfinite(peak), best, NO_PREDICTION), loss


def _group_accuracies(groups: Groups, correct: Ints, counts: Ints) -> dict[str, float | None]:
    members = {name: groups.members(name) for name in groups.names}
    sums = {name: (int(correct[ids].sum()), int(counts[ids].sum())) for name, ids in members.items()}
    return {name: hits / samples if samples else None for name, (hits, samples) in sums.items()}


def _rankings(logits: NDArray[Any], y: Ints) -> tuple[float, float]:
    """Return AUROC and average precision of class 1; equal scores are one step of either curve."""
    x = logits.astype(np.float64)
    with np.errstate(over="ignore"):
        distinct, rank = np.unique(x[:, 1] - x[:, 0], return_inverse=True)
    positive = np.bincount(rank[y == 1], minlength=distinct.size)[::-1]  # by decreasing score
    negative = np.bincount(rank[y == 0], minlength=distinct.size)[::-1]
    true, false = np.cumsum(positive), np.cumsum(negative)
    half_pairs, lost = 2 * int(true[-1]) * int(false[-1]), int((positive * (2 * false - negative)).sum())
    auroc = (half_pairs - lost) / half_pairs  # integers: exact except for this division
    auprc = float((positive / true[-1] * (true / (true + false))).sum())
    return auroc, auprc
