"""Scoring the global model, in fixed batches spread over the workers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms.base import Algorithm, ArraySpec
from fedrela.engine.orders import Order
from fedrela.engine.run import Run
from fedrela.engine.runner import SCORE_BATCH
from fedrela.errors import FedrelaError
from fedrela.metrics import Scores, score


def evaluate(run: Run, subject: str = "test") -> Scores | None:
    """Score the model on the test set, or on the samples that clients hold back; None where there are none."""
    labels = run.problem.y_test if subject == "test" else run.problem.y_train[run.runner.setup.validation]
    if not len(labels):
        return None
    up = run.area(f"scores {subject}", {"scores": ArraySpec((len(labels), run.problem.num_classes))})
    down = run.lay_down()
    batches = range(-(-len(labels) // SCORE_BATCH))
    orders = [Order("score", run.state.round, 0, down.handle, up.handle, row, subject=subject) for row in batches]
    _finish(run, orders)
    return score(up.views()["scores"], labels, run.problem.groups)


def evaluate_locally(run: Run) -> dict[str, Any]:
    """Score what each client would use for itself, on the test set weighted by the client's own class shares.

    Returns
    -------
    dict
        ``clients``: accuracy of each client, ``mean``: over clients, ``weighted``: by their number of samples.
    """
    problem, algorithm = run.problem, run.plan.algorithm
    counts = np.stack([np.bincount(problem.y_train[s.train], minlength=problem.num_classes) for s in problem.shards])
    if type(algorithm).local_logits is Algorithm.local_logits and not algorithm.private:
        recall = np.tile(_recall(evaluate(run)), (run.clients, 1))
    else:
        recall = _each_client(run)
    accuracy = (counts * recall).sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
    return {
        "clients": accuracy.tolist(),
        "mean": float(accuracy.mean()),
        "weighted": float((accuracy * counts.sum(axis=1)).sum() / counts.sum()),
    }


def _each_client(run: Run) -> NDArray[np.float64]:
    """Return each client's recall of each class with its private arrays, one client after the other."""
    problem, down, recall = run.problem, run.lay_down(), []
    up = run.area("scores local", {"scores": ArraySpec((len(problem.y_test), problem.num_classes))})
    for client in range(run.clients):
        _finish(run, [run.order("score_local", run.state.round, client, down, up, 0)])
        recall.append(_recall(score(up.views()["scores"], problem.y_test, None)))
    return np.stack(recall)


def _recall(scores: Scores | None) -> NDArray[np.float64]:
    return np.nan_to_num(scores.per_class) if scores is not None else np.empty(0)


def _finish(run: Run, orders: list[Order]) -> None:
    for done in run.work(orders):
        if done.error is not None:
            raise FedrelaError(f"evaluation failed: {done.error}")
