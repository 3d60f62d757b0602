"""When a client re-labels: once at round T, or every P rounds from T on; and when clients not sampled then do."""

from __future__ import annotations

from dataclasses import dataclass

from fedrela.errors import ArgumentError
from fedrela.records import first_round


@dataclass(frozen=True)
class Schedule:
    """The rounds in which re-labelling is due. Rounds are counted from 1.

    Parameters
    ----------
    start
        An integer is the round T itself; a float in (0, 1] is a share of all rounds, T = max(1, round(start * R)).
    period
        0 for one shot; P > 0 re-labels at T, T + P, T + 2P and so on, each time from the original labels.
    late
        Whether a client that was not sampled when re-labelling was due does so the next time it is. False is
        the official behaviour: it never re-labels, or not before the next due round.

    Examples
    --------
    >>> plan = Schedule(start=0.8)
    >>> plan.first(60)
    48
    >>> [plan.due(r, 60) for r in (47, 48, 50)], plan.due(50, 60, last=48)
    ([False, True, True], False)
    """

    start: int | float = 0.8
    period: int = 0
    late: bool = True

    def __post_init__(self) -> None:
        is_round, is_share = type(self.start) is int, type(self.start) is float
        if not (is_round and self.start >= 1) and not (is_share and 0 < self.start <= 1):
            what = f"expected a round >= 1 or a share of the rounds in (0, 1], got {self.start!r}"
            raise ArgumentError(what, argument="start")
        if type(self.period) is not int or self.period < 0:
            raise ArgumentError(f"expected 0 (one shot) or a number of rounds, got {self.period!r}", argument="period")

    def first(self, rounds: int) -> int:
        """T, the first round in which re-labelling is due in a run of `rounds` rounds."""
        return first_round(self.start, rounds)

    def latest(self, round: int, rounds: int) -> int | None:
        """Return the last due round up to and including `round`, or None before T."""
        first = self.first(rounds)
        if round < first:
            return None
        return first if self.period == 0 else round - (round - first) % self.period

    def due(self, round: int, rounds: int, last: int | None = None) -> bool:
        """Whether a client that takes part in `round` of `rounds`, and re-labelled last in `last`, re-labels then."""
        latest = self.latest(round, rounds)
        if latest is None or (last is not None and last >= latest):
            return False
        return self.late or round == latest
