"""Scoring the global model in fixed batches spread over the workers, and each client's own model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms.base import Algorithm, ArraySpec
from fedrela.engine.client import SCORE_BATCH
from fedrela.engine.state import Run
from fedrela.engine.tasks import Task
from fedrela.errors import RunFailedError
from fedrela.metrics import Scores, score


def evaluate(run: Run, subject: str = "test") -> Scores | None:
    """Score the model on the test set, or on the samples that clients hold back; None where there are none."""
    labels = run.problem.y_test if subject == "test" else run.problem.y_train[run.runner.setup.validation]
    if not len(labels):
        return None
    scores = run.memory.make(f"scores {subject}", {"scores": ArraySpec((len(labels), run.problem.num_classes))})
    broadcast, round = run.write_broadcast().handle, run.state.round
    batches = range(-(-len(labels) // SCORE_BATCH))
    _finish(run, [Task("score", round, 0, broadcast, scores.handle, row, subject=subject) for row in batches])
    return score(scores.row()["scores"], labels, run.problem.groups)


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
        recall = _recall_of_clients(run)
    accuracy = (counts * recall).sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
    return {
        "clients": accuracy.tolist(),
        "mean": float(accuracy.mean()),
        "weighted": float((accuracy * counts.sum(axis=1)).sum() / counts.sum()),
    }


def accuracy_record(scores: Scores) -> dict[str, Any]:
    """Return the accuracies of a round as plain values."""
    record = scores.as_record()
    return {name: record[name] for name in ("overall", "balanced", "groups", "per_class", "macro_f1")}


def _recall_of_clients(run: Run) -> NDArray[np.float64]:
    """Return each client's recall of each class with its private arrays, one client after the other."""
    problem, broadcast, recall = run.problem, run.write_broadcast(), []
    scores = run.memory.make("scores local", {"scores": ArraySpec((len(problem.y_test), problem.num_classes))})
    for client in range(run.clients):
        _finish(run, [run.task("score_local", run.state.round, client, broadcast, scores, 0)])
        recall.append(_recall(score(scores.row()["scores"], problem.y_test, None)))
    return np.stack(recall)


def _recall(scores: Scores | None) -> NDArray[np.float64]:
    return np.nan_to_num(scores.per_class) if scores is not None else np.empty(0)


def _finish(run: Run, tasks: list[Task]) -> None:
    for result in run.executor.run(tasks, deadline=None):
        if result.failure is not None:
            raise RunFailedError(f"evaluation failed: {result.failure}")
