"""Figures for people: how a run stands, and what several seeds of several arms say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrela.records import RoundRecord

if TYPE_CHECKING:
    from fedrela.experiment.result import Result


class Loss(NamedTuple):
    """A client's turn that did not count."""

    round: int
    client: int | None  # not known of an upload that does not say who sent it
    reason: str


@dataclass
class Standing:
    """How a run stands after the rounds that were added.

    Attributes
    ----------
    rounds, round
        How many there will be, and the last one that is done.
    accuracy
        Of the last round that was scored.
    relabelled
        How many labels of each client that re-labelled are other ones now.
    lost, turns_lost, last_loss
        Clients of whom some turn did not count, the number of such turns, and the last one.
    skipped
        Rounds that had too few clients.
    """

    rounds: int
    round: int = 0
    accuracy: Mapping[str, Any] | None = None
    relabelled: dict[int, int] = field(default_factory=dict)
    lost: set[int | None] = field(default_factory=set)
    turns_lost: int = 0
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
        self.relabelled.update((client, number) for client, number in record.relabelled)
        for client, reason in record.excluded:
            self.lost.add(client)
            self.turns_lost += 1
            self.last_loss = Loss(record.round, client, reason)
        self.skipped += record.skipped

    @property
    def moved(self) -> int:
        """Labels that are other ones now, over all clients."""
        return sum(self.relabelled.values())


@dataclass(frozen=True, eq=False)
class Spread:
    """One figure over seeds: its mean, and its standard deviation where there are two seeds or more."""

    mean: float
    deviation: float | None

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Spread:
        """Return mean and sample standard deviation.

        >>> Spread.of(np.array([1.0, 2.0, 3.0]))
        Spread(mean=2.0, deviation=1.0)
        """
        return cls(float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else None)


@dataclass(frozen=True, eq=False)
class Comparison:
    """What arms reached over the same seeds: `results` has the arms of each seed by name."""

    results: Sequence[Mapping[str, Result]]

    def spread(self, arm: str, figure: str) -> Spread:
        """Return a figure of an arm over seeds: ``overall``, ``balanced``, ``moved`` or a group of classes."""
        return Spread.of(self._values(arm, figure))

    def difference(self, arm: str, other: str, figure: str) -> Spread:
        """Return by how much a figure of one arm exceeds another's, seed by seed."""
        return Spread.of(self._values(arm, figure) - self._values(other, figure))

    def _values(self, arm: str, figure: str) -> NDArray[np.float64]:
        return np.array([_figure(result[arm], figure) for result in self.results], np.float64)


def _figure(result: Result, figure: str) -> float:
    if figure == "moved":
        return result.moved
    value = result.accuracy[figure] if figure in ("overall", "balanced") else result.groups[figure]
    return np.nan if value is None else value
