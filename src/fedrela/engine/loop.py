"""One round: choose, exchange, train, admit, aggregate, score.

A client's turn counts wholly or not at all: its labels, its kept state and its upload are taken together when it is
admitted, and none of them otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core import Ledger
from fedrela.engine import server
from fedrela.engine.admit import Verdict, admit
from fedrela.engine.areas import Area
from fedrela.engine.evaluate import evaluate
from fedrela.engine.exchange import PREFIX, hold_exchanges
from fedrela.engine.orders import Answer, Moves, Order
from fedrela.engine.run import Run
from fedrela.errors import BusyError, FedrelaError
from fedrela.metrics import Scores
from fedrela.records import RoundRecord, Upload
from fedrela.runfolder import RunFolder

Excluded = Mapping[int, str]
AWAY = "not connected"
UNREPEATABLE = ("deadline", "the worker died", AWAY, "no reply")  # what a second try might not meet again


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
class RoundDone:
    """A round: its record, what it cost, and the ledgers of the clients that re-labelled in it."""

    record: RoundRecord
    timing: Timing
    ledgers: dict[int, Ledger]


@dataclass
class Collected:
    """What clients brought back from training."""

    uploads: list[Upload] = field(default_factory=list)
    moves: dict[int, Moves] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)


def next_round(run: Run, folder: RunFolder | None = None, missing: Excluded | None = None) -> RoundDone:
    """Carry out the next round.

    Parameters
    ----------
    run
        Is one round further afterwards.
    folder
        Where exclusions that depend on time are noted before anything depends on them.
    missing
        Clients that were lost in this round before the run was interrupted, and are not asked again. The round is
        decided then: the others have any time.
    """
    round, train, missing = run.state.round + 1, run.plan.train, missing or {}
    deadline = 0.0 if missing else train.deadline
    timing = Timing(round)
    before = _confusion_before(run, round, timing)
    start = time.perf_counter()
    chosen = train.chosen(run.plan.seed, round, run.clients)
    lost = hold_exchanges(run, round, chosen.tolist(), missing, deadline)
    collected = _train(run, round, chosen, {**missing, **lost}, deadline)
    verdict = _admit(run, round, chosen, collected)
    enough = len(verdict.admitted) >= max(1, train.min_clients)
    if not enough:
        _check_hope(run, round, collected, verdict)
    lost = {c: reason for c, reason in collected.failed.items() if c not in missing and _unrepeatable(reason)}
    if folder is not None and lost:
        folder.note_exclusions(round, lost)
    if enough:
        server.step(run, round, verdict.admitted)
        _commit(run, round, verdict, collected)
    else:
        run.state.skipped += 1
        collected.moves = {}
    run.state.round = round
    timing.train_seconds = time.perf_counter() - start
    timing.relabel_seconds = sum(moves.seconds for moves in collected.moves.values())
    scores = _evaluate(run, timing)
    record = replace(_record(run, round, chosen, collected, verdict, enough, scores), confusion=before)
    return RoundDone(record, timing, {client: moves.ledger for client, moves in collected.moves.items()})


def _unrepeatable(reason: str) -> bool:
    said = reason.partition(": ")[2] if reason.startswith(PREFIX) else reason
    return said.startswith(UNREPEATABLE)


def _train(run: Run, round: int, chosen: NDArray[np.int64], missing: Excluded, deadline: float) -> Collected:
    """Have the chosen clients train, largest first, and gather what they bring."""
    fields = run.sent | {f"kept.{name}": field for name, field in run.kept.items()}
    down, up = run.lay_down(), run.area("up", fields, chosen.size)
    sizes = {client: len(run.problem.shards[client].train) for client in chosen.tolist()}
    collected = Collected(failed=dict(missing) | {client: "no samples" for client, n in sizes.items() if not n})
    orders = [
        run.order("train", round, client, down, up, row, relabel=_due(run, round, client))
        for row, client in enumerate(chosen.tolist())
        if client not in collected.failed
    ]
    orders.sort(key=lambda order: (-sizes[order.client], order.client))
    for done in run.work(orders, deadline):
        order, answer = orders[done.position], done.reply
        if not isinstance(answer, Answer):
            collected.failed[order.client] = (done.error or "no answer").removeprefix("NoStepError: ")
            continue
        collected.uploads.append(answer.upload or _upload(run, order, answer, up))
        collected.rows[order.client] = order.row
        if answer.moves is not None:
            collected.moves[order.client] = answer.moves
    return collected


def _upload(run: Run, order: Order, answer: Answer, up: Area) -> Upload:
    arrays = up.views(order.row)
    return Upload(order.client, order.round, answer.samples, {name: arrays[name] for name in run.sent})


def _due(run: Run, round: int, client: int) -> bool:
    return run.plan.relabel.due(round, run.plan.train.rounds, run.state.relabelled.get(client))


def _admit(run: Run, round: int, chosen: NDArray[np.int64], collected: Collected) -> Verdict:
    return admit(
        collected.uploads,
        round=round,
        expected={client: len(run.problem.shards[client].train) for client in chosen.tolist()},
        fields=run.sent,
        reference=run.state.weights,
        norm_limit=run.plan.train.norm_limit,
    )


def _commit(run: Run, round: int, verdict: Verdict, collected: Collected) -> None:
    """Keep what admitted clients changed: labels in force and states."""
    state = run.state
    state.skipped = 0
    for upload in verdict.admitted:
        client = upload.client
        if run.kept:
            row = run.areas["up"].views(collected.rows[client])
            for name, place in run.areas["kept"].views(client).items():
                place[...] = row[f"kept.{name}"]
            state.known[client] = True
        if client in collected.moves:
            _take_labels(run, round, client, collected.moves[client])
    admitted = {upload.client for upload in verdict.admitted}
    collected.moves = {client: moves for client, moves in collected.moves.items() if client in admitted}


def _take_labels(run: Run, round: int, client: int, moves: Moves) -> None:
    state = run.state
    run.labels[run.problem.shards[client].train] = moves.ledger.labels
    state.relabelled[client], state.moved[client] = round, len(moves.ledger)
    state.figures[client] = {
        "round": round,
        "samples": int(moves.ledger.original.size),
        "threshold": [float(t) if np.isfinite(t) else None for t in moves.threshold],
        "expected": moves.expected.tolist(),
        "histogram": moves.histogram.tolist(),
    }


def _check_hope(run: Run, round: int, collected: Collected, verdict: Verdict) -> None:
    """Stop where no client can train at all, or where too few could too often; the round can be tried again then."""
    train, skipped = run.plan.train, run.state.skipped + 1
    example = "".join(f"; client {client}: {reason}" for client, reason in _excluded(collected, verdict)[:1])
    some_failed = any(not reason.startswith(AWAY) for reason in collected.failed.values())
    if some_failed and not collected.uploads and round == 1 and train.deadline == 0:
        raise FedrelaError(f"round 1: no client could train{example}")
    if skipped >= train.give_up:
        few = f"fewer than {train.min_clients} clients for {skipped} rounds in a row"
        raise BusyError(f"round {round}: {few}{example}; see excluded in rounds.jsonl, then resume")


def _excluded(collected: Collected, verdict: Verdict) -> list[tuple[int | None, str]]:
    """Return who is left out and why; those without a name come first."""
    excluded = [*collected.failed.items(), *verdict.excluded]
    return sorted(excluded, key=lambda lost: (-1 if lost[0] is None else lost[0], lost[1]))


def _confusion_before(run: Run, round: int, timing: Timing) -> list[list[int]] | None:
    """Return the confusion of the model that clients judge their samples by, in the first round of re-labelling."""
    if round != run.plan.relabel.schedule.first(run.plan.train.rounds):
        return None
    start = time.perf_counter()
    scores = evaluate(run)
    timing.evaluate_seconds += time.perf_counter() - start
    return None if scores is None else scores.as_record()["confusion"]


def _evaluate(run: Run, timing: Timing) -> tuple[Scores | None, Scores | None]:
    """Score test and validation set, where this round is one to score."""
    train, round = run.plan.train, run.state.round
    if round % train.evaluate_every and round != train.rounds:
        return None, None
    start = time.perf_counter()
    scores = evaluate(run), evaluate(run, "validation")
    timing.evaluate_seconds += time.perf_counter() - start
    return scores


def _record(
    run: Run,
    round: int,
    chosen: NDArray[np.int64],
    collected: Collected,
    verdict: Verdict,
    enough: bool,
    scores: tuple[Scores | None, Scores | None],
) -> RoundRecord:
    test, validation = scores
    return RoundRecord(
        round=round,
        accuracy=None if test is None else accuracy_record(test),
        loss=None if test is None or not np.isfinite(test.loss) else test.loss,
        chosen=chosen.tolist(),
        admitted=[upload.client for upload in verdict.admitted] if enough else [],
        excluded=_excluded(collected, verdict),
        moved=None if run.executor.remote_clients else sum(len(moves.ledger) for moves in collected.moves.values()),
        skipped=not enough,
        norm_median=verdict.norm_median,
        norm_max=verdict.norm_max,
        samples=[upload.samples for upload in verdict.admitted] if enough else [],
        relabelled=sorted((client, len(moves.ledger)) for client, moves in collected.moves.items()),
        validation=None if validation is None else accuracy_record(validation),
    )


def accuracy_record(scores: Scores) -> dict[str, Any]:
    """Return the accuracies of a round as plain values."""
    record = scores.as_record()
    return {name: record[name] for name in ("overall", "balanced", "groups", "per_class", "macro_f1")}
