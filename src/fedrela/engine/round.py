"""One round, in the order choose, exchange, re-label, train, admit, aggregate, evaluate.

A client's work counts wholly or not at all: its labels, its state and its upload are taken together when its upload is
admitted, and none of them otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrela.core import Ledger
from fedrela.engine.admission import Admission, admit
from fedrela.engine.evaluation import accuracy_record, evaluate
from fedrela.engine.problem import STATE
from fedrela.engine.server import aggregate, hold_exchanges
from fedrela.engine.state import Run
from fedrela.engine.tasks import ClientRelabelling, ClientResult
from fedrela.errors import RunFailedError, TooFewClientsError
from fedrela.metrics import Scores
from fedrela.records import Failure, FailureKind, RoundRecord, Upload
from fedrela.runfolder import RunFolder

Failures = Mapping[int, Failure]


@dataclass
class Timing:
    """What a round cost in seconds; never compared, so kept apart from the record."""

    round: int
    train_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    relabel_seconds: float = 0.0

    def as_record(self) -> dict[str, Any]:
        """Return plain values."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class RoundResult:
    """A round: its record, what it cost, and the ledgers of the clients that re-labelled in it."""

    record: RoundRecord
    timing: Timing
    ledgers: dict[int, Ledger]


@dataclass
class Training:
    """What the clients of a round brought back: uploads, re-labellings and rows by client; or why they failed."""

    uploads: list[Upload] = field(default_factory=list)
    relabellings: dict[int, ClientRelabelling] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    failed: dict[int, Failure] = field(default_factory=dict)


def next_round(run: Run, folder: RunFolder | None = None, missing: Failures | None = None) -> RoundResult:
    """Carry out the next round.

    Parameters
    ----------
    run
        Is one round further afterwards.
    folder
        Where failures that depend on chance are noted before anything depends on them.
    missing
        Clients that failed in this round before the run was interrupted, and are not asked again. The round is
        decided then: the others have any time.
    """
    round, missing = run.state.round + 1, missing or {}
    deadline = 0.0 if missing else run.plan.train.deadline
    timing = Timing(round)
    confusion = _confusion_before_relabelling(run, round, timing)
    start = time.perf_counter()

    chosen = choose(run, round)
    failed = hold_exchanges(run, round, chosen, missing, deadline)
    training = relabel_and_train(run, round, chosen, {**missing, **failed}, deadline)
    admission = admit_uploads(run, round, chosen, training)
    enough = len(admission.admitted) >= run.plan.train.min_clients
    if not enough:
        _raise_if_run_failed(run, round, training, admission)
    _note_failures(folder, round, training.failed, missing)
    if enough:
        aggregate(run, round, admission.admitted)
        keep_results(run, round, training, admission)
    else:
        run.state.skipped += 1
        training.relabellings = {}
    run.state.round = round

    timing.train_seconds = time.perf_counter() - start
    timing.relabel_seconds = sum(each.seconds for each in training.relabellings.values())
    test, validation = evaluate_if_due(run, timing)
    record = _record(run, chosen, training, admission, enough, test, validation, confusion)
    return RoundResult(record, timing, {client: each.ledger for client, each in training.relabellings.items()})


def choose(run: Run, round: int) -> list[int]:
    """Return the ascending ids of the clients of a round."""
    chosen: list[int] = run.plan.train.chosen(run.plan.seed, round, run.clients).tolist()
    return chosen


def relabel_and_train(run: Run, round: int, chosen: list[int], failed: Failures, deadline: float) -> Training:
    """Have the chosen clients re-label where that is due, and train; the largest begin first."""
    uploads = run.memory.make("uploads", run.arrays.upload_row(run.stores_client_state), len(chosen))
    broadcast = run.write_broadcast()
    sizes = _sizes(run, chosen)
    empty = {client: Failure(FailureKind.NO_SAMPLES) for client, size in sizes.items() if not size}
    training = Training(failed={**failed, **empty})
    relabel, rounds, relabelled = run.plan.relabel, run.plan.train.rounds, run.state.relabelled
    tasks = [
        run.task("train", round, client, broadcast, uploads, row,
                 relabel=relabel.due(round, rounds, relabelled.get(client)))
        for row, client in enumerate(chosen)
        if client not in training.failed
    ]  # fmt: skip
    tasks.sort(key=lambda task: (-sizes[task.client], task.client))
    for result in run.executor.run(tasks, deadline=deadline or None):
        task, value = tasks[result.position], result.value
        if not isinstance(value, ClientResult):
            training.failed[task.client] = result.failure or Failure(FailureKind.ERROR, "no result")
            continue
        row = uploads.row(task.row)
        sent = Upload(task.client, round, value.samples, {name: row[name] for name in run.arrays.upload})
        training.uploads.append(value.upload or sent)
        training.rows[task.client] = task.row
        if value.relabelling is not None:
            training.relabellings[task.client] = value.relabelling
    return training


