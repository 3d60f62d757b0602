"""The table ``[relabel]``: when clients re-label, how, and where posteriors come from.

When is stated by `fedrela.core.Schedule`, how by `fedrela.core.options`, which check the values here as well.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, PlainValidator, model_validator

from fedrela.core import Schedule
from fedrela.core.options import NORMALIZATIONS, PRESETS, SPREADS, TARGETS
from fedrela.experiment.schema.base import BrokenRuleError, Fault, Table, one_of, stated_by
from fedrela.experiment.schema.relabel_values import OTHERS, check_pairs, check_tau, check_threshold
from fedrela.experiment.schema.train import MOST_ROUNDS

MOVES = ("fedrela", "random")


class RelabelConfig(Table):
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
