"""One round, in the order choose, exchange, re-label, train, admit, aggregate, evaluate.

A client's work counts as a whole or not at all: its labels, its state and its upload are accepted together when its
upload is admitted, and dropped together otherwise.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from fedrela.algorithms.base import Exchange
from fedrela.algorithms.context import ServerContext
from fedrela.engine.admission import Admission, admit
from fedrela.engine.dispatch import Collected, collect, make_tasks
from fedrela.engine.evaluation import evaluate
from fedrela.engine.problem import STATE
from fedrela.engine.round_result import RoundResult, Timing, excluded_of, record_of
from fedrela.engine.run import Run
from fedrela.errors import RunFailedError, TooFewClientsError
from fedrela.metrics import Scores
from fedrela.models.runtime import one_thread, torch_stream
from fedrela.records import Failure, FailureKind, Upload
from fedrela.runfolder import RunFolder

Failures = Mapping[int, Failure]
Result = TypeVar("Result")
LARGEST = 1e12  # far beyond any useful weight; above it float32 sums overflow


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

    chosen = choose(run, round)
    failed = hold_exchanges(run, round, chosen, missing, deadline)
    # A client re-labels immediately before it trains, in its own process: see `ClientRunner`.
    collected = relabel_and_train(run, round, chosen, {**missing, **failed}, deadline)
    admission = admit_uploads(run, round, chosen, collected)
    enough = len(admission.admitted) >= run.plan.train.min_clients
    if not enough:
        _raise_if_run_failed(run, round, collected, admission)
    _note_failures(folder, round, collected.failed, missing)
    if enough:
        aggregate(run, round, admission.admitted)
        keep_results(run, round, collected, [upload.client for upload in admission.admitted])
    else:
        run.state.skipped += 1
        collected.relabellings = {}
    run.state.round = round

    timing.train_seconds = time.perf_counter() - start
    timing.relabel_seconds = sum(each.seconds for each in collected.relabellings.values())
    test, validation = evaluate_if_due(run, timing)
    record = record_of(run, chosen, collected, admission, enough, test, validation, confusion)
    return RoundResult(record, timing, {client: each.ledger for client, each in collected.relabellings.items()})


def choose(run: Run, round: int) -> list[int]:
    """Return the clients of a round."""
    chosen: list[int] = run.plan.train.chosen(run.plan.seed, round, run.clients).tolist()
    return chosen


def hold_exchanges(run: Run, round: int, chosen: list[int], missing: Failures, deadline: float) -> dict[int, Failure]:
    """Hold every exchange that precedes the training of this round, and return the clients that failed in one.

    They are left out of the rest of the round. Clients of `missing` that failed in an exchange are not asked again.
    """
    failed = {client: failure for client, failure in missing.items() if failure.exchange}
    for exchange in run.plan.algorithm.exchanges():
        is_late = exchange.every == 0 and run.state.skipped >= round - 1  # every round so far was skipped
        if exchange.due(round) or is_late:
            everybody = range(run.clients) if exchange.who == "all" else chosen
            asked = [client for client in everybody if client not in failed and run.samples[client] != 0]
            failed |= _hold(run, round, exchange, asked, deadline)
    return failed


def _hold(run: Run, round: int, exchange: Exchange, asked: list[int], deadline: float) -> dict[int, Failure]:
    algorithm, name = run.plan.algorithm, exchange.name
    specs = dict(algorithm.answers(name, run.arrays.sizes))
    answers = run.memory.allocate(f"exchange {name}", specs, len(asked))
    tasks = make_tasks(run, "ask", round, asked, answers, name)
    collected = collect(run, tasks, answers, specs, deadline)
    expected = {client: run.samples[client] for client in asked}
    admission = admit(collected.uploads, round=round, expected=expected, specs=specs, reference=None, norm_limit=0.0)
    if admission.admitted:
        _on_server(run, round, admission.admitted, name, partial(algorithm.absorb, name))
    refused = {client: failure for client, failure in admission.excluded if client is not None}
    return {client: replace(failure, exchange=name) for client, failure in (collected.failed | refused).items()}


def relabel_and_train(run: Run, round: int, chosen: list[int], failed: Failures, deadline: float) -> Collected:
    """Have the chosen clients re-label if due, and train; the largest start first.

    Both are one task, which `ClientRunner` carries out in a process of the executor, or at the remote client.
    """
    output = run.memory.allocate("uploads", run.arrays.upload_row(run.stores_client_state), len(chosen))
    empty = {client: Failure(FailureKind.NO_SAMPLES) for client in chosen if run.samples[client] == 0}
    failed = {**failed, **empty}
    tasks = make_tasks(run, "train", round, [client for client in chosen if client not in failed], output)
    tasks.sort(key=lambda task: (-(run.samples[task.client] or 0), task.client))
    collected = collect(run, tasks, output, run.arrays.upload, deadline)
    collected.failed = failed | collected.failed
    return collected


def admit_uploads(run: Run, round: int, chosen: list[int], collected: Collected) -> Admission:
    """Check what the clients sent after training."""
    return admit(
        collected.uploads,
        round=round,
        expected={client: run.samples[client] for client in chosen},
        specs=run.arrays.upload,
        reference=run.state.weights,
        norm_limit=run.plan.train.norm_limit,
    )


def aggregate(run: Run, round: int, uploads: Sequence[Upload]) -> None:
    """Take the server's step: new shared arrays, new server state."""
    where = f"{run.plan.algorithm.name}: round {round}"
    new = np.asarray(_on_server(run, round, uploads, "server", run.plan.algorithm.server))
    if new.shape != run.state.weights.shape:
        raise RunFailedError(
            f"{where}: expected {run.state.weights.size} shared values from the server, got shape {new.shape}"
        )
    with np.errstate(over="ignore"):
        weights = new.astype(run.arrays.layout.dtype)
    if not np.isfinite(weights).all() or np.abs(weights).max(initial=0) > LARGEST:
        raise RunFailedError(
            f"{where}: the server's arrays are no longer finite: training diverged; lower lr, or set clip"
        )
    run.state.weights = weights


