"""A run of the engine over a Flower grid.

The engine's own round samples by our client ids, holds exchanges, admits, sums in sorted order and float64, scores and
writes the run folder; this class puts a Flower grid in the place of its workers, and keeps in which round each client
was last admitted. It is no subclass of Flower's ``Strategy``: that one sums in order of arrival, ends a run with one
malformed reply, and waits for ever for a missing node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from flwr.serverapp import Grid

from fedrela.engine.round import RoundResult
from fedrela.flower.executor import FlowerExecutor
from fedrela.records import RoundRecord


class Execution(Protocol):
    """A run in its folder, as `fedrela.experiment.begin` and `resume` give it."""

    every: int
    folder: Any

    def rounds(self) -> Iterator[RoundResult]:
        """Carry out round after round."""

    def finish(self) -> Any:
        """Score the final model and write the result."""


class FedrelaStrategy:
    """Any algorithm of ours on a Flower grid.

    Parameters
    ----------
    grid
        What a ``ServerApp`` is given.
    experiment, fingerprint, patience
        As for `FlowerExecutor`.

    Examples
    --------
    In a ``ServerApp``, with the composition root that `fedrela export-flower` writes::

        strategy = FedrelaStrategy(grid, experiment="clinic", fingerprint=config_sha256(config))
        with begin(config, out=folder, executor=strategy.executor) as execution:
            result = strategy.start(execution)
    """

    def __init__(self, grid: Grid, *, experiment: str, fingerprint: str, patience: float = 600.0) -> None:
        self.executor = FlowerExecutor(grid, experiment=experiment, fingerprint=fingerprint, patience=patience)

    def start(self, execution: Execution, watch: Callable[[RoundRecord | None], None] | None = None) -> Any:
        """Carry out all rounds that are left, and return the result; `watch` is called before and after each."""
        records = execution.folder.rounds()
        self._note_admitted(execution, map(RoundRecord.from_record, records))
        self.executor.durable = len(records)  # a run begins at its newest checkpoint, and what came later is cut off
        tell = watch or (lambda done: None)
        tell(None)
        for done in execution.rounds():
            self._note_admitted(execution, [done.record])
            tell(done.record)
        return execution.finish()

    def _note_admitted(self, execution: Execution, records: Iterable[RoundRecord]) -> None:
        for record in records:
            self.executor.admitted |= dict.fromkeys(record.admitted, record.round)
            if record.round % execution.every == 0:
                self.executor.durable = record.round
