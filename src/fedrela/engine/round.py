"""One round, in the order choose, exchange, re-label, train, admit, aggregate, evaluate.

A client's work counts as a whole or not at all: its labels, its state and its upload are accepted together when its
upload is admitted, and dropped together otherwise.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fedrela.core import Ledger
from fedrela.engine.admission import Admission, admit
from fedrela.engine.dispatch import Collected, collect, make_tasks
from fedrela.engine.evaluation import accuracy_record, evaluate
from fedrela.engine.problem import STATE
from fedrela.engine.run import Run
from fedrela.engine.server import aggregate, hold_exchanges
from fedrela.errors import RunFailedError, TooFewClientsError
from fedrela.metrics import Scores
from fedrela.records import Failure, FailureKind, RoundRecord
from fedrela.runfolder import RunFolder

Failures = Mapping[int, Failure]


@dataclass
class Timing:
    """What a round cost in seconds; never compared, so kept apart from the record."""

    round: int
    train_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    relabel_seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class RoundResult:
    """A round: its record, what it cost, and the ledgers of the clients that re-labelled in it."""

    record: RoundRecord
    timing: Timing
    ledgers: dict[int, Ledger]


def next_round(run: Run, folder: RunFolder | None = None, missing: Failures | None = None) -> RoundResult:
    """Carry out the next round.

    Transient failures are recorded in `folder` before anything depends on them. Clients of `missing` failed in this
    round before the run was interrupted, and are not asked again: the outcome is fixed, so the others have no deadline.
    """
    round, missing = run.state.round + 1, missing or {}
    deadline = 0.0 if missing else run.plan.train.deadline
    timing = Timing(round)
    confusion = _confusion_before_relabelling(run, round, timing)
    start = time.perf_counter()

    chosen: list[int] = run.plan.train.chosen(run.plan.seed, round, run.clients).tolist()
    failed = hold_exchanges(run, round, chosen, missing, deadline)
    collected = relabel_and_train(run, round, chosen, {**missing, **failed}, deadline)
    admission = admit(
        collected.uploads,
        round=round,
        expected={client: run.samples[client] for client in chosen},
        specs=run.arrays.upload,
        reference=run.state.weights,
        norm_limit=run.plan.train.norm_limit,
    )
    enough = len(admission.admitted) >= run.plan.train.min_clients
    if not enough:
        _raise_if_run_failed(run, round, collected, admission)
    _note_failures(folder, round, collected.failed, missing)
    if enough:
        aggregate(run, round, admission.admitted)
        keep_results(run, round, collected, admission)
    else:
        run.state.skipped += 1
        collected.relabellings = {}
    run.state.round = round

    timing.train_seconds = time.perf_counter() - start
    timing.relabel_seconds = sum(each.seconds for each in collected.relabellings.values())
    test, validation = evaluate_if_due(run, timing)
    record = _record(run, chosen, collected, admission, enough, test, validation, confusion)
    return RoundResult(record, timing, {client: each.ledger for client, each in collected.relabellings.items()})


def relabel_and_train(run: Run, round: int, chosen: list[int], failed: Failures, deadline: float) -> Collected:
    """Have the chosen clients re-label if due, and train; the largest start first."""
    output = run.memory.allocate("uploads", run.arrays.upload_row(run.stores_client_state), len(chosen))
    empty = {client: Failure(FailureKind.NO_SAMPLES) for client in chosen if run.samples[client] == 0}
    failed = {**failed, **empty}
    tasks = make_tasks(run, "train", round, [client for client in chosen if client not in failed], output)
    tasks.sort(key=lambda task: (-(run.samples[task.client] or 0), task.client))
    collected = collect(run, tasks, output, run.arrays.upload, deadline)
    collected.failed = failed | collected.failed
    return collected


def keep_results(run: Run, round: int, collected: Collected, admission: Admission) -> None:
    """Keep the new labels and states of the admitted clients, and discard those of the others."""
    state = run.state
    state.skipped = 0
    admitted = [upload.client for upload in admission.admitted]
    for client in admitted if run.stores_client_state else ():
        row = run.memory["uploads"].row(collected.rows[client])
        for name, array in run.memory["client_state"].row(client).items():
            array[...] = row[f"{STATE}{name}"]
        state.has_state[client] = True
    collected.relabellings = {c: collected.relabellings[c] for c in admitted if c in collected.relabellings}
    for client, done in collected.relabellings.items():
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
    with _timed(timing):
        return evaluate(run), evaluate(run, "validation")


def _confusion_before_relabelling(run: Run, round: int, timing: Timing) -> list[list[int]] | None:
    """Return the confusion matrix of the model that clients re-label with, in the first round of re-labelling."""
    if round != run.plan.relabel.schedule.first(run.plan.train.rounds):
        return None
    with _timed(timing):
        scores = evaluate(run)
    return None if scores is None else scores.as_record()["confusion"]


@contextlib.contextmanager
def _timed(timing: Timing) -> Iterator[None]:
    start = time.perf_counter()
    yield
    timing.evaluate_seconds += time.perf_counter() - start


def _note_failures(folder: RunFolder | None, round: int, failed: Failures, missing: Failures) -> None:
    """Record failures that a resumed run might not repeat, before anything depends on them."""
    new = {client: each for client, each in failed.items() if client not in missing and each.kind.is_transient}
    if folder is not None and new:
        folder.note_exclusions(round, new)


def _raise_if_run_failed(run: Run, round: int, collected: Collected, admission: Admission) -> None:
    """Stop if no client can train at all, or if too few could too often; the round can then be retried."""
    train, skipped = run.plan.train, run.state.skipped + 1
    example = "".join(f"; client {client}: {reason}" for client, reason in _excluded(collected, admission)[:1])
    some_tried = any(failure.kind != FailureKind.NOT_CONNECTED for failure in collected.failed.values())
    if some_tried and not collected.uploads and round == 1 and train.deadline == 0:
        raise RunFailedError(f"round 1: no client could train{example}")
    if skipped >= train.give_up:
        few = f"fewer than {train.min_clients} clients for {skipped} rounds in a row"
        raise TooFewClientsError(f"round {round}: {few}{example}; see excluded in rounds.jsonl, then resume")


def _excluded(collected: Collected, admission: Admission) -> list[tuple[int | None, str]]:
    """Return who is left out and why; unknown senders come first."""
    failed = [(client, str(failure)) for client, failure in collected.failed.items()]
    excluded: list[tuple[int | None, str]] = [*failed, *admission.excluded]
    return sorted(excluded, key=lambda each: (-1 if each[0] is None else each[0], each[1]))


def _record(
    run: Run, chosen: list[int], collected: Collected, admission: Admission, enough: bool,
    test: Scores | None, validation: Scores | None, confusion: list[list[int]] | None,
) -> RoundRecord:  # fmt: skip
    admitted, norms = admission.admitted if enough else (), admission.norms.values()
    relabelled = sorted((client, len(each.ledger)) for client, each in collected.relabellings.items())
    return RoundRecord(
        round=run.state.round,
        accuracy=None if test is None else accuracy_record(test),
        loss=None if test is None or not np.isfinite(test.loss) else test.loss,
        chosen=chosen,
        admitted=[upload.client for upload in admitted],
        excluded=_excluded(collected, admission),
        moved=None if run.executor.remote_clients else sum(number for _, number in relabelled),
        skipped=not enough,
        norm_median=statistics.median(norms) if norms else None,
        norm_max=max(norms, default=None),
        samples=[upload.samples for upload in admitted],
        relabelled=relabelled,
        validation=None if validation is None else accuracy_record(validation),
        confusion=confusion,
    )
