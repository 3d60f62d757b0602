"""What re-labelling does to one imbalanced data set: scikit-learn's logistic regression on the digits.

Three of the ten digits are rare in training (imbalance ratio 20), the test set is balanced. One model is trained on the
labels as they are, one on the re-labelled ones, and one on a control: the same number of moves from class to class, but
of samples drawn at random, so that the difference is which samples moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fedrela.data.sources.digits as digits
from fedrela.core import Ledger, Preview, preview, relabel
from fedrela.data.imbalance import step_counts, subsample
from fedrela.streams import stream

MINORITY = (0, 1, 2)
RATIO = 20
TAU = 0.05
SEEDS = (1, 2, 3, 4, 5)
ARMS = ("labels as they are", "FedReLa", "same moves, random samples")


@dataclass(frozen=True, eq=False)
class Trial:
    """One seed: recall of minority and majority and overall accuracy an arm, and what re-labelling said and did."""

    seed: int
    recall: NDArray[np.float64]  # (arms, 3): minority, majority, overall
    outlook: Preview
    ledger: Ledger


def trials() -> Iterator[Trial]:
    """Run the demonstration, one trial a seed."""
    source = digits.load()
    x, x_test = (part.reshape(len(part), -1) / 16.0 for part in (source.x_train, source.x_test))
    largest = int(np.bincount(source.y_train).min())
    for seed in SEEDS:
        kept = subsample(source.y_train, step_counts(10, largest, RATIO, MINORITY), seed=seed)
        yield _trial(seed, x[kept], source.y_train[kept], x_test, source.y_test)


def _trial(seed: int, x: Any, y: Any, x_test: Any, y_test: Any) -> Trial:
    model = _fit(x, y)
    posterior = model.predict_proba(x)
    done = relabel(posterior, y, tau=TAU, seed=seed)
    arms = (model, _fit(x, done.labels), _fit(x, random_moves(done.ledger, seed)))
    recall = np.array([_recall(arm.predict(x_test), y_test) for arm in arms])
    return Trial(seed, recall, preview(posterior, y), done.ledger)


def _fit(x: Any, y: Any) -> Any:
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # threads that wait for each other make this small problem slower on a busy machine
        return LogisticRegression(max_iter=1000).fit(x, y)


def _recall(answer: Any, y_test: Any) -> list[float]:
    rare, right = np.isin(y_test, MINORITY), answer == y_test
    return [float(right[rare].mean()), float(right[~rare].mean()), float(right.mean())]


def random_moves(ledger: Ledger, seed: int) -> NDArray[Any]:
    """Return labels with the same number of moves from class a to class b, of samples drawn at random."""
    labels, rng = ledger.original.copy(), stream(seed, "random moves")
    for old in range(ledger.num_classes):
        samples = rng.permutation(np.flatnonzero(ledger.original == old))
        new = ledger.new[ledger.old == old]
        labels[samples[: new.size]] = new
    return labels
