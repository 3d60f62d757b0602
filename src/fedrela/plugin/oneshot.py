"""FedReLa in anyone's training loop: `OneShot`, and how a client makes and finds its labels in a round."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from logging import Logger, getLogger
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedrela.arguments import check_integer
from fedrela.core import Ledger, Schedule, relabel
from fedrela.core.options import RelabelOptions
from fedrela.errors import ArgumentError
from fedrela.plugin.dataset import LabelKey, RelabeledDataset, labels_of
from fedrela.plugin.policy import Policy, read_policy
from fedrela.plugin.scoring import Forward, posterior
from fedrela.plugin.store import POLICY, LabelStore
from fedrela.streams import stream
from fedrela.text import unknown

LOG = getLogger("fedrela")
Scored = tuple[NDArray[np.float64], NDArray[np.int64]]  # posterior and labels
UNLIMITED = 1_000_000  # passes of a periodic schedule, unless a number is given


class OneShot:
    """One client's training data, re-labelled once by the global model in the round that the schedule says.

    Parameters
    ----------
    data
        A map-style data set or tensors ``(X, y)``: training data, never what you evaluate on.
    experiment, client
        Names under which the labels are stored, so that a restarted client reads them and makes no others.
    rounds
        Number of rounds of the run; needed where `start` is a share of them.
    store
        Folder of labels and ledgers; None for one below the user's data folder.
    policy
        The owner's limits: a `Policy`, or its TOML file. None for ``policy.toml`` in `store`, if there is one.
    forward, label
        See `fedrela.plugin.posterior` and `RelabeledDataset`.
    options
        ``start`` (0.8: a share of the rounds; 48: a round), ``tau``, ``period``, ``late``, ``preset``, ``seed``, and
        the limits of `Policy`.

    Attributes
    ----------
    dataset : RelabeledDataset
        The data with the current labels; give this to your `DataLoader`.
    ledger : Ledger or None
        Every changed label.

    Examples
    --------
    ::

        once = OneShot(train_set, experiment="icu", client="ward-3", rounds=50)
        loader = DataLoader(once.dataset, batch_size=32, shuffle=True)
        for round in range(1, 51):
            model.load_state_dict(receive())
            once.before_round(round, model)
            train(model, loader)
    """

    def __init__(
        self,
        data: Any,
        *,
        experiment: str,
        client: str | int,
        rounds: int | None = None,
        store: str | Path | None = None,
        policy: Policy | str | Path | None = None,
        forward: Forward | None = None,
        label: LabelKey | None = None,
        **options: Any,
    ) -> None:
        self.plan = plan_passes(rounds=rounds, **options)
        self.store = LabelStore(store, experiment, str(client))
        self.policy = policy if isinstance(policy, Policy) else own_policy(policy, self.store.root)
        self.dataset = RelabeledDataset(data, label=label)
        self.ledger: Ledger | None = None
        self._data, self._forward, self._label = data, forward, label

    def before_round(self, round: int, model: nn.Module) -> Ledger | None:
        """Use the labels of `round`, from 1; `model` is the global model as it was received."""

        def score() -> Scored:
            return posterior(model, self._data, forward=self._forward, label=self._label)

        ledger, new = current_ledger(self.store, self.plan, self.policy, round, score, LOG)
        if ledger is not None and not new and self.ledger is None:
            self.store.check_data(ledger, labels_of(self._data, self._label))
        self.ledger = ledger
        self.dataset.use(ledger)
        return ledger

    def undo(self) -> NDArray[np.int64]:
        """Go back to the original labels for the rest of the experiment."""
        original = self.store.undo()
        self.ledger = None
        self.dataset.use(None)
        return original


def own_policy(path: str | Path | None, folder: Path) -> Policy:
    """Return the policy of a file, by default that in `folder`; without a file the default policy."""
    if path is None and not (folder / POLICY).exists():
        return Policy()
    return read_policy(folder / POLICY if path is None else path)


@dataclass(frozen=True)
class PassPlan:
    """When and how a federation asks its clients to re-label."""

    schedule: Schedule
    rounds: int  # of the run; they matter if the schedule's start is a share of them
    limits: Policy
    preset: str
    seed: int  # draws come from the stream of seed, round and client


def plan_passes(
    *,
    start: int | float = 0.8,
    rounds: int | None = None,
    period: int = 0,
    late: bool = True,
    tau: float = 0.05,
    preset: str = "paper",
    seed: int = 0,
    **limits: Any,
) -> PassPlan:
    """Return a checked plan; `limits` are further attributes of `Policy`."""
    if rounds is None and isinstance(start, float):
        raise ArgumentError(f"needed since start = {start} is a share of them; or give a round", argument="rounds")
    known = Policy.__dataclass_fields__
    for name in sorted(limits.keys() - known.keys()):
        raise ArgumentError(unknown("option", name, known, "a policy"), argument=name)
    schedule = Schedule(start=start, period=period, late=late)
    asked = Policy(**{"tau": tau, "passes": UNLIMITED if period else 1} | limits)
    number = 1 if rounds is None else check_integer("rounds", rounds)
    return PassPlan(schedule, number, asked, RelabelOptions(preset=preset).preset, check_integer("seed", seed, 0))


def current_ledger(
    store: LabelStore, plan: PassPlan, own: Policy, round: int, score: Callable[[], Scored], log: Logger
) -> tuple[Ledger | None, bool]:
    """Return the ledger of the current labels in `round`, or None for the original ones; and whether it is new.

    Stored labels are read, never made again with another model. They apply from the round in which they were made, so
    that a server that goes back some rounds meets the same labels again. Of what the plan asks for and the client's
    own policy, the stricter applies. `score` returns the posterior of the model just received and the original labels;
    it is called only if needed.
    """
    limits = plan.limits.stricter(own)
    if not limits.enabled or store.undone:
        return None, False
    made = store.passes()
    past = [ledger for ledger in made if ledger.options["round"] <= round]
    last = past[-1] if past else None
    last_round = None if last is None else last.options["round"]
    if len(past) < len(made) or len(made) >= limits.passes or not plan.schedule.due(round, plan.rounds, last_round):
        return last, False
    scored = score()
    ledger = store.record(len(made) + 1, _relabel(store, plan, limits, round, scored, log), round)
    store.check_data(ledger, scored[1])
    return ledger, True


def _relabel(store: LabelStore, plan: PassPlan, limits: Policy, round: int, scored: Scored, log: Logger) -> Ledger:
    Q, y = scored
    agreement = float((Q.argmax(axis=1) == y).mean())
    done = relabel(
        Q,
        y,
        tau=limits.tau,
        preset=plan.preset,
        max_fraction=limits.max_fraction,
        allowed=limits.moves(Q.shape[1]),
        eligible=np.zeros(len(y), bool) if agreement < limits.min_agreement else None,
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
        said.append(f"the model confirms only {agreement:.0%} of the labels; do not trust its moves")
    if share > limits.max_fraction / 2:
        said.append(f"{share:.1%} of the labels changed, more than half of max_fraction = {limits.max_fraction:g}")
    if "opacus" in sys.modules:
        said.append(
            "sample-level differential privacy (Opacus) does not cover FedReLa: one sample can change the labels of "
            "others through class statistics and thresholds"
        )
    return said


def _number(client: str) -> int:
    """Return the number of a client's random stream: its name, if that is a number, else a hash of it."""
    if client.isascii() and client.isdecimal() and len(client) < 19:
        return int(client)
    return int.from_bytes(hashlib.sha256(client.encode()).digest()[:8], "little")
