"""A run and its folder: rounds are written as they are done, checkpoints at intervals, results at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrela.core import Ledger
from fedrela.engine import checkpoint
from fedrela.engine.evaluation import evaluate, evaluate_locally
from fedrela.engine.round import RoundResult, next_round
from fedrela.engine.state import Run
from fedrela.errors import IntegrityError
from fedrela.experiment.relabelling_record import gallery_bytes, relabelling_record
from fedrela.experiment.result import Result
from fedrela.metrics import headline
from fedrela.runfolder import RunFolder
from fedrela.runfolder.records import writing


@dataclass
class RecordedRun:
    """A run that is recorded in a locked folder.

    Attributes
    ----------
    run, folder
        The run, and where it is written.
    every
        Rounds between checkpoints; the last round always has one.
    gallery
        How many moved samples to show in the report; 0 for none.
    config_sha256
        Digest of the configuration.
    """

    run: Run
    folder: RunFolder
    every: int
    gallery: int
    config_sha256: str

    def restore(self) -> None:
        """Go back to the newest sound checkpoint, or to the beginning; what was written later is cut off."""
        saved = self.folder.load_checkpoint()
        if saved is not None:
            checkpoint.restore(self.run, saved)
        state = self.run.state
        self.folder.truncate_rounds(state.round)
        self.folder.clear_ledgers([client for client in range(self.run.clients) if client not in state.relabelled])

    def rounds(self, last: int | None = None) -> Iterator[RoundResult]:
        """Run round after round, up to the last one, and yield each when it is written."""
        last = self.run.plan.train.rounds if last is None else last
        lost = self.folder.exclusions()
        while self.run.state.round < last:
            done = next_round(self.run, self.folder, lost.get(self.run.state.round + 1))
            with writing(self.folder.path):
                for client, ledger in sorted(done.ledgers.items()):
                    ledger.save(self.folder.ledger_path(client), overwrite=True)
            self.folder.append_timing(done.timing.as_record())
            self.folder.append_round(done.record.as_record())
            if done.record.round % self.every == 0 or done.record.round == last:
                checkpoint.save(self.run, self.folder)
            yield done

    def complete(self) -> Result:
        """Run all rounds that are left, and finish."""
        for _ in self.rounds():
            pass
        return self.finish()

    def finish(self) -> Result:
        """Score the final model, write all findings and return the result."""
        run, folder = self.run, self.folder
        ledgers = self._ledgers()
        found = relabelling_record(run.problem, run.state, ledgers)
        folder.write_json("relabelling.json", found | ({"moved": None} if run.executor.remote_clients else {}))
        if self.gallery:
            folder.write("gallery.npz", gallery_bytes(run.problem, ledgers, self.gallery))
        result = self._result()
        folder.finish(result)
        return Result(folder.path, result)

    def _result(self) -> dict[str, Any]:
        run, problem = self.run, self.run.problem
        scores = evaluate(run)
        record = {} if scores is None else scores.as_record()
        names = ("overall", "balanced", "per_class", "groups", "auroc", "auprc")
        result: dict[str, Any] = {
            "accuracy": {name: record[name] for name in names if name in record},
            "macro_f1": record.get("macro_f1"),
            "confusion": record.get("confusion"),
            "loss": record.get("loss"),
            "headline": headline(np.bincount(problem.y_test, minlength=problem.num_classes)),
            "moved": None if run.executor.remote_clients else sum(run.state.moved.values()),
            "rounds": run.state.round,
            "weights_sha256": run.arrays.layout.sha256(run.state.weights),
            "config_sha256": self.config_sha256,
        }
        validation = evaluate(run, "validation")
        if validation is not None:
            result["validation"] = validation.as_record()
        if run.plan.train.local_test:
            result["local"] = evaluate_locally(run)
        return result

    def _ledgers(self) -> dict[int, Ledger]:
        """Return every client's ledger as it lies in the folder; it must say what the run did."""
        ledgers = {client: Ledger.load(path) for client, path in self.folder.ledgers()}
        moved = {client: len(ledger) for client, ledger in ledgers.items()}
        if moved != self.run.state.moved:
            raise IntegrityError(f"{self.folder.path}: the ledgers are not those of this run")
        return ledgers
