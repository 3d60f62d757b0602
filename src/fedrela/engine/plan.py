"""What a run does: rounds, local training and re-labelling, as plain values. The engine knows no configuration file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms.local import Local
from fedrela.core import Schedule
from fedrela.streams import stream


@dataclass(frozen=True)
class TrainPlan:
    """Rounds and local training.

    Attributes
    ----------
    rounds, participation
        Number of rounds, and the share of clients in each.
    epochs, batch_size, lr, momentum, weight_decay, clip, loss, augment
        How a client trains.
    schedule, milestones, gamma, lr_end
        How the learning rate changes over the rounds, see `factor`.
    evaluate_every, local_test
        After how many rounds the model is scored (after the last one always), and whether clients score it as well.
    min_clients, deadline, norm_limit, give_up
        Clients without which a round is skipped; seconds that a round waits for its clients (0: any time); how many
        times the median a client's change may be (0: any); and after how many skipped rounds in a row the run stops.
    """

    rounds: int = 60
    participation: float = 1.0
    epochs: int = 2
    batch_size: int = 16
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 1e-5
    clip: float = 0.0
    loss: str = "cross_entropy"
    augment: bool = False
    schedule: str = "constant"
    milestones: tuple[float, ...] = (0.5, 0.75)
    gamma: float = 0.1
    lr_end: float = 0.0
    evaluate_every: int = 1
    local_test: bool = False
    min_clients: int = 1
    deadline: float = 0.0
    norm_limit: float = 50.0
    give_up: int = 5

    def factor(self, round: int) -> float:
        """Return by what the learning rate is multiplied in a round.

        ``"step"`` multiplies by `gamma` from each milestone on (a share of the rounds below 1, else a round);
        ``"cosine"`` goes from 1 in the first round down to `lr_end` in the last.

        >>> plan = TrainPlan(rounds=100, schedule="step")
        >>> [round(plan.factor(r), 4) for r in (1, 50, 51, 76)]
        [1.0, 1.0, 0.1, 0.01]
        """
        if self.schedule == "step":
            passed = sum(round > (share * self.rounds if share < 1 else share - 1) for share in self.milestones)
            return self.gamma**passed
        if self.schedule == "cosine":
            done = (round - 1) / max(self.rounds - 1, 1)
            return self.lr_end + (1 - self.lr_end) * (1 + math.cos(math.pi * done)) / 2
        return 1.0

    def local(self, round: int, scale: float) -> Local:
        """Return how clients train in a round in which the learning rate is scaled as well."""
        return Local(
            lr=self.lr * self.factor(round) * scale,
            epochs=self.epochs,
            batch_size=self.batch_size,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            clip=self.clip,
            loss=self.loss,
        )

    def chosen(self, seed: int, round: int, clients: int) -> NDArray[np.int64]:
        """Return the ascending ids of the clients of a round, drawn without replacement."""
        number = max(1, builtin_round(self.participation * clients))
        if number >= clients:
            return np.arange(clients)
        return np.sort(stream(seed, "participation", round).choice(clients, number, replace=False))


builtin_round = round  # rounds are called so here


@dataclass(frozen=True)
class RelabelPlan:
    """When and how clients re-label.

    Attributes
    ----------
    enabled
        Whether they do at all; `lr_scale` acts either way.
    schedule
        In which rounds.
    tau, taus
        Share that may pass a threshold, and other values for some clients.
    options
        Further options of `fedrela.relabel`: preset, spread, threshold, target, normalize, max_fraction.
    forbidden
        Pairs of classes (from, to) that may not move.
    lr_scale
        Factor of the learning rate from the first due round on.
    moves
        ``"fedrela"``, or ``"random"``: as many moves from class to class, of random samples, as a control.
    collected, passes, augment, train_mode
        Where posteriors come from: the logits of the last training epoch, or the mean over passes, which may see
        augmented samples and run in training mode.
    min_agreement
        A client whose labels the model confirms less often than this re-labels nothing.
    """

    enabled: bool = True
    schedule: Schedule = field(default_factory=Schedule)
    tau: float = 0.05
    taus: Mapping[int, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    forbidden: tuple[tuple[int, int], ...] = ()
    lr_scale: float = 1.0
    moves: str = "fedrela"
    collected: bool = False
    passes: int = 1
    augment: bool = False
    train_mode: bool = False
    min_agreement: float = 0.0

    def due(self, round: int, rounds: int, last: int | None) -> bool:
        """Whether a client that re-labelled in round `last` does so at its turn in `round`."""
        return self.enabled and self.schedule.due(round, rounds, last)

    def scale(self, round: int, rounds: int) -> float:
        """Return the factor of the learning rate in a round."""
        return self.lr_scale if round >= self.schedule.first(rounds) else 1.0

    def collects(self, round: int, rounds: int) -> bool:
        """Whether training in this round must leave its logits for a later re-labelling."""
        last = rounds if self.schedule.period else self.schedule.first(rounds)
        return self.enabled and self.collected and round < last
