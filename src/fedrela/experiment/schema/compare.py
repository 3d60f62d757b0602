"""The table ``[compare]``: seeds, baselines, arms and pairs of a comparison, and the round that it scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, PlainValidator, ValidationError

from fedrela.arms import ARMS, MATCHED
from fedrela.errors import ArgumentError
from fedrela.experiment.schema.config_table import ConfigTable, Fault, one_of, raise_any, setting
from fedrela.experiment.schema.named_tables import AlgorithmConfig
from fedrela.experiment.schema.problems import WrongConfigError, problems_of
from fedrela.experiment.toml.reader import dotted
from fedrela.options import MOST_SEEDS
from fedrela.text import not_one_of, shown

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

MOST_BASELINES = 200
LONGEST_LABEL = 60


def _label(value: Any) -> str:
    text = value if isinstance(value, str) and not value.isspace() and value.isprintable() else ""
    if not 1 <= len(text) <= LONGEST_LABEL:
        raise ArgumentError(f"expected text of 1 to {LONGEST_LABEL} printable characters, got {shown(value)}")
    return text


class BaselineConfig(AlgorithmConfig):
    """One baseline: an algorithm, its name in tables, and what it changes in ``[train]`` and ``[model]``."""

    label: Annotated[str, PlainValidator(_label)] = setting("", "its name in tables; by default that of its algorithm")
    train: dict[str, Any] = setting({}, "keys of [train] that it changes")
    model: dict[str, Any] = setting({}, "keys of [model] that it changes")

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> BaselineConfig:
        """Return a table as a baseline, labelled by its algorithm unless it has a label."""
        found = cls.model_validate(table)
        return found if found.label else found.model_copy(update={"label": found.kind().label})

    def changes(self) -> dict[str, Any]:
        """Return what it changes in a configuration."""
        return {"algorithm": super().as_table(), **self._tables()}

    def as_table(self) -> dict[str, Any]:
        """Return it as a table of the list of baselines."""
        return {"label": self.label, **super().as_table(), **self._tables()}

    def _tables(self) -> dict[str, Any]:
        return {key: table for key, table in (("train", self.train), ("model", self.model)) if table}


def check_baselines(value: Any) -> tuple[BaselineConfig, ...] | None:
    """Return baselines with distinct labels."""
    if value is None:
        return None
    baselines: dict[str, BaselineConfig] = {}
    faults: list[Fault] = []
    for i, item in enumerate(_items(value, f"a list of 1 to {MOST_BASELINES} algorithms", MOST_BASELINES)):
        table = {"name": item} if isinstance(item, str) else item
        if not isinstance(table, Mapping):
            faults.append(Fault((i,), f"expected the name of an algorithm, or a table with one, got {shown(item)}"))
        elif "name" not in table:
            faults.append(Fault((i,), "name: the name of an algorithm is missing"))
        else:
            try:
                baseline = BaselineConfig.of(table)
            except ValidationError as error:
                found = problems_of(error, BaselineConfig)
                faults += [fault._replace(path=(i, *(fault.path if table is item else ()))) for fault in found]
                continue
            if baseline.label in baselines:
                what = f"another baseline is called {baseline.label!r}; give one of them another label"
                faults.append(Fault((i, "label") if "label" in table else (i,), what))
            baselines[baseline.label] = baseline
    raise_any(faults)
    return tuple(baselines.values())


def _items(value: Any, expected: str, most: float = math.inf) -> list[Any] | tuple[Any, ...]:
    """Return a list that is neither empty nor too long."""
    several = isinstance(value, list | tuple)
    if not several or not 1 <= len(value) <= most:
        raise ArgumentError(f"expected {expected}, got {shown(value)}{f' of {len(value)}' if several else ''}")
    items: list[Any] | tuple[Any, ...] = value
    return items


LARGEST_SEED = 2**63 - 1  # what TOML can hold
SCORES = ("last", "best-validation", "best-test")


def check_seeds(value: Any) -> tuple[int, ...]:
    """Return distinct seeds: those of a list, or 1, 2 and so on up to a number."""
    if type(value) is int and 1 <= value <= MOST_SEEDS:
        return tuple(range(1, value + 1))

    def wrong(seed: Any) -> str:
        right = type(seed) is int and 0 <= seed <= LARGEST_SEED
        return "" if right else f"expected an integer >= 0, got {shown(seed)}"

    expected = f"a number of seeds from 1 to {MOST_SEEDS}, or a list of that many"
    return _different(_items(value, expected, MOST_SEEDS), wrong)


def check_arms(value: Any) -> tuple[str, ...]:
    """Return distinct arms."""

    def wrong(arm: Any) -> str:
        return "" if isinstance(arm, str) and arm in ARMS else not_one_of(arm, ARMS)

    return _different(_items(value, f"a list of arms out of {', '.join(ARMS)}"), wrong)


def check_pairs(value: Any) -> tuple[tuple[str, str], ...] | None:
    """Return distinct pairs of two different arms."""

    def wrong(pair: Any) -> str:
        right = isinstance(pair, list | tuple) and len(pair) == 2 and pair[0] != pair[1]
        right = right and all(isinstance(arm, str) and arm in ARMS for arm in pair)
        return "" if right else f"expected a pair of different arms [base, treated] out of {', '.join(ARMS)}"

    if value is None:
        return None
    pairs = _different(_items(value, "a list of pairs of arms [base, treated]"), wrong)
    return tuple((base, treated) for base, treated in pairs)


def _different(items: Sequence[Any], wrong: Callable[[Any], str]) -> tuple[Any, ...]:
    """Return the items if all differ and none is wrong, or raise."""
    whats = [wrong(item) or (repeated(item) if item in items[:i] else "") for i, item in enumerate(items)]
    raise_any(Fault((i,), what) for i, what in enumerate(whats) if what)
    return tuple(items)


def repeated(item: Any) -> str:
    """Return the message for a repeated item of a list."""
    return f"{shown(item)} is listed twice; leave one of the two out"


class CompareConfig(ConfigTable):
    """Seeds, baselines and arms: every baseline is run in every arm with every seed."""

    seeds: Annotated[tuple[int, ...], PlainValidator(check_seeds)] = setting(
        (1, 2, 3), "how many seeds, from 1 on; or a list of seeds"
    )
    baselines: Annotated[tuple[BaselineConfig, ...] | None, BeforeValidator(check_baselines)] = setting(
        None, "algorithms by name, or tables like [algorithm] with label, train and model"
    )
    arms: Annotated[tuple[str, ...], PlainValidator(check_arms)] = setting(MATCHED, f"any of {', '.join(ARMS)}")
    pairs: Annotated[tuple[tuple[str, str], ...] | None, PlainValidator(check_pairs)] = setting(
        None, "which arms are compared, as [base, treated]; by default those that differ in re-labelling only"
    )
    score: Annotated[str, one_of(SCORES)] = setting(
        "last", "the round that counts: last, best-validation, or best-test as in the official code"
    )

    def as_table(self) -> dict[str, Any]:
        """Return the keys that were given, each baseline as a table; a sweep uses these only."""
        baselines = [baseline.as_table() for baseline in self.baselines or ()]
        values = super().as_table() | ({"baselines": baselines} if baselines else {})
        return {key: value for key, value in values.items() if key in self.model_fields_set}


def compare_faults(config: Config) -> Iterator[Fault]:
    """Yield conflicts between ``[compare]`` and the other tables."""
    if config.compare is None:
        return
    if config.compare.score == "best-validation" and not config.data.validation:
        what = "expected data.validation above 0: the samples that clients hold out choose the round"
        yield Fault(("compare", "score"), what)
    for i, pair in enumerate(config.compare.pairs or ()):
        if not set(pair) <= set(config.compare.arms):
            what = f"expected two of the arms that are run, {', '.join(config.compare.arms)}"
            yield Fault(("compare", "pairs", i), what)
    for i, baseline in enumerate(config.compare.baselines or ()):
        for fault in _baseline_faults(config, baseline):
            yield fault._replace(path=("compare", "baselines", i, *fault.path))


def _baseline_faults(config: Config, baseline: BaselineConfig) -> Iterator[Fault]:
    for problem in problems_over(config, baseline.changes()):
        table, *keys = problem.path
        if table in ("train", "model") and keys and keys[0] in getattr(baseline, str(table)):
            yield problem
        else:  # a rule between this baseline and what the other tables say
            yield Fault((), f"{dotted(problem.path)}: {problem.what}")


def problems_over(config: Config, changes: Mapping[str, Any]) -> list[Fault]:
    """Return the problems of a configuration with `changes` merged into it."""
    from fedrela.experiment.overlay import overlay  # late, since it imports this schema

    try:
        overlay(config, changes)
    except WrongConfigError as error:
        return error.problems
    return []
