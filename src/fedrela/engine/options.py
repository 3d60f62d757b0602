"""What a run does, declared once: local training and rounds, and the re-labelling of clients.

Configurations take these options, with their help and limits, as the tables ``[train]`` and ``[relabel]``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import ArgumentError
from fedrela.options import Options, option
from fedrela.streams import stream
from fedrela.text import shown

MOST_ROUNDS = 1_000_000
MOST_CLIENTS = 1_000_000
MOST_SAMPLES = 10**9  # far beyond any data set; larger numbers are slips that would end in a lack of memory
SCHEDULES = {"constant": (), "step": ("milestones", "gamma"), "cosine": ("lr_end",)}  # with the options of each

_round = round  # methods below have a parameter of this name


def _losses() -> Iterable[str]:
    from fedrela.losses import LOSSES

    return LOSSES


def check_milestones(value: Any) -> tuple[int | float, ...]:
    """Return different rounds, or shares of the rounds, as a tuple."""
    if not isinstance(value, list | tuple):
        raise ArgumentError(f"expected a list of rounds, or of shares of them, got {shown(value)}")
    for i, moment in enumerate(value):
        whole, share = type(moment) is int, type(moment) is float
        if not (whole and 1 <= moment <= MOST_ROUNDS) and not (share and 0 < moment < 1):
            what = "expected a round from 1, or a share of the rounds above 0 and below 1"
            raise ArgumentError(f"{what}, got {shown(moment)}", item=(i,))
    if len(set(value)) < len(value):
        raise ArgumentError("expected different milestones, got one twice")
    return tuple(value)


def check_norm_limit(value: Any) -> float:
    """Return 0 or a finite number from 1 on."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and (value == 0 or 1 <= value < math.inf):
        return float(value)
    reason = "since half of all updates are above the median"
    raise ArgumentError(f"expected 0 (off) or a number >= 1, {reason}, got {shown(value)}")


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Options):
    """Rounds, who takes part, local training, and what is demanded of a round."""

    rounds: int = option(60, "communication rounds", symbol="R", ge=1, le=MOST_ROUNDS)
    participation: float = option(1.0, "share of the clients in a round; at least one takes part", gt=0, le=1)
    epochs: int = option(2, "passes of a client over its samples in a round", symbol="E", ge=1, le=100_000)
    batch_size: int = option(16, "samples per step", symbol="B", ge=1, le=MOST_SAMPLES)
    lr: float = option(0.05, "learning rate of SGD at a client", symbol="eta", gt=0)
    momentum: float = option(0.9, "of SGD; it starts from zero in every round", ge=0, lt=1)
    weight_decay: float = option(1e-5, "of SGD", ge=0)
    loss: str = option("cross_entropy", "what clients minimise, where the algorithm leaves it open", choices=_losses)
    schedule: str = option("constant", "the learning rate over the rounds", choices=tuple(SCHEDULES))
    milestones: tuple[int | float, ...] = option(
        (0.5, 0.75),
        "step: shares of the rounds, or rounds, from which the rate is lower",
        check=check_milestones,
        form="a list of rounds from 1, or of shares of the rounds above 0 and below 1",
    )
    gamma: float = option(0.1, "step: factor of the rate at a milestone", gt=0, le=1)
    lr_end: float = option(0.0, "cosine: what is left of the rate in the last round", ge=0, le=1)
    clip: float = option(0.0, "largest norm of a gradient; 0: any", ge=0)
    augment: bool = option(False, "images are cropped and flipped at random")
    evaluate_every: int = option(
        1, "rounds between two evaluations; the last round always has one", ge=1, le=MOST_ROUNDS
    )
    local_test: bool = option(False, "each client's own model is scored on the test set as well")
    min_clients: int = option(1, "a round with fewer usable updates is skipped", ge=1, le=MOST_CLIENTS)
    deadline: float = option(0.0, "seconds that a round waits for its clients; 0: any time", ge=0)
    norm_limit: float = option(
        50.0,
        "an update so many times the round's median norm is refused; 0: none is",
        check=check_norm_limit,
        form="0 or a number >= 1",
    )
    give_up: int = option(5, "skipped rounds in a row after which a run stops", ge=1, le=MOST_ROUNDS)

    def __post_init__(self) -> None:
        super().__post_init__()
        for i, moment in enumerate(self.milestones):
            if moment > self.rounds:
                what = f"expected a round up to the last one, {self.rounds}, got {shown(moment)}"
                raise ArgumentError(what, argument="milestones", item=(i,))

    def unused(self) -> dict[str, str]:
        """Return the options of other learning-rate schedules."""
        others = {name for names in SCHEDULES.values() for name in names} - set(SCHEDULES[self.schedule])
        return dict.fromkeys(sorted(others), f"schedule {self.schedule!r} does not use it")

    def factor(self, round: int) -> float:
        """Return the factor of the learning rate in a round.

        ``"step"`` multiplies by `gamma` from each milestone on (a share of the rounds below 1, else a round);
        ``"cosine"`` goes from 1 in the first round down to `lr_end` in the last.

        >>> train = TrainOptions(rounds=100, schedule="step")
        >>> [round(train.factor(r), 4) for r in (1, 50, 51, 76)]
        [1.0, 1.0, 0.1, 0.01]
        """
        if self.schedule == "step":
            passed = sum(round > (share * self.rounds if share < 1 else share - 1) for share in self.milestones)
            return self.gamma**passed
        if self.schedule == "cosine":
            done = (round - 1) / max(self.rounds - 1, 1)
            return self.lr_end + (1 - self.lr_end) * (1 + math.cos(math.pi * done)) / 2
        return 1.0

    def clients_per_round(self, clients: int) -> int:
        """Return how many of the clients take part in a round."""
        return min(clients, max(1, _round(self.participation * clients)))

    def chosen(self, seed: int, round: int, clients: int) -> NDArray[np.int64]:
        """Return the ascending ids of the clients of a round, drawn without replacement."""
        number = self.clients_per_round(clients)
        if number == clients:
            return np.arange(clients)
        return np.sort(stream(seed, "participation", round).choice(clients, number, replace=False))
