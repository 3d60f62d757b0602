"""Every algorithm with parameters that keep it quick, for batteries over all of them. Workers import this module."""

from __future__ import annotations

from functools import partial
from typing import Any

from fedrela.algorithms import ALGORITHMS, Algorithm

QUICK: dict[str, dict[str, Any]] = {
    "climb": {"primal_steps": 1},
    "creff": {"retrain_epochs": 2, "match_steps": 2, "features": 8, "repeats": 2},
    "fedloge": {"frame_steps": 20},
    "ratioloss": {"probe": 6, "probe_epochs": 1},
}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "climb": [{"core": "fedavg", "primal_steps": 2}],
    "fedavg": [{"server": "momentum"}, {"server": "adam", "server_lr": 0.01}],
    "fedetf": [{"bn_mode": "none"}, {"bn_mode": "official"}],
    "fedgrab": [{"head": "frozen", "tail": "all", "order": "id"}],
    "fedloge": [
        {"scored": "frame", "frame_bias": "official", "frame_steps": 20},
        {"local_classes": "own", "frame_steps": 20},
    ],
    "fedmix": [{"group": 4, "second_order": False}],
    "fednova": [{"mu": 0.01, "gmf": 0.5}, {"mu": 0.01, "counting": "as_run"}],
    "fedyoyo": [{"prior_mix": "recursive"}],
    "ratioloss": [{"rule": "port"}],
    "scaffold": [{"correction": "after_step", "weighting": "samples"}],
}


def quick(name: str, **params: Any) -> partial[Algorithm]:
    """Return what makes a quick one."""
    return partial(ALGORITHMS[name], **(QUICK.get(name, {}) | params))
