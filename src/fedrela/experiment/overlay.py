"""A configuration with some keys changed: how baselines, arms, seeds and swept values are applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedrela.experiment.load import parse_config
from fedrela.experiment.schema import Config

SEVERAL = ("compare", "sweep")  # tables about several runs, which no single run has
SELECTORS = ("name", "kind")  # a new value replaces the whole table, whose other keys belong to the old value
DEPENDENT = {"source": ("options", "root"), "method": ("params",)}  # keys dropped when this key changes


def overlay(config: Config, changes: Mapping[str, Any]) -> Config:
    r"""Return the configuration of one run: `config` with `changes` merged into it, see `merge`.

    It has no tables ``[compare]`` and ``[sweep]``, which are about several runs.

    >>> config = parse_config("[algorithm]\nname = 'fedprox'\nmu = 0.1\n[relabel]\ntau = 0.1")
    >>> changed = overlay(config, {"algorithm": {"name": "fedavg"}, "relabel": {"start": 0.5}})
    >>> changed.algorithm.params, changed.relabel.tau, changed.relabel.start
    ({}, 0.1, 0.5)
    """
    given = config.model_dump(exclude_unset=True)
    table = {key: value for key, value in given.items() if key not in SEVERAL}
    folder = Path(config.origin.name).parent
    return parse_config(merge(table, changes, config.as_table()), name=config.origin.name, folder=folder)


def merge(
    table: Mapping[str, Any], changes: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a table with changes merged into it, key by key and table by table.

    A new ``name`` or ``kind`` replaces its whole table; another ``source`` or ``method`` drops the options
    of the old one. `defaults` has the values of tables that were left out.

    >>> merge({"model": {"name": "mlp", "hidden": [9]}, "seed": 1}, {"model": {"name": "cnn"}})
    {'model': {'name': 'cnn'}, 'seed': 1}
    >>> merge({"source": "csv", "options": {"label": "y"}, "validation": 0.1}, {"source": "digits"})
    {'source': 'digits', 'validation': 0.1}
    """
    dropped = {key for selector, keys in DEPENDENT.items() if _selects(table, changes, (selector,)) for key in keys}
    merged = {key: value for key, value in table.items() if key not in dropped}
    for key, value in changes.items():
        current, default = merged.get(key), (defaults or {}).get(key)
        if current is None and isinstance(default, Mapping) and key not in dropped:
            current = default
        if isinstance(value, Mapping) and isinstance(current, Mapping) and not _selects(current, value, SELECTORS):
            value = merge(current, value, default if isinstance(default, Mapping) else {})
        merged[key] = value
    return merged


def _selects(current: Mapping[str, Any], change: Mapping[str, Any], selectors: Iterable[str]) -> bool:
    return any(key in change and change[key] != current.get(key) for key in selectors)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as tables.

    >>> nested({"relabel.tau": 0.1, "data.partition.alpha": 1.0, "seed": 2})
    {'relabel': {'tau': 0.1}, 'data': {'partition': {'alpha': 1.0}}, 'seed': 2}
    """
    table: dict[str, Any] = {}
    for dotted, value in values.items():
        *path, key = dotted.split(".")
        place = table
        for part in path:
            place = place.setdefault(part, {})
        place[key] = value
    return table
