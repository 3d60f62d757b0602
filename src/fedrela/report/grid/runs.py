"""The runs of a grid, read once for all sections of its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.report.run.story import Story
from fedrela.runfolder.grids import GridFolder

Cell = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Runs:
    """All cells of a grid, and what the finished ones among them say."""

    cells: Sequence[Cell]
    stories: Sequence[Story | None]

    @classmethod
    def read(cls, folder: GridFolder) -> Runs:
        """Read every finished run."""
        found: dict[str, Story | None] = {}
        for cell in folder.cells:
            if cell["folder"] not in found:  # two cells of one configuration are one run
                done = (folder.place(cell) / "result.json").exists()
                found[cell["folder"]] = Story.read(folder.run_folder(cell), samples=False) if done else None
        return cls(folder.cells, [found[cell["folder"]] for cell in folder.cells])

    @property
    def any(self) -> Story | None:
        """Some finished run."""
        return next((story for story in self.stories if story is not None), None)

    @property
    def missing(self) -> int:
        """How many runs are not finished."""
        return sum(story is None for story in self.stories)

    def of(self, baseline: str, arm: str) -> list[Story]:
        """Return the finished runs of a baseline and arm, one a seed."""
        found = zip(self.cells, self.stories, strict=True)
        return [
            story for cell, story in found if story is not None and (cell["baseline"], cell["arm"]) == (baseline, arm)
        ]


def mean_over_seeds(
    stories: Sequence[Story], values: Callable[[Story], Sequence[float | None]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of a row of values over runs; NaN where a run has none."""
    rows = np.array([[np.nan if value is None else value for value in values(story)] for story in stories], np.float64)
    deviation = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.full(rows.shape[1], np.nan)
    return rows.mean(axis=0), deviation


def numbers(values: NDArray[np.float64]) -> list[float | None]:
    """Return values as a chart takes them, None for NaN."""
    return [None if np.isnan(value) else float(value) for value in values]
