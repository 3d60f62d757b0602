"""A configuration with some keys changed: the basis of baselines, arms, seeds and swept values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedrela.experiment.load import parse_config
from fedrela.experiment.schema import Config

SEVERAL = ("compare", "sweep")  # tables about several runs, which no single run has
CHOOSERS = ("name", "kind")  # a new choice replaces the whole table, whose other keys belonged to the old one
BELONGS = {"source": ("options", "root"), "method": ("params",)}  # keys dropped when this key changes


def overlay(config: Config, changes: Mapping[str, Any]) -> Config:
    r"""Return one run's configuration: what was given, with `changes` laid over it as by `laid_over`.

    The tables ``[compare]`` and ``[sweep]`` do not belong to a run.

    >>> config = parse_config("[algorithm]\nname = 'fedprox'\nmu = 0.1\n[relabel]\ntau = 0.1")
    >>> changed = overlay(config, {"algorithm": {"name": "fedavg"}, "relabel": {"start": 0.5}})
    >>> changed.algorithm.params, changed.relabel.tau, changed.relabel.start
    ({}, 0.1, 0.5)
    """
    given = config.model_dump(exclude_unset=True)
    table = {key: value for key, value in given.items() if key not in SEVERAL}
    folder = Path(config.origin.name).parent
    return parse_config(laid_over(table, changes, config.as_table()), name=config.origin.name, folder=folder)


def laid_over(
    table: Mapping[str, Any], changes: Mapping[str, Any], usual: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a table with changes laid over it, key by key and table by table.

    A change that chooses another ``name`` or ``kind`` replaces its whole table, and another ``source`` or ``method``
    what belonged to the old one. `usual` has the values of tables that were left out.

    >>> laid_over({"model": {"name": "mlp", "hidden": [9]}, "seed": 1}, {"model": {"name": "cnn"}})
    {'model': {'name': 'cnn'}, 'seed': 1}
    >>> laid_over({"source": "csv", "options": {"label": "y"}, "validation": 0.1}, {"source": "digits"})
    {'source': 'digits', 'validation': 0.1}
    """
    dropped = {key for chooser, keys in BELONGS.items() if _chooses(table, changes, (chooser,)) for key in keys}
    merged = {key: value for key, value in table.items() if key not in dropped}
    for key, value in changes.items():
        there, default = merged.get(key), (usual or {}).get(key)
        if there is None and isinstance(default, Mapping) and key not in dropped:
            there = default
        if isinstance(value, Mapping) and isinstance(there, Mapping) and not _chooses(there, value, CHOOSERS):
            value = laid_over(there, value, default if isinstance(default, Mapping) else {})
        merged[key] = value
    return merged


def _chooses(there: Mapping[str, Any], change: Mapping[str, Any], choosers: Iterable[str]) -> bool:
    return any(key in change and change[key] != there.get(key) for key in choosers)


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
