"""What is known of a round when it is done: its record, its cost, and the ledgers of its clients."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

from fedrela.core import Ledger
from fedrela.engine.admission import Admission
from fedrela.engine.dispatch import Collected
from fedrela.engine.evaluation import accuracy_record
from fedrela.engine.run import Run
from fedrela.metrics import Scores
from fedrela.records import RoundRecord


@dataclass
class Timing:
    """The seconds that a round took; never compared, so kept apart from the record."""

    round: int
    train_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    relabel_seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class RoundResult:
    """A round: its record, its timing, and the ledgers of the clients that re-labelled in it."""

    record: RoundRecord
    timing: Timing
    ledgers: dict[int, Ledger]


def excluded_of(collected: Collected, admission: Admission) -> list[tuple[int | None, str]]:
    """Return who is left out and why; unknown senders come first."""
    failures = [*collected.failed.items(), *admission.excluded]
    excluded = [(client, str(failure)) for client, failure in failures]
    return sorted(excluded, key=lambda each: (-1 if each[0] is None else each[0], each[1]))


def record_of(
    run: Run, chosen: list[int], collected: Collected, admission: Admission, enough: bool,
    test: Scores | None, validation: Scores | None, confusion: list[list[int]] | None,
) -> RoundRecord:  # fmt: skip
    """Return the record of the round just done."""
    admitted, norms = admission.admitted if enough else (), admission.norms.values()
    relabelled = sorted((client, len(each.ledger)) for client, each in collected.relabellings.items())
    return RoundRecord(
        round=run.state.round,
        accuracy=None if test is None else accuracy_record(test),
        loss=None if test is None or not np.isfinite(test.loss) else test.loss,
        chosen=chosen,
        admitted=[upload.client for upload in admitted],
        excluded=excluded_of(collected, admission),
        moved=None if run.executor.remote_clients else sum(number for _, number in relabelled),
        skipped=not enough,
        norm_median=statistics.median(norms) if norms else None,
        norm_max=max(norms, default=None),
        samples=[upload.samples for upload in admitted],
        relabelled=relabelled,
        validation=None if validation is None else accuracy_record(validation),
        confusion=confusion,
    )
