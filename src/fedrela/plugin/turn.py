"""A client's turn: which labels are in force in this round, and making them where that is due."""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core import Ledger, Schedule, relabel
from fedrela.core.checks import check_choice
from fedrela.core.options import PRESETS
from fedrela.errors import ArgumentError
from fedrela.models.checks import whole
from fedrela.plugin.policy import Policy
from fedrela.plugin.store import LabelStore
from fedrela.streams import stream

Scored = tuple[NDArray[np.float64], NDArray[np.int64]]  # posterior and labels
UNLIMITED = 1_000_000  # passes that a federation asks for when it re-labels periodically and names no number


@dataclass(frozen=True)
class Plan:
    """What a federation asks of its clients.

    Attributes
    ----------
    schedule, rounds
        When; `rounds` counts where the schedule's start is a share of them.
    limits
        How much.
    preset, seed
        As of `fedrela.relabel`; draws are made from the stream of seed, round and client.
    """

    schedule: Schedule
    rounds: int
    limits: Policy
    preset: str
    seed: int


def plan(
    *,
    start: int | float = 0.8,
    rounds: int | None = None,
    period: int = 0,
    late: bool = True,
    tau: float = 0.05,
    preset: str = "paper",
    seed: int = 0,
    **limits: Any,
) -> Plan:
    """Return a checked plan; `limits` are further attributes of `Policy`."""
    if rounds is None and isinstance(start, float):
        raise ArgumentError(f"rounds: needed, since start = {start} is a share of them; or give start as a round")
    unknown = sorted(set(limits) - set(Policy.__dataclass_fields__))
    if unknown:
        known = ", ".join(Policy.__dataclass_fields__)
        raise ArgumentError(f"{unknown[0]}: there is no such option; the limits are {known}")
    schedule = Schedule(start=start, period=period, late=late)
    asked = Policy(**{"tau": tau, "passes": UNLIMITED if period else 1} | limits)
    number = 1 if rounds is None else whole("rounds", rounds)
    return Plan(schedule, number, asked, check_choice("preset", preset, tuple(PRESETS)), whole("seed", seed, 0))


def ledger_in_force(
    store: LabelStore, plan: Plan, own: Policy, round: int, score: Callable[[], Scored], log: logging.Logger
) -> tuple[Ledger | None, bool]:
    """Return the ledger of the labels in force in `round`, or None for the original ones; and whether it is new.

    Labels that were made are read, never made anew with another model. They are in force from the round on in which
    they were made, so that a server that goes back some rounds meets what it met then.

    Parameters
    ----------
    store
        What this client made before.
    plan, own
        What is asked for, and the client's own policy; the stricter wins.
    round
        From 1.
    score
        Gives the posterior of the model just received, and the original labels; called only when it is needed.
    log
        The client's own.
    """
    limits = plan.limits.stricter(own)
    if not limits.enabled or store.undone:
        return None, False
    made = store.passes()
    past = [ledger for ledger in made if ledger.options["round"] <= round]
    last = past[-1] if past else None
    turn = None if last is None else last.options["round"]
    if len(past) < len(made) or len(made) >= limits.passes or not plan.schedule.due(round, plan.rounds, turn):
        return last, False
    Q, y = score()
    kept = store.record(len(made) + 1, _relabelled(store, plan, limits, round, Q, y, log), round)
    store.check_data(kept, y)
    return kept, True


def _relabelled(
    store: LabelStore,
    plan: Plan,
    limits: Policy,
    round: int,
    Q: NDArray[np.float64],
    y: NDArray[np.int64],
    log: logging.Logger,
) -> Ledger:
    agreement = float((Q.argmax(axis=1) == y).mean())
    kept = agreement < limits.min_agreement
    done = relabel(
        Q,
        y,
        tau=limits.tau,
        preset=plan.preset,
        max_fraction=limits.max_fraction,
        allowed=limits.moves(Q.shape[1]),
        eligible=np.zeros(len(y), bool) if kept else None,
        seed=stream(plan.seed, "relabel", round, _number(store.client)),
    )
    where = f"FedReLa, round {round}, client {store.client}"
    log.info("%s: %d of %d labels changed; ledger in %s", where, done.moved.size, len(y), store.folder)
    for warning in _warnings(agreement, limits, done.share):
        log.warning("%s: %s", where, warning)
    if done.refusal is not None:
        log.warning("%s: nothing was re-labelled: %s", where, done.refusal)
    return done.ledger


def _warnings(agreement: float, limits: Policy, share: float) -> list[str]:
    said = []
    if agreement < limits.min_agreement:
        said.append(f"no label moves: the model confirms {agreement:.0%} of them, less than min_agreement")
    elif agreement < 0.5:
        said.append(f"the model confirms only {agreement:.0%} of the labels; it may be no judge of the others")
    if share > limits.max_fraction / 2:
        said.append(f"{share:.1%} of the labels changed, unusually many beside max_fraction = {limits.max_fraction:g}")
    if "opacus" in sys.modules:
        said.append(
            "sample-level differential privacy (Opacus) does not cover FedReLa: one sample can change the labels of "
            "others through class statistics and thresholds"
        )
    return said


def _number(client: str) -> int:
    """Return the number of a client's random stream: its own, where its name is one."""
    if client.isascii() and client.isdecimal() and len(client) < 19:
        return int(client)
    return int.from_bytes(hashlib.sha256(client.encode()).digest()[:8], "little")
