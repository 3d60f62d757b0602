"""A tiny federation as a whole run: four clients, 120 made samples, a linear model, six rounds, re-labelling in the
fourth. Workers import this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrela.algorithms import Algorithm
from fedrela.experiment import begin, resume
from fedrela.runfolder import RunFolder
from helpers.throwaway import TwoHeads
from helpers.toy_run import compared

ROUNDS, RELABEL, CLIENTS = 6, 4, 4
CONFIG: dict[str, Any] = {
    "seed": 5,
    "data": {
        "source": "gaussians",
        "options": {"samples": [70, 38, 12], "test_samples": 20, "classes": 3, "dimension": 4},
        "partition": {"kind": "dirichlet", "clients": CLIENTS, "alpha": 1.0, "min_size": 10},
    },
    "model": {"name": "logistic"},
    "train": {"rounds": ROUNDS, "epochs": 1},
    "relabel": {"start": RELABEL, "tau": 0.2},
}


def nothing(what: str, round: int) -> None:
    """Hear how far a run is, and do nothing."""


@dataclass(frozen=True)
class Variant:
    """A run of the tiny federation.

    Attributes
    ----------
    algorithm
        Its name, or an algorithm itself.
    every
        Rounds between checkpoints.
    period
        Rounds from one re-labelling to the next; 0 for one alone.
    train
        What differs in the training table.
    """

    algorithm: str | Algorithm = "fedavg"
    every: int = 1
    period: int = 0
    train: tuple[tuple[str, Any], ...] = ()

    @property
    def config(self) -> dict[str, Any]:
        changes = {
            "algorithm": {"name": self.algorithm} if isinstance(self.algorithm, str) else {},
            "train": CONFIG["train"] | dict(self.train),
            "relabel": CONFIG["relabel"] | {"period": self.period},
            "engine": {"workers": 1, "checkpoint_every": self.every},
        }
        return CONFIG | changes

    def carry_on(
        self, path: Path, tell: Callable[[str, int], None] = nothing, workers: int = 1, last: int | None = None
    ) -> None:
        """Carry the run at `path` to its end, or to round `last`, from wherever it is; `tell` hears of each round."""
        parts: dict[str, Any] = {"workers": workers}
        parts["algorithm"] = self.algorithm if isinstance(self.algorithm, Algorithm) else None
        there = (path / "manifest.json").exists()
        with resume(path, **parts) if there else begin(self.config, out=path, **parts) as execution:
            assert execution.run.note == ""
            tell("begun", execution.run.state.round)
            for done in execution.rounds(last):
                tell("round", done.record.round)
            if last is None:
                execution.finish()


VARIANTS = {
    "fedavg every 1": Variant(),
    "fedprox every 2": Variant("fedprox", 2),
    "clients with a state, every 2, again and again": Variant(TwoHeads(), 2, period=1),
    "fedavg every 2": Variant(every=2),
    "fedprox every 1": Variant("fedprox"),
}


def everything(path: Path) -> dict[str, Any]:
    """Return all that is compared of a run folder: files byte for byte, and the newest checkpoint."""
    return {**compared(path), "checkpoint": newest(path)}


def newest(path: Path) -> tuple[Any, ...]:
    """Return the newest checkpoint of a run to the bit; every generation that is there must be sound."""
    saved = RunFolder.open(path).load_checkpoint()
    if saved is None:
        return ()
    assert saved.note == ""
    return saved.round, {name: bits(array) for name, array in saved.arrays.items()}, saved.record


def bits(array: np.ndarray) -> tuple[Any, ...]:
    """Return an array as what can be compared to the bit."""
    return array.dtype.str, array.shape, array.tobytes()


def difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Return the names of what differs between two runs, or nothing."""
    return ", ".join(name for name in sorted(found | wanted) if found.get(name) != wanted.get(name))
