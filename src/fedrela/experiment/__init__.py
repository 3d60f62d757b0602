"""From a description of an experiment to its result: the composition root.

>>> from fedrela.experiment import run
>>> callable(run)
True
"""

from __future__ import annotations

import gc
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrela.engine.executors import open_executor, start_early
    from fedrela.experiment.comparison import Comparison, compare
    from fedrela.experiment.result import Result
    from fedrela.experiment.runner import begin, resume, run
    from fedrela.experiment.sweeps import Sweep, sweep

# A configuration is checked without torch, which these need, so they are loaded on first use.
_HOMES = {
    "Comparison": "experiment.comparison", "Result": "experiment.result", "Sweep": "experiment.sweeps",
    "begin": "experiment.runner", "compare": "experiment.comparison", "open_executor": "engine.executors",
    "resume": "experiment.runner", "run": "experiment.runner", "start_early": "engine.executors",
    "sweep": "experiment.sweeps",
}  # fmt: skip

__all__ = [
    "Comparison", "Result", "Sweep", "begin", "compare", "open_executor", "resume", "run", "start_early", "sweep",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fedrela.experiment' has no attribute {name!r}")
    collecting = gc.isenabled()
    gc.disable()  # nothing becomes garbage while modules load, and torch has many objects to go through
    try:
        return getattr(importlib.import_module(f"fedrela.{_HOMES[name]}"), name)
    finally:
        if collecting:
            gc.enable()
