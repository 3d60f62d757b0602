"""One progress bar for all long work; where nobody looks on, nothing is written."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from fedrela.cli.show import inert

LONGEST = 40  # characters of what is being done


class Bar:
    """A bar that starts again with every stage of the work."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress = progress
        self._what = what
        self._done = 0
        self._task = progress.add_task(_words(what), total=None)

    def count(self, done: int, total: int | None, what: str) -> None:
        """Show how much of `what` is done: the callback of data sources."""
        if what != self._what or done < self._done:
            self._progress.reset(self._task, description=_words(what))
        self._progress.update(self._task, completed=done, total=total)
        self._what, self._done = what, done

    def receive(self, done: int, total: int | None) -> None:
        """Show how many bytes are done: the callback of `fedrela.data.fetch`."""
        self.count(done, total, self._what)


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Bar]:
    """Give a bar on standard error, which vanishes at the end; without a terminal nothing is ever written."""
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, markup=False, emoji=False, highlight=False),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with progress:
        yield Bar(progress, what)


def _words(what: str) -> str:
    return inert(what, LONGEST)
