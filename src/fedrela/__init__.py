"""FedReLa (ICML 2026): re-labelling against class imbalance in federated learning.

>>> import fedrela
>>> sorted(fedrela.__all__)[:4]
['Ledger', 'Preview', 'Relabeler', 'Relabelling']

Importing this package loads nothing else; its functions and sub-packages load what they need when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrela.core import Ledger, Preview, Relabelling, Schedule, preview, relabel, undo
    from fedrela.plugin.relabeler import Relabeler

__version__ = "0.2.0"
__all__ = ["Ledger", "Preview", "Relabeler", "Relabelling", "Schedule", "preview", "relabel", "undo"]

_SUBPACKAGES = (
    "algorithms", "core", "data", "engine", "errors", "experiment", "flower", "losses", "metrics", "models", "plots",
    "plugin", "report", "reproduction", "testing", "theory",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = "plugin.relabeler" if name == "Relabeler" else "core"
        value = globals()[name] = getattr(importlib.import_module(f"fedrela.{module}"), name)
        return value
    if name in _SUBPACKAGES:
        return importlib.import_module(f"fedrela.{name}")
    raise AttributeError(f"module 'fedrela' has no attribute {name!r}")
