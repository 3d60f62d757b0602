"""How long many runs will take: rounds that are left, each with the seconds that one like it has taken so far."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedrela.experiment.grid import Grid, Progress, Task


class Pace:
    """Watches the rounds of a grid and estimates what is left.

    Parameters
    ----------
    grid
        What is run; what is finished when the watch begins takes no time.
    """

    def __init__(self, grid: Grid) -> None:
        from fedrela.experiment.shared_rounds import grown

        cells = {task for task in grid.tasks if task.cell is not None and not grid.is_done(task.cell)}
        trunks = {task for task in grid.tasks if task.cell is None and grown(task.out) is None}
        self._tasks = [task for task in grid.tasks if task in cells | trunks]
        self._rounds: dict[Hashable, int] = {}
        self._seconds: dict[Hashable, float] = {}
        self._now = time.monotonic()

    def seconds_left(self, progress: Progress) -> float:
        """Take in a round that was just done, and return the seconds that all later ones will take."""
        before, self._now = self._now, time.monotonic()
        task, kind = progress.task, _kind(progress.task)
        self._rounds[kind] = self._rounds.get(kind, 0) + 1
        self._seconds[kind] = self._seconds.get(kind, 0.0) + self._now - before
        later = self._tasks[self._tasks.index(task) + 1 :]
        left = (task.last - progress.done.record.round) * self._of_a_round(task)
        return left + sum(each.rounds * self._of_a_round(each) for each in later)

    def _of_a_round(self, task: Task) -> float:
        """Return the mean seconds of a round of its kind, or of all rounds where there was none of its kind yet."""
        kind = _kind(task)
        if kind in self._rounds:
            return self._seconds[kind] / self._rounds[kind]
        return sum(self._seconds.values()) / sum(self._rounds.values())


def _kind(task: Task) -> Hashable:
    """Return what the time of a round depends on most."""
    return task.baseline, task.config.data.source, task.config.model.name
