"""From a description of an experiment to its result: the composition root.

>>> from fedrela.experiment import run
>>> callable(run)
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrela.experiment.comparison import Comparison as Comparison
    from fedrela.experiment.comparison import compare as compare
    from fedrela.experiment.result import Result as Result
    from fedrela.experiment.runner import begin as begin
    from fedrela.experiment.runner import resume as resume
    from fedrela.experiment.runner import run as run
    from fedrela.experiment.sweeps import Sweep as Sweep
    from fedrela.experiment.sweeps import sweep as sweep

__all__ = ["Comparison", "Result", "Sweep", "begin", "compare", "resume", "run", "sweep"]

# A configuration is checked without torch, which these need; so they are loaded when they are first asked for.
_HOMES = {
    "Comparison": "comparison", "Result": "result", "begin": "runner", "compare": "comparison",
    "resume": "runner", "run": "runner", "Sweep": "sweeps", "sweep": "sweeps",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"fedrela.experiment.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'fedrela.experiment' has no attribute {name!r}")
