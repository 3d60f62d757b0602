"""A run as somebody looks on: where it is carried out, its rounds on the screen, and in TensorBoard."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fedrela.cli.live import lost_clients, many, show_rounds
from fedrela.cli.show import inert, say
from fedrela.records import RoundRecord

if TYPE_CHECKING:
    from fedrela.experiment.recorded_run import Execution
    from fedrela.experiment.summary import Standing
    from fedrela.report.board import Board

TensorBoard = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write events for TensorBoard here.", show_default=False)
]


def open_board(path: Path | None) -> Board | None:
    """Return what writes for TensorBoard, where that is wanted; what stands in its way is told before a run begins."""
    if path is None:
        return None
    from fedrela.report.board import Board

    return Board(path)


class Watch(contextlib.ExitStack):
    """Shows a run; called with it before its first round, and after each."""

    def __init__(self, screen: Console, board: Board | None) -> None:
        super().__init__()
        self._screen, self._board = screen, board
        self._standing: Standing | None = None
        self._show: Callable[[], None] = lambda: None

    def __call__(self, execution: Execution, done: RoundRecord | None) -> None:
        """Show the beginning, or a round."""
        if done is None or self._standing is None:
            self._begin(execution)
            return
        self._standing.add(done)
        self._show()
        if self._board:
            self._board.add_round(done.as_record())

    @property
    def lost(self) -> str:
        """Which clients were lost, where some were."""
        return "" if self._standing is None else lost_clients(self._standing)

    def finish(self, folder: Path, rounds: int) -> None:
        """Add what only a finished run has."""
        if self._board:
            from fedrela.report.board import run_figures
            from fedrela.runfolder import RunFolder

            self._board.add_figures(run_figures(RunFolder.open(folder)), rounds)

    def _begin(self, execution: Execution) -> None:
        from fedrela.experiment.summary import Standing

        for line in _facts(execution):
            say(self._screen, inert(line))
        plan = execution.run.plan
        self._standing = Standing.after(execution.folder.rounds(), plan.train.rounds)
        mark = plan.relabel.schedule.first(plan.train.rounds) if plan.relabel.enabled else None
        self._show = self.enter_context(show_rounds(self._screen, self._standing, mark))


def _facts(execution: Execution) -> Iterator[str]:
    """Yield where and how a run is carried out."""
    run, done = execution.run, execution.run.state.round
    who = "clients on Flower" if run.executor.remote_clients else many(run.executor.size, "worker")
    yield f"run folder {execution.folder.path}; {who}" + (f"; goes on after round {done}" if done else "")
    if run.note:
        yield f"note: {run.note}"
    if note := execution.folder.manifest["data"]["note"]:
        yield f"note: partition: {note}"