def _on_server(
    run: Run, round: int, uploads: Sequence[Upload], name: str, work: Callable[[ServerContext], Result]
) -> Result:
    """Run server code on one thread, with its own random numbers.

    The state is copied, since arrays of the model or of uploads change later.
    """
    plan, runner, weights = run.plan, run.runner, run.state.weights.view()
    weights.flags.writeable = False
    runner.load(weights)
    context = ServerContext(
        seed=plan.seed,
        round=round,
        rounds=plan.train.rounds,
        clients=run.clients,
        uploads=uploads,
        weights=weights,
        trained=run.arrays.layout.trained,
        lr=plan.local(round).lr,
        state=dict(run.state.server),
        model=runner.model,
        auxiliary=_auxiliary(run),
    )
    with one_thread(), torch_stream(runner.device, plan.seed, name, round, own_code=runner.own_code):
        result = work(context)
    run.state.server = {name: np.array(array) for name, array in context.state.items()}
    return result


def _auxiliary(run: Run) -> tuple[Tensor, Tensor] | None:
    """Return the samples that the algorithm's server asks for, or None."""
    ids = run.problem.auxiliary
    if ids is None:
        return None
    runner, problem = run.runner, run.problem
    raw, y = (torch.from_numpy(array[ids]).to(runner.device) for array in (problem.x_train, problem.y_train))
    return problem.scaling.apply(raw, runner.model.vector.dtype), y


def keep_results(run: Run, round: int, collected: Collected, admitted: list[int]) -> None:
    """Keep the new labels and states of the admitted clients, and discard those of the others."""
    state = run.state
    state.skipped = 0
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
    """Stop if no client can train, or after too many rounds with too few clients; the round can then be retried."""
    train, skipped = run.plan.train, run.state.skipped + 1
    example = "".join(f"; client {client}: {reason}" for client, reason in excluded_of(collected, admission)[:1])
    some_tried = any(failure.kind != FailureKind.NOT_CONNECTED for failure in collected.failed.values())
    if some_tried and not collected.uploads and round == 1 and train.deadline == 0:
        raise RunFailedError(f"round 1: no client could train{example}")
    if skipped >= train.give_up:
        few = f"fewer than {train.min_clients} clients for {skipped} rounds in a row"
        raise TooFewClientsError(f"round {round}: {few}{example}; see excluded in rounds.jsonl, then resume")
