"""FedReLa for any PyTorch training loop, without Flower: `OneShot` is all that most people need.

Importing this package loads no PyTorch; the names below do, when they are first used.

>>> from fedrela.plugin import Policy
>>> Policy(max_fraction=0.1).stricter(Policy()).max_fraction
0.1
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrela.plugin.dataset import RelabeledDataset, relabeled_loader
    from fedrela.plugin.oneshot import OneShot
    from fedrela.plugin.policy import Policy, read_policy
    from fedrela.plugin.scoring import posterior
    from fedrela.plugin.store import LabelStore

__all__ = ["LabelStore", "OneShot", "Policy", "RelabeledDataset", "posterior", "read_policy", "relabeled_loader"]

_HOMES = {
    "LabelStore": "store", "OneShot": "oneshot", "Policy": "policy", "RelabeledDataset": "dataset",
    "posterior": "scoring", "read_policy": "policy", "relabeled_loader": "dataset",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"fedrela.plugin.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'fedrela.plugin' has no attribute {name!r}")
