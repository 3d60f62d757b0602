"""Metrics for people: the state of a run in progress, what a finished run reached, and what many runs found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from fedrela.records import RoundRecord
from fedrela.runfolder.grids import GridFolder
from fedrela.runfolder.records import Record

if TYPE_CHECKING:
    from fedrela.experiment.result import Result

FORMAT = "fedrela-summary-1"


@dataclass(frozen=True)
class GridSummary:
    """What many runs found: the folder where they lie, and all of ``summary.json``."""

    kind: ClassVar[str]
    folder: Path
    record: Record

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what was found; where not all runs are finished it is a `DataError`."""
        there = GridFolder.open(folder)
        return cls(there.path, there.summary(cls.kind))


class Loss(NamedTuple):
    """An update of a client that was excluded."""

    round: int
    client: int | None  # not known of an upload that does not say who sent it
    reason: str


@dataclass
class Standing:
    """How a run of so many rounds stands after the rounds that were added."""

    rounds: int
    round: int = 0  # the last one that is done
    accuracy: Mapping[str, Any] | None = None
    told: bool = True  # whether clients tell how many labels they moved
    relabelled: dict[int, int] = field(default_factory=dict)  # client -> labels that it changed
    lost: set[int | None] = field(default_factory=set)  # clients with an excluded update
    turns_lost: int = 0  # the number of such updates
    last_loss: Loss | None = None
    skipped: int = 0

    @classmethod
    def after(cls, records: Iterable[Mapping[str, Any]], rounds: int) -> Standing:
        """Return how a run of so many rounds stands after the records of its folder."""
        standing = cls(rounds)
        for record in records:
            standing.add(RoundRecord.from_record(record))
        return standing

    def add(self, record: RoundRecord) -> None:
        """Take in the next round."""
        self.round = record.round
        self.accuracy = record.accuracy or self.accuracy
        self.told = record.moved is not None
        self.relabelled.update((client, number) for client, number in record.relabelled)
        for client, reason in record.excluded:
            self.lost.add(client)
            self.turns_lost += 1
            self.last_loss = Loss(record.round, client, reason)
        self.skipped += record.skipped

    @property
    def moved(self) -> int:
        """Labels that were changed, over all clients."""
        return sum(self.relabelled.values())


def metric_names(result: Result) -> list[str]:
    """Return the metrics that tables show: each group of classes, and last the accuracy that counts most."""
    return [*result.accuracy.get("groups", {}), str(result.record["headline"])]


def metrics_of(result: Result, score: str = "last") -> dict[str, float | None]:
    """Return what a run reached: its metrics as shares, None where a group has no test sample, and labels ``moved``.

    By `score` these are of the final model (``last``), or of the first round with the largest balanced accuracy on what
    clients hold back (``best-validation``) or with the largest accuracy on the test set itself (``best-test``).
    """
    accuracy = result.accuracy if score == "last" else _best(result, score)
    shares = {"overall": accuracy.get("overall"), "balanced": accuracy.get("balanced"), **accuracy.get("groups", {})}
    return {name: shares.get(name) for name in metric_names(result)} | {"moved": result.moved}


def _best(result: Result, score: str) -> Mapping[str, Any]:
    """Return the accuracies of the round that a score chooses; none where no round can be chosen."""
    place, metric = {"best-validation": ("validation", "balanced"), "best-test": ("accuracy", "overall")}[score]
    scored = [record for record in result.history() if record["accuracy"] and record[place]]
    best: dict[str, Mapping[str, Any]] = max(scored, key=lambda record: record[place][metric], default={"accuracy": {}})
    return best["accuracy"]
