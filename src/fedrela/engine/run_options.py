"""What a run does, declared once: local training and rounds, and the re-labelling of clients.

Configurations take these options, with their help and limits, as the tables ``[train]`` and ``[relabel]``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_fraction
from fedrela.core import Schedule
from fedrela.core.limits import OwnerLimits, check_tau_of
from fedrela.core.reallocators import reallocator
from fedrela.core.relabel_options import RelabelOptions
from fedrela.errors import ArgumentError, WrongKeyError
from fedrela.options import MOST_CLIENTS, MOST_SAMPLES, Options, option, options_of, redeclared
from fedrela.streams import stream
from fedrela.text import shown

MOST_ROUNDS = 1_000_000
PRECISIONS = ("float32", "bfloat16", "float16")
SCHEDULES = {"constant": (), "step": ("milestones", "gamma"), "cosine": ("lr_end",)}  # with the options of each

PASSES = ("passes", "augment", "train_mode")  # how posteriors are computed where they are not collected
OTHERS = "default"  # the key of all clients that a table of tau does not name
_CLIENT = re.compile(r"0|[1-9][0-9]{0,17}")

_round = round  # methods below have a parameter of this name


def _losses() -> Iterable[str]:
    from fedrela.losses import LOSSES

    return LOSSES


def check_milestones(value: Any) -> tuple[int | float, ...]:
    """Return distinct rounds, or shares of the rounds, as a tuple."""
    if not isinstance(value, list | tuple):
        raise ArgumentError(f"expected a list of rounds, or of shares of them, got {shown(value)}")
    for i, milestone in enumerate(value):
        is_round, is_share = type(milestone) is int, type(milestone) is float
        if not (is_round and 1 <= milestone <= MOST_ROUNDS) and not (is_share and 0 < milestone < 1):
            what = "expected a round from 1, or a share of the rounds above 0 and below 1"
            raise ArgumentError(f"{what}, got {shown(milestone)}", item=(i,))
    if len(set(value)) < len(value):
        raise ArgumentError("expected distinct milestones, got one twice")
    return tuple(value)


def check_norm_limit(value: Any) -> float:
    """Return 0 or a finite number >= 1."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and (value == 0 or 1 <= value < math.inf):
        return float(value)
    reason = "half of all updates lie above the median"
    raise ArgumentError(f"expected 0 (off) or a number >= 1, got {shown(value)}: {reason}")


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Options):
    """Rounds, participation, local training, and what a round requires."""

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
    lr_end: float = option(0.0, "cosine: fraction of the rate in the last round", ge=0, le=1)
    clip: float = option(0.0, "largest norm of a gradient; 0: no limit", ge=0)
    precision: str = option(
        "float32", "precision of products in local training, if the device supports a lower one", choices=PRECISIONS
    )
    augment: bool = option(False, "images are cropped and flipped at random")
    evaluate_every: int = option(
        1, "rounds between evaluations; the last round is always evaluated", ge=1, le=MOST_ROUNDS
    )
    local_test: bool = option(False, "each client's own model is scored on the test set as well")
    min_clients: int = option(1, "a round with fewer usable updates is skipped", ge=1, le=MOST_CLIENTS)
    deadline: float = option(0.0, "seconds that a round waits for its clients; 0: no deadline", ge=0)
    norm_limit: float = option(
        50.0,
        "an update is refused above this multiple of the round's median norm; 0: no limit",
        check=check_norm_limit,
        form="0 or a number >= 1",
    )
    give_up: int = option(5, "skipped rounds in a row after which a run stops", ge=1, le=MOST_ROUNDS)

    def __post_init__(self) -> None:
        super().__post_init__()
        for i, milestone in enumerate(self.milestones):
            if milestone > self.rounds:
                what = f"expected a round up to the last one, {self.rounds}, got {shown(milestone)}"
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


