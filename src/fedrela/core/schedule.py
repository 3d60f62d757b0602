"""When a client re-labels: once at round T, or every P rounds from T on; later if it was not sampled then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.options import Options, option
from fedrela.records import first_round


def _check_start(value: Any) -> int | float:
    if (type(value) is int and value >= 1) or (type(value) is float and 0 < value <= 1):
        return value
    raise ArgumentError(f"expected a round >= 1 or a share of the rounds in (0, 1], got {value!r}")


@dataclass(frozen=True)
class Schedule(Options):
    """The rounds in which re-labelling is due. Rounds are counted from 1.

    Parameters
    ----------
    start
        An integer is the round T itself; a float in (0, 1] is a share of all rounds, T = max(1, round(start * R)).
    period
        0 for one shot; P > 0 re-labels at T, T + P, T + 2P and so on, each time from the original labels.
    late
        Whether a client that was not sampled when re-labelling was due re-labels when it is next sampled. False is
        the official behaviour: it does not re-label before the next due round, if there is one.

    Examples
    --------
    >>> plan = Schedule(start=0.8)
    >>> plan.first(60)
    48
    >>> [plan.due(r, 60) for r in (47, 48, 50)], plan.due(50, 60, last=48)
    ([False, True, True], False)
    """

    start: int | float = option(
        0.8,
        "first round of re-labelling: a share of all rounds (0.8), or a round (48)",
        symbol="T",
        check=_check_start,
        form="a round from 1, or a share of the rounds above 0 and up to 1",
    )
    period: int = option(
        0,
        "rounds until the next re-labelling; 0: one shot",
        symbol="P",
        ge=0,
        form="0 (one shot) or a number of rounds",
    )
    late: bool = option(True, "a client not chosen when re-labelling was due does it when next chosen")

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
