"""A client's labels over the rounds: checks in its first round, passes that re-label, and the use of stored labels."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from logging import Logger
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_integer
from fedrela.core import Ledger, Provenance, Relabelling, Schedule, relabel
from fedrela.core.equations import agreement
from fedrela.core.limits import eligible_by_agreement
from fedrela.core.relabel_options import RelabelOptions
from fedrela.errors import ArgumentError, DataError, FedrelaError
from fedrela.files import digest
from fedrela.options import options_of
from fedrela.plugin.policy import POLICY, Policy, named_file
from fedrela.plugin.received_model import Scorer
from fedrela.plugin.rows import reorder
from fedrela.plugin.scoring import Scored
from fedrela.plugin.store import OWN_NAME, LabelStore
from fedrela.streams import stream
from fedrela.text import one_line, percent, unknown

UNLIMITED = 1_000_000  # passes of a periodic schedule, unless a number is given


@dataclass(frozen=True)
class PassPlan:
    """When and how a federation asks its clients to re-label."""

    schedule: Schedule
    rounds: int  # of the run; they matter if the schedule's start is a share of them
    limits: Policy
    preset: str
    seed: int  # draws come from the stream of seed, round and client
    resume: bool  # whether labels of another seed, preset or model, or of stricter limits, are used anyway


def plan_options() -> list[str]:
    """Return the names of all options of `plan_passes`."""
    return ["rounds", "preset", "seed", "resume", *(each.name for of in (Schedule, Policy) for each in options_of(of))]


def plan_passes(
    *,
    rounds: int | None = None,
    preset: str = RelabelOptions.preset,
    seed: int = 0,
    resume: bool = False,
    **options: Any,
) -> PassPlan:
    """Return a checked plan; `options` are those of `Schedule` and `Policy`."""
    schedule = Schedule(**{each.name: options.pop(each.name, each.default) for each in options_of(Schedule)})
    if rounds is None and isinstance(schedule.start, float):
        what = f"required, since start = {schedule.start} is a share of them; or give start as a round"
        raise ArgumentError(what, argument="rounds")
    limits = [each.name for each in options_of(Policy)]
    for name in sorted(options.keys() - set(limits)):
        raise ArgumentError(unknown("option", name, limits, "a policy"), argument=name)
    if type(resume) is not bool:
        raise ArgumentError(f"expected true or false, got {resume!r}", argument="resume")
    policy = Policy(**{"tau": RelabelOptions.tau, "passes": UNLIMITED if schedule.period else 1} | options)
    number = 1 if rounds is None else check_integer("rounds", rounds)
    if rounds is not None and schedule.first(number) > number:
        what = f"round {schedule.start} is after the last of {number}: no label would change"
        raise ArgumentError(what, argument="start")
    preset = RelabelOptions(preset=preset).preset
    return PassPlan(schedule, number, policy, preset, check_integer("seed", seed, 0), resume)


@dataclass(frozen=True, eq=False)
class ClientRound:
    """One client in one round. The stricter of the plan and the client's own policy applies."""

    store: LabelStore
    plan: PassPlan
    own: Policy
    round: int
    scorer: Scorer
    log: Logger
    policy_file: Path | None = None  # that `own` was read from

    def __post_init__(self) -> None:
        check_integer("round", self.round)

    @cached_property
    def limits(self) -> Policy:
        """The limits that apply."""
        names = self.scorer.class_names
        asked = self.plan.limits.numbered(names)
        with named_file(self.policy_file):
            own = self.own.numbered(names)
        return asked.stricter(own)

    @property
    def off(self) -> bool:
        """Whether the client trains on its original labels, even if it has new ones."""
        return not self.limits.enabled or self.store.undone

    @property
    def may_relabel(self) -> bool:
        """Whether the client may re-label once more."""
        return len(_not_refused(self.store.passes())) < self.limits.passes

    def folder_is_gone(self) -> bool:
        """Whether the folder of a client that had labels was deleted, which is logged; no others are made in it."""
        if gone := not self.store.folder.is_dir():
            message = "%s: %s is gone, so this client trains on its original labels; restore it"
            self.log.warning(message, self._where, self.store.folder)
        return gone

    def begin(self) -> int:
        """Check in a client's first round everything that could fail later; return the round of stored labels, or 0.

        The store must be writable, and stored labels must fit the current settings and rows. If the client may still
        re-label, a batch is scored, so that errors in model, data or limits show now and not in round T.
        """
        if self.off:
            return 0
        self.store.check_writable()
        passes = _not_refused(self.store.passes())
        if passes:
            self._take_over(passes[-1])
        if self.plan.schedule.period and self.limits.passes == 1:
            message = "%s: period %d has no effect: the client's policy permits one pass (passes = 1)"
            self.log.warning(message, self._where, self.plan.schedule.period)
        if self.may_relabel:
            self.scorer.check_rows(every=True)
            self._check_limits(self.scorer.check_batch(self.round), len(self.scorer), self.scorer.ids)
        return passes[-1].options["round"] if passes else 0

    def _check_limits(self, C: int, n: int, ids: Sequence[str]) -> None:
        """Raise if a limit names a class or a row that does not exist; the policy's file may change in any round."""
        names = self.scorer.class_names
        for limits, file in ((self.own.numbered(names), self.policy_file), (self.limits, None)):
            with named_file(file):
                limits.allowed_moves(C)
                limits.class_taus(limits.tau, C)
                limits.kept_rows(n, ids)

    def tell_policy(self, told: str = "") -> str:
        """Log which policy of the client is in force, unless that is what the log was `told`; return it."""
        if self.policy_file is not None:
            text = str(self.policy_file.absolute())
        elif self.own != Policy():
            text = "the one given as policy="
        else:
            named = "none named with policy= (in Flower, fedrela-policy in --node-config)"
            text = f"the defaults, since there is no {self.store.root.absolute() / POLICY}, and {named}"
        if text != told:
            self.log.info("%s: the client's own policy is %s", self._where, text)
        return text

    def labels(self, taken_over: int = 0, used: int = 0) -> Ledger | None:
        """Return the ledger of the current labels, or None for the original ones.

        `taken_over` is what `begin` returned, and `used` is the round of the labels that were used last, or 0. Other
        labels, such as those of another process, are first compared with the rows.

        Stored labels are read, never recomputed with another model. They apply from the round in which they were made,
        so that a server that goes back some rounds gets the same labels again. A refusal is stored, but does not count
        as a pass: the client tries again when the schedule permits, as it does after scoring failed. Labels that
        violate a limit that has become stricter since are not used; the next pass is made when the schedule permits.
        """
        if self.off:
            return None
        stored = self.store.passes()
        passes = _not_refused(stored)
        past = [ledger for ledger in passes if ledger.options["round"] <= self.round]
        last = self._reorder(past[-1]) if past else None
        last_round = None if last is None else int(last.options["round"])
        if last is not None:
            self._check_limits(last.num_classes, last.original.size, last.ids)
        if last is not None and (limit := self.limits.broken_by(last)):
            message = "%s: the labels of round %d violate the current %s, so this client goes back to its original ones"
            self.log.warning(message, self._where, last_round, limit)
            last = None
        if last is not None and last_round not in (taken_over, used):
            self._check_rows(past[-1], *self.scorer.rows())
        if last is not None and last_round == taken_over == self.round != used and not self.plan.resume:
            self._check_model(last)
        due = self.plan.schedule.due(self.round, self.plan.rounds, last_round)
        if len(past) < len(passes) or len(passes) >= self.limits.passes or not due:
            return last
        try:
            scored = self.scorer.score()
        except Exception as error:  # whatever a user's model or data raise: a round must not be lost to it
            current = "its original labels" if last is None else f"the labels of round {last_round}"
            message = "%s: scoring failed, so this client trains on %s; it tries again in its next round: %s"
            self.log.error(message, self._where, current, one_line(error), exc_info=is_unexpected(error))
            return last
        ledger = self.store.record(len(stored) + 1, self._relabel(scored), self.round)
        self._check_rows(ledger, scored.labels, scored.inputs_sha256)
        return last if ledger.refusal is not None and last is not None else self._reorder(ledger)

    @property
    def _where(self) -> str:
        return f"FedReLa, round {self.round}, client {self.store.client}"

    def _reorder(self, ledger: Ledger) -> Ledger:
        return reorder(ledger, self.scorer.ids, self.store.folder)

    def _take_over(self, ledger: Ledger) -> None:
        """Check that stored labels were made under the current settings, for the current rows.

        Limits may have become stricter: labels that violate them are not used.
        """
        then, folder, differ = ledger.provenance, self.store.folder, ""
        if then is not None:
            before = {"model": ledger.options.get("model"), "seed": then.seed, "preset": then.preset, **then.limits}
            limits = self.limits.as_record()
            looser = {name: limits[name] for name in self.limits.looser_than(then.limits)}
            now = {"model": self.scorer.model_name, **_settings(self.plan), **looser}
            changed = (key for key in now if before.get(key, now[key]) != now[key])
            differ = ", ".join(f"{key} {before[key]} (now {now[key]})" for key in changed)
        if differ and not self.plan.resume:
            raise _other_settings(folder, differ)
        self._check_rows(ledger, *self.scorer.rows())
        made_in = ledger.options["round"]
        self.log.info("%s: labels of round %d read from %s", self._where, made_in, folder)
        if differ:
            self.log.warning("%s: labels of round %d were made with %s; resume uses them", self._where, made_in, differ)
        self.store.log.append("read", round=self.round, made_in=made_in, **({"resumed": differ} if differ else {}))

    def _check_rows(self, ledger: Ledger, labels: NDArray[np.int64], inputs_sha256: str) -> None:
        """Raise if a ledger was made for other rows; log it if rows with the same ids have changed."""
        bound, then = self._reorder(ledger), ledger.provenance
        self.store.check_data(bound, labels)
        if then is None or then.inputs_sha256 in (None, inputs_sha256):
            return
        if not (ledger.ids and self.scorer.ids):
            raise DataError(
                f"{self.store.folder}: made for other inputs than client {self.store.client} has now, or for the same "
                "in another order; restore them, or give ids= from the start, so that labels follow their rows; "
                f"{OWN_NAME}"
            )
        order = "in the same order, but with other inputs" if bound is ledger else "in another order"
        self.log.warning("%s: the rows have the same ids as before, %s; labels follow the ids", self._where, order)

    def _check_model(self, ledger: Ledger) -> None:
        """Raise if the model of this round is not the one that made these labels in this round of an earlier run."""
        then = ledger.provenance.model_sha256 if ledger.provenance is not None else None
        if then not in (None, self.scorer.model_sha256):
            raise _other_settings(self.store.folder, f"model {then} in this round (now {self.scorer.model_sha256})")

    def _relabel(self, scored: Scored) -> Ledger:
        Q, y, limits = scored.posterior, scored.labels, self.limits
        self._check_limits(Q.shape[1], len(y), self.scorer.ids)
        confirmed, refusal = agreement(Q, y), None
        eligible = eligible_by_agreement(confirmed, limits.min_agreement, len(y))
        if eligible is not None:
            refusal = f"no label moves: the model confirms {percent(confirmed, 0)} of them, less than min_agreement"
        done = relabel(
            Q,
            y,
            tau=limits.tau,
            preset=self.plan.preset,
            max_fraction=limits.max_fraction,
            allowed=limits.allowed_moves(Q.shape[1]),
            keep=limits.keep,
            absent=limits.absent,
            class_tau=limits.class_tau,
            ids=self.scorer.ids,
            eligible=eligible,
            seed=stream(self.plan.seed, "relabel", self.round, client_number(self.store.client)),
        )
        self._log_result(done, refusal or done.refusal, confirmed)
        return replace(
            done.ledger,
            refusal=done.refusal or refusal,
            class_names=self.scorer.class_names,
            options=done.ledger.options | {"model": self.scorer.model_name},
            provenance=Provenance(
                version=version("fedrela"),
                **_settings(self.plan),
                limits=limits.as_record(),
                policy_sha256=digest(json.dumps(self.own.as_record(), sort_keys=True).encode()),
                model_sha256=self.scorer.model_sha256,
                inputs_sha256=scored.inputs_sha256,
                agreement=confirmed,
            ),
        )

    def _log_result(self, done: Relabelling, refusal: str | None, confirmed: float) -> None:
        """Log what was done, and warnings for the owner."""
        moved, n, cap = done.moved.size, done.labels.size, self.limits.max_fraction
        self.log.info("%s: %d of %d labels changed; ledger in %s", self._where, moved, n, self.store.folder)
        warnings = []
        if refusal is None and confirmed < 0.5:
            warnings.append(f"the model confirms only {percent(confirmed, 0)} of the labels; do not trust its moves")
        if done.share > cap / 2:
            warnings.append(f"{percent(done.share)} of the labels changed, more than half of max_fraction = {cap:g}")
        if "opacus" in sys.modules:
            warnings.append(
                "sample-level differential privacy (Opacus) does not cover FedReLa: one sample can change the labels "
                "of others through class statistics and thresholds"
            )
        if refusal is not None:
            warnings.append(f"nothing was re-labelled: {refusal}")
        for warning in warnings:
            self.log.warning("%s: %s", self._where, warning)


def is_unexpected(error: BaseException) -> bool:
    """Whether an error, or its cause, is not one of fedrela's: then its traceback belongs in the client's log."""
    return not isinstance(error, FedrelaError) or (error.__cause__ is not None and is_unexpected(error.__cause__))


def _not_refused(passes: list[Ledger]) -> list[Ledger]:
    return [ledger for ledger in passes if ledger.refusal is None]


def _settings(plan: PassPlan) -> dict[str, Any]:
    return {"seed": plan.seed, "preset": plan.preset}


def _other_settings(folder: object, which: str) -> ArgumentError:
    what = f"{folder}: contains labels that were made with {which}"
    return ArgumentError(f"{what}; resume=True uses them anyway, another experiment name makes new ones")


def client_number(client: str) -> int:
    """Return the number of a client's random stream: its name, if that is a number, else a hash of it."""
    if client.isascii() and client.isdecimal() and len(client) < 19:
        return int(client)
    return int.from_bytes(hashlib.sha256(client.encode()).digest()[:8], "little")
