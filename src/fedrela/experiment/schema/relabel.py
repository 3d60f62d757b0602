"""The table ``[relabel]``: when clients re-label, how, and where posteriors come from."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Self

from pydantic import Field, PlainValidator, model_validator

from fedrela.arguments import check_fraction
from fedrela.core import Schedule
from fedrela.core.options import NORMALIZATIONS, PRESETS, QUANTILES, SPREADS, TARGETS
from fedrela.engine.options import MOST_ROUNDS
from fedrela.errors import ArgumentError
from fedrela.experiment.schema.table import BrokenRuleError, ConfigTable, Fault, one_of
from fedrela.text import shown


def stated_by(rule: Any) -> PlainValidator:
    """Return the rule that something outside the configuration states."""

    def check(value: Any) -> Any:
        try:
            return rule(value)
        except ArgumentError as error:
            raise BrokenRuleError(Fault((), "value", said_of(value, error))) from None

    return PlainValidator(check)


def said_of(value: Any, error: ArgumentError) -> str:
    """Return the reason of an error with a short value."""
    return error.reason.replace(f"got {value!r}", f"got {shown(value)}")


OTHERS = "default"  # the key of all clients that a table of tau does not name
USUAL_TAU = 0.05
_CLIENT = re.compile(r"0|[1-9][0-9]{0,17}")


def check_tau(value: Any) -> float | dict[str, float]:
    """Return a fraction, or a table client id -> fraction that has a value for all others too."""
    if not isinstance(value, dict):
        return _fraction(value, ())
    faults, table = [], {OTHERS: USUAL_TAU}
    for key, tau in value.items():
        if key != OTHERS and not _CLIENT.fullmatch(key):
            faults.append(Fault((key,), "key", f'expected a client id such as 0, or "{OTHERS}" for all others'))
        try:
            table[key] = _fraction(tau, (key,))
        except BrokenRuleError as error:
            faults += error.faults
    if faults:
        raise BrokenRuleError(*faults)
    return dict(sorted(table.items(), key=lambda item: -1 if item[0] == OTHERS else int(item[0])))


def _fraction(value: Any, path: tuple[str, ...]) -> float:
    try:
        return check_fraction("tau", value, per_cent_hint=True)
    except ArgumentError as error:
        raise BrokenRuleError(Fault(path, "value", said_of(value, error))) from None


def check_threshold(value: Any) -> str | float | tuple[float, ...] | None:
    """Return the name of a quantile, a z value, or one z value a class; None leaves it to the preset."""
    if value is None or (isinstance(value, str) and value in QUANTILES):
        return value
    if _is_number(value):
        return float(value)
    if not isinstance(value, list | tuple) or not value:
        what = f"expected one of {', '.join(QUANTILES)}, a z value, or a list with one a class, got {shown(value)}"
        raise BrokenRuleError(Fault((), "value", what))
    if wrong := [i for i, z in enumerate(value) if not _is_number(z)]:
        raise BrokenRuleError(*(Fault((i,), "value", f"expected a z value, got {shown(value[i])}") for i in wrong))
    return tuple(map(float, value))


def check_pairs(value: Any) -> tuple[tuple[int, int], ...]:
    """Return pairs of two different class ids."""
    needed = "of class ids [from, to], got"
    if not isinstance(value, list | tuple):
        raise BrokenRuleError(Fault((), "value", f"expected a list of pairs {needed} {shown(value)}"))
    for i, pair in enumerate(value):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            number = f" of {len(pair)}" if isinstance(pair, list | tuple) else ""
            raise BrokenRuleError(Fault((i,), "value", f"expected a pair {needed} {shown(pair)}{number}"))
        for j, c in enumerate(pair):
            if type(c) is not int or c < 0:
                raise BrokenRuleError(Fault((i, j), "value", f"expected a class id of at least 0, got {shown(c)}"))
        if pair[0] == pair[1]:
            raise BrokenRuleError(Fault((i,), "value", f"expected two different classes, got {pair[0]} twice"))
    return tuple((pair[0], pair[1]) for pair in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


MOVES = ("fedrela", "random")


class RelabelConfig(ConfigTable):
    """When and how clients re-label."""

    enabled: bool = Field(default=True, description="false: nothing is re-labelled, but lr_scale acts all the same")
    start: Annotated[int | float, stated_by(lambda value: Schedule(start=value).start)] = Field(
        default=0.8, description="first round of re-labelling: a share of all rounds (0.8), or a round (48)"
    )
    period: int = Field(default=0, ge=0, le=MOST_ROUNDS, description="rounds until the next time; 0: one shot")
    late: bool = Field(default=True, description="a client not chosen when it was due re-labels at its next turn")
    tau: Annotated[float | dict[str, float], PlainValidator(check_tau)] = Field(
        default=0.05,
        description="share of the samples whose score may pass the threshold of a class; or a table client id -> share",
    )
    preset: Annotated[str, one_of(PRESETS)] = Field(
        default="paper", description="paper or official: fixes spread, threshold and target unless they are given"
    )
    spread: Annotated[str, one_of(SPREADS)] | None = Field(
        default=None, description="standard deviation: sample (n - 1) or population (n)"
    )
    threshold: Annotated[str | float | tuple[float, ...] | None, PlainValidator(check_threshold)] = Field(
        default=None, description="quantile higher, order or linear; or a z value, or one a class"
    )
    target: Annotated[str, one_of(TARGETS)] | None = Field(
        default=None, description="which of several successful draws counts: argmax or winner"
    )
    normalize: Annotated[str, one_of(NORMALIZATIONS)] = Field(
        default="zscore", description="how posteriors of a class are made comparable: zscore, minmax, none"
    )
    max_fraction: float = Field(
        default=1.0, ge=0, le=1, description="largest share of its labels that a client may change"
    )
    min_agreement: float = Field(
        default=0.0, ge=0, le=1, description="a client whose labels the model confirms less often re-labels nothing"
    )
    forbidden: Annotated[tuple[tuple[int, int], ...], PlainValidator(check_pairs)] = Field(
        default=(), description="moves that may not happen, as pairs of class ids [from, to]"
    )
    lr_scale: float = Field(
        default=1.0, gt=0, description="factor of the learning rate from the first round of re-labelling on"
    )
    moves: Annotated[str, one_of(MOVES)] = Field(
        default="fedrela", description="random: as many moves from class to class, of random samples, as a control"
    )
    collected: bool = Field(
        default=False, description="posteriors from the last epoch of training, in place of a pass of their own"
    )
    passes: int = Field(default=1, ge=1, le=1000, description="passes over which posteriors are averaged")
    augment: bool = Field(default=False, description="these passes see augmented samples")
    train_mode: bool = Field(default=False, description="these passes run in training mode")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.collected:
            what = "with collected = true there is no pass to set this for; leave it out"
            usual = {name: type(self).model_fields[name].default for name in ("passes", "augment", "train_mode")}
            if wrong := [name for name in usual if getattr(self, name) != usual[name]]:
                raise BrokenRuleError(*(Fault((name,), "key", what) for name in wrong))
        return self

    def schedule(self) -> Schedule:
        """Return the rounds in which clients re-label."""
        return Schedule(start=self.start, period=self.period, late=self.late)

    @property
    def default_tau(self) -> float:
        """The tau of all clients that have none of their own."""
        return self.tau[OTHERS] if isinstance(self.tau, dict) else self.tau

    @property
    def taus(self) -> dict[int, float]:
        """The tau of each client that has one of its own."""
        table = self.tau if isinstance(self.tau, dict) else {}
        return {int(client): tau for client, tau in table.items() if client != OTHERS}