def admit_uploads(run: Run, round: int, chosen: list[int], training: Training) -> Admission:
    """Check every upload, and leave out those that cannot be averaged."""
    return admit(
        training.uploads,
        round=round,
        expected=_sizes(run, chosen),
        specs=run.arrays.upload,
        reference=run.state.weights,
        norm_limit=run.plan.train.norm_limit,
    )


def keep_results(run: Run, round: int, training: Training, admission: Admission) -> None:
    """Keep the new labels and states of the admitted clients, and drop those of the others."""
    state = run.state
    state.skipped = 0
    admitted = [upload.client for upload in admission.admitted]
    for client in admitted if run.stores_client_state else ():
        row = run.memory["uploads"].row(training.rows[client])
        for name, array in run.memory["client_state"].row(client).items():
            array[...] = row[f"{STATE}{name}"]
        state.has_state[client] = True
    training.relabellings = {c: training.relabellings[c] for c in admitted if c in training.relabellings}
    for client, done in training.relabellings.items():
        run.current_labels[run.problem.shards[client].train] = done.ledger.labels
        state.relabelled[client], state.moved[client] = round, len(done.ledger)
        state.relabel_metrics[client] = {
            "round": round,
            "samples": int(done.ledger.original.size),
            "threshold": [float(t) if np.isfinite(t) else None for t in done.threshold],
            "expected": done.expected.tolist(),
            "histogram": done.histogram.tolist(),
        }


def evaluate_if_due(run: Run, timing: Timing) -> tuple[Scores | None, Scores | None]:
    """Score test and validation set in a round that has an evaluation."""
    train, round = run.plan.train, run.state.round
    if round % train.evaluate_every and round != train.rounds:
        return None, None
    start = time.perf_counter()
    scores = evaluate(run), evaluate(run, "validation")
    timing.evaluate_seconds += time.perf_counter() - start
    return scores


def _confusion_before_relabelling(run: Run, round: int, timing: Timing) -> list[list[int]] | None:
    """Return the confusion matrix of the model that clients re-label with, in the first round of re-labelling."""
    if round != run.plan.relabel.schedule.first(run.plan.train.rounds):
        return None
    start = time.perf_counter()
    scores = evaluate(run)
    timing.evaluate_seconds += time.perf_counter() - start
    return None if scores is None else scores.as_record()["confusion"]


def _note_failures(folder: RunFolder | None, round: int, failed: Failures, missing: Failures) -> None:
    """Note failures that a resumed run might not meet again, before anything depends on them."""
    new = {client: each for client, each in failed.items() if client not in missing and each.kind.is_transient}
    if folder is not None and new:
        folder.note_exclusions(round, new)


def _raise_if_run_failed(run: Run, round: int, training: Training, admission: Admission) -> None:
    """Stop where no client can train at all, or where too few could too often; the round can be tried again then."""
    train, skipped = run.plan.train, run.state.skipped + 1
    example = "".join(f"; client {client}: {reason}" for client, reason in _excluded(training, admission)[:1])
    some_tried = any(failure.kind != FailureKind.NOT_CONNECTED for failure in training.failed.values())
    if some_tried and not training.uploads and round == 1 and train.deadline == 0:
        raise RunFailedError(f"round 1: no client could train{example}")
    if skipped >= train.give_up:
        few = f"fewer than {train.min_clients} clients for {skipped} rounds in a row"
        raise TooFewClientsError(f"round {round}: {few}{example}; see excluded in rounds.jsonl, then resume")


def _sizes(run: Run, clients: list[int]) -> dict[int, int]:
    return {client: len(run.problem.shards[client].train) for client in clients}


def _excluded(training: Training, admission: Admission) -> list[tuple[int | None, str]]:
    """Return who is left out and why; unknown senders come first."""
    failed = [(client, str(failure)) for client, failure in training.failed.items()]
    excluded: list[tuple[int | None, str]] = [*failed, *admission.excluded]
    return sorted(excluded, key=lambda each: (-1 if each[0] is None else each[0], each[1]))


def _record(
    run: Run,
    chosen: list[int],
    training: Training,
    admission: Admission,
    enough: bool,
    test: Scores | None,
    validation: Scores | None,
    confusion: list[list[int]] | None,
) -> RoundRecord:
    admitted = admission.admitted if enough else ()
    relabelled = sorted((client, len(each.ledger)) for client, each in training.relabellings.items())
    return RoundRecord(
        round=run.state.round,
        accuracy=None if test is None else accuracy_record(test),
        loss=None if test is None or not np.isfinite(test.loss) else test.loss,
        chosen=chosen,
        admitted=[upload.client for upload in admitted],
        excluded=_excluded(training, admission),
        moved=None if run.executor.remote_clients else sum(number for _, number in relabelled),
        skipped=not enough,
        norm_median=admission.norm_median,
        norm_max=admission.norm_max,
        samples=[upload.samples for upload in admitted],
        relabelled=relabelled,
        validation=None if validation is None else accuracy_record(validation),
        confusion=confusion,
    )