def check_tau(value: Any) -> float | dict[str, float]:
    """Return a fraction, or a table client id -> fraction that also has a value for all other clients."""
    if not isinstance(value, Mapping):
        return check_fraction("tau", value, per_cent_hint=True)
    table = {OTHERS: float(RelabelOptions.tau)}
    for key, tau in value.items():
        if key != OTHERS and not _CLIENT.fullmatch(str(key)):
            what = f'expected a client id such as 0, or "{OTHERS}" for all others, got {shown(key)}'
            raise WrongKeyError(what, item=(str(key),))
        table[str(key)] = check_tau_of(str(key), tau)
    return dict(sorted(table.items(), key=lambda item: -1 if item[0] == OTHERS else int(item[0])))


@dataclass(frozen=True, kw_only=True)
class RelabelPlan(RelabelOptions):
    """When and how clients re-label, and where posteriors come from."""

    enabled: bool = option(True, "false: nothing is re-labelled, but lr_scale still applies")
    start: int | float = redeclared(Schedule, "start")
    period: int = redeclared(Schedule, "period", le=MOST_ROUNDS, form="")
    late: bool = redeclared(Schedule, "late")
    tau: float | Mapping[str, float] = redeclared(  # type: ignore[assignment]  # wider than RelabelOptions has it
        RelabelOptions,
        "tau",
        help="share of the samples whose score may pass the threshold of a class; or a table client id -> share",
        check=check_tau,
        form="a fraction from 0 to 1, or a table client id -> fraction",
    )
    max_fraction: float = redeclared(
        OwnerLimits, "max_fraction", help="largest share of its labels that a client may change"
    )
    min_agreement: float = redeclared(
        OwnerLimits, "min_agreement", help="a client whose labels the model confirms less often re-labels nothing"
    )
    lr_scale: float = option(1.0, "factor of the learning rate from the first round of re-labelling on", gt=0)
    moves: str = option(
        "fedrela",
        "random: as many moves from class to class, of random samples, as a control",
        choices=("fedrela", "random"),
    )
    collected: bool = option(False, "posteriors from the last epoch of training, instead of a separate pass")
    passes: int = option(1, "passes over which posteriors are averaged", ge=1, le=1000)
    augment: bool = option(False, "these passes see augmented samples")
    train_mode: bool = option(False, "these passes run in training mode")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_no_array()

    @property
    def schedule(self) -> Schedule:
        """The rounds in which clients re-label."""
        return Schedule(start=self.start, period=self.period, late=self.late)

    def unused(self) -> dict[str, str]:
        """Return the options of passes if no passes are made, and those that the method ignores."""
        unused = dict.fromkeys(reallocator(self.method).unused, f"method {self.method!r} does not use it")
        passes = PASSES if self.collected else ()
        return unused | dict.fromkeys(passes, "with collected = true there is no pass to set this for")

    def keywords(self, client: int) -> dict[str, Any]:
        """Return the options of `fedrela.relabel` for a client, whose tau may be its own."""
        options = {each.name: getattr(self, each.name) for each in options_of(RelabelOptions)}
        return options | {"tau": self.tau_of(client)}

    def tau_of(self, client: int | None = None) -> float:
        """Return the tau of a client, or for None that of clients without their own."""
        return self.tau.get(str(client), self.tau[OTHERS]) if isinstance(self.tau, Mapping) else self.tau

    def due(self, round: int, rounds: int, last: int | None) -> bool:
        """Whether a client that re-labelled in round `last` does so when it is chosen in `round`."""
        return self.enabled and self.schedule.due(round, rounds, last)

    def scale(self, round: int, rounds: int) -> float:
        """Return the factor of the learning rate in a round."""
        return self.lr_scale if round >= self.schedule.first(rounds) else 1.0

    def collects(self, round: int, rounds: int) -> bool:
        """Whether training in this round must leave its logits for a later re-labelling."""
        last = rounds if self.period else self.schedule.first(rounds)
        return self.enabled and self.collected and round < last
