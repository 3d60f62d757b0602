"""Scoring the global model in fixed batches spread over the workers, and each client's own model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms.base import Algorithm, ArraySpec
from fedrela.engine.admission import admit
from fedrela.engine.client import SCORE_BATCH
from fedrela.engine.dispatch import collect, make_tasks, write_broadcast
from fedrela.engine.run import Run
from fedrela.engine.tasks import Task
from fedrela.errors import RunFailedError
from fedrela.metrics import Scores, best_threshold, score, score_sums


def evaluate(run: Run, subject: str = "test") -> Scores | None:
    """Score the model on the test set, or on the clients' validation samples; None if there are none."""
    if run.problem.held_by_clients == subject:
        return _evaluate_at_clients(run)
    labels = _labels(run, subject)
    return score(_scores(run, subject), labels, run.problem.groups) if len(labels) else None


def evaluate_at_threshold(run: Run) -> dict[str, Any] | None:
    """Score the test set at the decision threshold that is best for the clients' validation samples, for two classes.

    None if there are no samples of either kind here, or not of both classes.
    """
    problem = run.problem
    if problem.num_classes != 2 or problem.held_by_clients or not len(_labels(run, "test")):
        return None
    validation = _labels(run, "validation")
    threshold = best_threshold(_scores(run, "validation"), validation) if len(validation) else None
    if threshold is None:
        return None
    found = score(_scores(run, "test").astype(np.float64) - [0.0, threshold], _labels(run, "test"))
    return {"threshold": threshold, "balanced": found.balanced, "per_class": found.as_record()["per_class"]}


def _labels(run: Run, subject: str) -> NDArray[np.int64]:
    return run.problem.y_test if subject == "test" else run.problem.y_train[run.runner.setup.validation]


def _scores(run: Run, subject: str) -> NDArray[Any]:
    """Return the logits of all samples of a set."""
    specs = {"scores": ArraySpec((len(_labels(run, subject)), run.problem.num_classes))}
    scores = run.memory.allocate(f"scores {subject}", specs)
    broadcast, round = write_broadcast(run), run.state.round
    batches = range(-(-len(_labels(run, subject)) // SCORE_BATCH))
    _finish(run, [Task("score", round, 0, broadcast, scores.handle, row, subject=subject) for row in batches])
    return scores.row()["scores"]


def own_scores(classes: int) -> dict[str, ArraySpec]:
    """Return a client's report on its own test samples: the confusion matrix if permitted, hits and sample count."""
    return {"confusion": ArraySpec((classes, classes + 1), "int64"), "hits": ArraySpec((2,), "int64")}


def _evaluate_at_clients(run: Run) -> Scores | None:
    """Have all clients score the model on their own samples, and add up their reports."""
    specs, round = own_scores(run.problem.num_classes), run.state.round
    output = run.memory.allocate("scores own", specs, run.clients)
    tasks = make_tasks(run, "score_own", round, range(run.clients), output)
    collected = collect(run, tasks, output, specs, run.plan.train.deadline)
    everybody = dict.fromkeys(range(run.clients))
    reported = admit(collected.uploads, round=round, expected=everybody, specs=specs, reference=None, norm_limit=0.0)
    confusion, hits, samples = np.zeros(specs["confusion"].shape, np.int64), 0, 0
    for upload in reported.admitted:
        rows, (right, number) = upload.arrays["confusion"], map(int, upload.arrays["hits"])
        if rows.min() >= 0 and 0 <= right <= number == upload.samples and int(rows.sum()) in (0, number):
            confusion, hits, samples = confusion + rows, hits + right, samples + number
    return score_sums(confusion, hits, samples, run.problem.groups) if samples else None


def evaluate_locally(run: Run) -> dict[str, Any]:
    """Score the model each client would use for itself, on the test set weighted by the client's class shares.

    The result has the accuracy of each client, their mean, and their mean weighted by numbers of samples. Classes
    without test samples do not count; a client that has no others has no accuracy.
    """
    problem, algorithm = run.problem, run.plan.algorithm
    counts = np.stack([np.bincount(problem.y_train[s.train], minlength=problem.num_classes) for s in problem.shards])
    if type(algorithm).local_logits is Algorithm.local_logits and not algorithm.private:
        scores = [evaluate(run)] * run.clients
    else:
        scores = [_evaluate_client(run, client) for client in range(run.clients)]
    per_class = np.stack([each.per_class for each in scores if each is not None])
    counts = counts * ~np.isnan(per_class)
    sizes = counts.sum(axis=1)
    accuracy = (counts * np.nan_to_num(per_class)).sum(axis=1) / np.maximum(sizes, 1)
    return {
        "clients": [float(each) if size else None for each, size in zip(accuracy, sizes, strict=True)],
        "mean": float(accuracy[sizes > 0].mean()),
        "weighted": float((accuracy * sizes).sum() / sizes.sum()),
    }


def _evaluate_client(run: Run, client: int) -> Scores:
    """Score the test set with a client's own model."""
    labels = run.problem.y_test
    scores = run.memory.allocate("scores local", {"scores": ArraySpec((len(labels), run.problem.num_classes))})
    _finish(run, make_tasks(run, "score_local", run.state.round, [client], scores))
    return score(scores.row()["scores"], labels, None)


def accuracy_record(scores: Scores) -> dict[str, Any]:
    """Return the accuracies of a round as plain values."""
    record = scores.as_record()
    return {name: record[name] for name in ("overall", "balanced", "groups", "per_class", "macro_f1")}


def _finish(run: Run, tasks: list[Task]) -> None:
    for result in run.executor.run(tasks, deadline=None):
        if result.failure is not None:
            raise RunFailedError(f"evaluation failed: {result.failure}")
