"""Baseline algorithms of a comparison: a name, or a table like ``[algorithm]`` with a label and other training beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from fedrela.experiment.schema.algorithm import AlgorithmConfig
from fedrela.experiment.schema.base import BrokenRuleError, Fault, Table
from fedrela.experiment.schema.problems import problems_of
from fedrela.text import shown, unknown

MOST_BASELINES = 200
LONGEST_LABEL = 60
OWN = ("label", "train", "model")  # keys of a baseline beside those of an algorithm
LABELS = {  # as their papers write them
    "climb": "CLIMB", "creff": "CReFF", "fedavg": "FedAvg", "feddyn": "FedDyn", "fedetf": "FedETF",
    "fedetf_original": "FedETF (original)", "fedgrab": "Fed-GraB", "fedlc": "FedLC", "fedloge": "FedLoGe",
    "fedmix": "FedMix", "fednova": "FedNova", "fedprox": "FedProx", "fedrod": "FedRoD", "fedyoyo": "FedYoYo",
    "moon": "MOON", "oversample": "Oversampling", "ratioloss": "Ratio Loss", "reweight": "Re-weighting",
    "scaffold": "SCAFFOLD", "smote": "SMOTE",
}  # fmt: skip


class BaselineConfig(Table):
    """One baseline: its algorithm, how tables call it, and what it changes in ``[train]`` and ``[model]``."""

    algorithm: AlgorithmConfig
    label: str
    train: dict[str, Any]
    model: dict[str, Any]

    @classmethod
    def of(cls, algorithm: AlgorithmConfig) -> BaselineConfig:
        """Return an algorithm as a baseline that changes nothing else."""
        return cls(algorithm=algorithm, label=LABELS.get(algorithm.name, algorithm.name), train={}, model={})

    def changes(self) -> dict[str, Any]:
        """Return what it lays over a configuration."""
        tables = {"train": self.train, "model": self.model}
        return {"algorithm": self.algorithm.as_table(), **{key: table for key, table in tables.items() if table}}

    def as_table(self) -> dict[str, Any]:
        """Return it as it stands in a list of baselines."""
        return {"label": self.label} | {
            key: value for name, table in self.changes().items()
            for key, value in (table.items() if name == "algorithm" else [(name, table)])
        }  # fmt: skip


def check_baselines(value: Any) -> tuple[BaselineConfig, ...] | None:
    """Return baselines with different labels."""
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MOST_BASELINES:
        number = f" of {len(value)}" if isinstance(value, list | tuple) else ""
        what = f"expected a list of 1 to {MOST_BASELINES} algorithms, got {shown(value)}{number}"
        raise BrokenRuleError(Fault((), "value", what))
    baselines: list[BaselineConfig] = []
    faults: list[Fault] = []
    for i, item in enumerate(value):
        try:
            baseline = _baseline(item)
        except BrokenRuleError as error:
            faults += [fault._replace(path=(i, *fault.path)) for fault in error.faults]
            continue
        if baseline.label in [other.label for other in baselines]:
            at = (i, "label") if isinstance(item, Mapping) and "label" in item else (i,)
            faults.append(
                Fault(at, "value", f"another baseline is called {baseline.label!r}; give one of them another label")
            )
        baselines.append(baseline)
    if faults:
        raise BrokenRuleError(*faults)
    return tuple(baselines)


def _baseline(item: Any) -> BaselineConfig:
    if not isinstance(item, str | Mapping):
        what = f"expected the name of an algorithm, or a table with one, got {shown(item)}"
        raise BrokenRuleError(Fault((), "value", what))
    table = {"name": item} if isinstance(item, str) else item
    if "name" not in table:
        raise BrokenRuleError(Fault((), "value", "name: the name of an algorithm is missing"))
    if faults := [*_own_faults(table), *_algorithm_faults(table)]:
        raise BrokenRuleError(*(fault._replace(path=()) if isinstance(item, str) else fault for fault in faults))
    algorithm = AlgorithmConfig.model_validate({key: value for key, value in table.items() if key not in OWN})
    usual = BaselineConfig.of(algorithm)
    return usual.model_copy(update={key: table[key] for key in OWN if key in table})


def _own_faults(table: Mapping[str, Any]) -> Iterator[Fault]:
    label = table.get("label", "a")
    if not isinstance(label, str) or not 1 <= len(label) <= LONGEST_LABEL or not label.isprintable() or label.isspace():
        what = f"expected text of 1 to {LONGEST_LABEL} characters that print, got {shown(label)}"
        yield Fault(("label",), "value", what)
    for key in ("train", "model"):
        if not isinstance(table.get(key, {}), Mapping):
            what = f"expected a table with keys of [{key}], got {shown(table[key])}"
            yield Fault((key,), "value", what)


def _algorithm_faults(table: Mapping[str, Any]) -> Iterator[Fault]:
    own = {key: value for key, value in table.items() if key not in OWN}
    try:
        name = AlgorithmConfig(name=own["name"])
        known = [*name.as_table(), *OWN] if len(own) > 1 else own
        if strange := [key for key in own if key not in known]:
            owner = f"a baseline with algorithm {name.name!r}"
            yield from (Fault((key,), "key", unknown("key", key, known, owner)) for key in strange)
            own = {key: value for key, value in own.items() if key in known}
        AlgorithmConfig.model_validate(own)
    except ValidationError as error:
        for problem in problems_of(error, AlgorithmConfig):
            yield Fault(problem.path, "key" if problem.at == "key" else "value", problem.tell())
