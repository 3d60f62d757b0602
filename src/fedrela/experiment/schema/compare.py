"""The table ``[compare]``: which seeds, baselines and arms a comparison has, and which round it scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator

from fedrela.experiment.arms import ARMS, MATCHED
from fedrela.experiment.schema.base import BrokenRuleError, Fault, Table, one_of
from fedrela.experiment.schema.baselines import BaselineConfig, check_baselines
from fedrela.experiment.schema.problems import WrongConfigError, dotted
from fedrela.text import not_one_of, shown

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

MOST_SEEDS = 1000
LARGEST_SEED = 2**63 - 1  # what TOML can hold
SCORES = ("last", "best-validation", "best-test")


def check_seeds(value: Any) -> tuple[int, ...]:
    """Return different seeds: those of a list, or 1, 2 and so on up to a number."""
    if type(value) is int and 1 <= value <= MOST_SEEDS:
        return tuple(range(1, value + 1))
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MOST_SEEDS:
        number = f" of {len(value)}" if isinstance(value, list | tuple) else ""
        what = f"expected a number of seeds from 1 to {MOST_SEEDS}, or a list of so many, got {shown(value)}{number}"
        raise BrokenRuleError(Fault((), "value", what))
    faults = []
    for i, seed in enumerate(value):
        if type(seed) is not int or not 0 <= seed <= LARGEST_SEED:
            faults.append(Fault((i,), "value", f"expected an integer >= 0, got {shown(seed)}"))
        elif seed in value[:i]:
            faults.append(Fault((i,), "value", f"{seed} is there already; leave one of the two out"))
    if faults:
        raise BrokenRuleError(*faults)
    return tuple(value)


def check_arms(value: Any) -> tuple[str, ...]:
    """Return different arms."""
    if not isinstance(value, list | tuple) or not value:
        got = "an empty one" if isinstance(value, list | tuple) else shown(value)
        raise BrokenRuleError(Fault((), "value", f"expected a list of arms out of {', '.join(ARMS)}, got {got}"))
    faults = []
    for i, arm in enumerate(value):
        if not isinstance(arm, str) or arm not in ARMS:
            faults.append(Fault((i,), "value", not_one_of(arm, ARMS)))
        elif arm in value[:i]:
            faults.append(Fault((i,), "value", f"{arm!r} is there already; leave one of the two out"))
    if faults:
        raise BrokenRuleError(*faults)
    return tuple(value)


class CompareConfig(Table):
    """Seeds, baselines and arms: every baseline is run in every arm with every seed."""

    seeds: Annotated[tuple[int, ...], PlainValidator(check_seeds)] = Field(
        default=(1, 2, 3), description="a number: 1, 2 and so on up to it; or a list of seeds"
    )
    baselines: Annotated[tuple[BaselineConfig, ...] | None, BeforeValidator(check_baselines)] = Field(
        default=None, description="algorithms by name, or tables like [algorithm] with label, train and model"
    )
    arms: Annotated[tuple[str, ...], PlainValidator(check_arms)] = Field(
        default=MATCHED, description=f"out of {', '.join(ARMS)}"
    )
    score: Annotated[str, one_of(SCORES)] = Field(
        default="last", description="the round that counts: last, best-validation, or best-test as the official code"
    )

    def as_table(self) -> dict[str, Any]:
        """Return the keys that were given, each baseline as a table; a sweep takes seeds, baselines and arms from no others."""
        baselines = (
            {} if self.baselines is None else {"baselines": [baseline.as_table() for baseline in self.baselines]}
        )
        return {key: value for key, value in (super().as_table() | baselines).items() if key in self.model_fields_set}


def compare_faults(config: Config) -> Iterator[Fault]:
    """Yield what in ``[compare]`` does not go with the other tables."""
    if config.compare is None:
        return
    if config.compare.score == "best-validation" and not config.data.validation:
        what = "data.validation above 0 is needed for it: what clients hold back chooses the round"
        yield Fault(("compare", "score"), "value", what)
    for i, baseline in enumerate(config.compare.baselines or ()):
        for fault in _baseline_faults(config, baseline):
            yield fault._replace(path=("compare", "baselines", i, *fault.path))


def _baseline_faults(config: Config, baseline: BaselineConfig) -> Iterator[Fault]:
    from fedrela.experiment.overlay import overlay  # which needs the schema that this is a part of

    try:
        overlay(config, baseline.changes())
    except WrongConfigError as error:
        for problem in error.problems:
            table, *keys = problem.path
            if table in ("train", "model") and keys and keys[0] in getattr(baseline, str(table)):
                yield Fault(problem.path, "key" if problem.at == "key" else "value", problem.tell())
            else:  # a rule between this baseline and what the other tables say
                yield Fault((), "value", f"{dotted(problem.path)}: {problem.tell()}")
