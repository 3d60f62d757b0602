"""The table ``[train]``: rounds, who takes part, local training, and what is demanded of a round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import Field, PlainValidator, model_validator

from fedrela.experiment.schema.table import MOST_CLIENTS, MOST_SAMPLES, BrokenRuleError, Fault, Table, one_of
from fedrela.text import shown

MOST_ROUNDS = 1_000_000
SCHEDULES = {"constant": (), "step": ("milestones", "gamma"), "cosine": ("lr_end",)}  # with the keys of each
OF_SCHEDULES = {key for keys in SCHEDULES.values() for key in keys}
LOSS = "cross_entropy"


def _losses() -> Iterable[str]:
    from fedrela.losses import LOSSES

    return LOSSES


def _milestones(value: Any) -> tuple[int | float, ...]:
    if not isinstance(value, list | tuple):
        raise BrokenRuleError(
            Fault((), "value", f"expected a list of rounds, or of shares of them, got {shown(value)}")
        )
    what = "expected a round from 1, or a share of the rounds above 0 and below 1, got "
    moments = [(type(m) is int and 1 <= m <= MOST_ROUNDS) or (type(m) is float and 0 < m < 1) for m in value]
    if faults := [Fault((i,), "value", what + shown(value[i])) for i, fits in enumerate(moments) if not fits]:
        raise BrokenRuleError(*faults)
    if len(set(value)) < len(value):
        raise BrokenRuleError(Fault((), "value", "different milestones are needed"))
    return tuple(value)


class TrainConfig(Table):
    """Rounds and local training."""

    rounds: int = Field(default=60, ge=1, le=MOST_ROUNDS, description="communication rounds")
    participation: float = Field(
        default=1.0, gt=0, le=1, description="share of the clients in a round; at least one takes part"
    )
    epochs: int = Field(default=2, ge=1, le=100_000, description="passes of a client over its samples in a round")
    batch_size: int = Field(default=16, ge=1, le=MOST_SAMPLES, description="samples of a step")
    lr: float = Field(default=0.05, gt=0, description="learning rate of SGD at a client")
    momentum: float = Field(default=0.9, ge=0, lt=1, description="of SGD; it starts from nothing at every turn")
    weight_decay: float = Field(default=1e-5, ge=0, description="of SGD")
    loss: Annotated[str, one_of(_losses, sure=LOSS)] = Field(
        default=LOSS, description="what clients minimise, where the algorithm leaves it open"
    )
    schedule: Annotated[str, one_of(SCHEDULES)] = Field(
        default="constant", description="the learning rate over the rounds: constant, step or cosine"
    )
    milestones: Annotated[tuple[int | float, ...], PlainValidator(_milestones)] = Field(
        default=(0.5, 0.75), description="step: shares of the rounds, or rounds, from which the rate is lower"
    )
    gamma: float = Field(default=0.1, gt=0, le=1, description="step: by what the rate is multiplied at a milestone")
    lr_end: float = Field(default=0.0, ge=0, le=1, description="cosine: what is left of the rate in the last round")
    clip: float = Field(default=0.0, ge=0, description="largest norm of a gradient; 0: any")
    augment: bool = Field(default=False, description="images are cropped and flipped at random")
    evaluate_every: int = Field(
        default=1,
        ge=1,
        le=MOST_ROUNDS,
        description="rounds between two evaluations; after the last there always is one",
    )
    local_test: bool = Field(default=False, description="each client's own model is scored on the test set as well")
    min_clients: int = Field(
        default=1, ge=1, le=MOST_CLIENTS, description="a round with fewer usable updates is skipped"
    )
    deadline: float = Field(default=0.0, ge=0, description="seconds that a round waits for its clients; 0: any time")
    norm_limit: float = Field(
        default=50.0, ge=0, description="an update so many times the round's median norm is refused; 0: none is"
    )
    give_up: int = Field(default=5, ge=1, le=MOST_ROUNDS, description="rounds skipped in a row after which a run stops")

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_used("schedule", SCHEDULES[self.schedule], among=OF_SCHEDULES)
        faults = []
        if 0 < self.norm_limit < 1:
            what = "0 (off) or a number >= 1 is needed, since half of all updates are above the median, got "
            faults.append(Fault(("norm_limit",), "value", what + shown(self.norm_limit)))
        late = [(i, m) for i, m in enumerate(self.milestones) if m > self.rounds]
        what = f"expected a round up to the last one, {self.rounds}, got "
        faults += [Fault(("milestones", i), "value", what + shown(m)) for i, m in late]
        if faults:
            raise BrokenRuleError(*faults)
        return self

    def chosen(self, clients: int) -> int:
        """Return how many of the clients take part in a round."""
        return max(1, round(self.participation * clients))

    def as_table(self) -> dict[str, Any]:
        """Return the keys that this schedule uses."""
        unused = OF_SCHEDULES - set(SCHEDULES[self.schedule])
        return {key: value for key, value in super().as_table().items() if key not in unused}
