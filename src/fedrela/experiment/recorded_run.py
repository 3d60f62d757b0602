"""A run and its folder: rounds are written as they finish, checkpoints at intervals, results at the end.

The results are the scores of the final model, a record of re-labelling for the report, and a gallery of moved samples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core import Ledger
from fedrela.engine.checkpoint import restore_checkpoint, save_checkpoint
from fedrela.engine.evaluation import evaluate, evaluate_at_threshold, evaluate_locally
from fedrela.engine.problem import Problem
from fedrela.engine.round import next_round
from fedrela.engine.round_result import RoundResult
from fedrela.engine.run import Run, ServerState
from fedrela.errors import IntegrityError, TooFewClientsError
from fedrela.experiment.result import Result
from fedrela.files import array_bytes, read_plain
from fedrela.metrics import Z_EDGES, headline
from fedrela.runfolder import RunFolder, RunStatus
from fedrela.runfolder.json_records import writing
from fedrela.runfolder.names import GALLERY, LIMIT, RELABELLING
from fedrela.streams import stream


@dataclass
class RecordedRun:
    """A run that is recorded in a locked folder."""

    run: Run
    folder: RunFolder
    every: int  # rounds between checkpoints; the last round always has one
    gallery: int  # moved samples to show in the report; 0 for none
    config_sha256: str
    note: str = ""  # why a newer checkpoint was skipped

    def restore(self) -> None:
        """Return to the newest valid checkpoint, or to the beginning; later records are removed.

        A finished run must still have its last one; otherwise this raises an `IntegrityError` and changes nothing.
        """
        done = self.folder.status is RunStatus.DONE
        saved = self.folder.final_checkpoint() if done else self.folder.load_checkpoint()
        if saved is not None:
            restore_checkpoint(self.run, saved)
            self.note = saved.note
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
                    self.run.problem.named(client, ledger).save(self.folder.ledger_path(client), overwrite=True)
            self.folder.append_timing(vars(done.timing))
            self.folder.append_round(done.record.as_record())
            if done.record.round % self.every == 0 or done.record.round == last:
                save_checkpoint(self.run, self.folder)
            yield done

    def complete(self) -> Result:
        """Run all rounds that are left, and finish."""
        for _ in self.rounds():
            pass
        return self.finish()

    def finish(self) -> Result:
        """Score the final model, write all results and return them."""
        run, folder = self.run, self.folder
        if run.state.skipped >= run.state.round > 0:
            few = f"all {run.state.round} rounds had fewer than {run.plan.train.min_clients} usable updates"
            raise TooFewClientsError(f"{folder.path}: {few}: the model is untrained; see excluded in rounds.jsonl")
        ledgers = self._ledgers()
        found = relabelling_record(run.problem, run.state, ledgers)
        hidden: dict[str, Any] = {"moved": None} if run.executor.remote_clients else {}
        if run.problem.private:  # what the nodes have is unknown here
            hidden |= {"before": [], "after": [], "counts": []}
        folder.write_json(RELABELLING, found | hidden)
        if self.gallery:
            folder.write(GALLERY, gallery_bytes(run.problem, ledgers, self.gallery, run.plan.seed))
        result = self._result()
        folder.finish(result)
        return Result(folder.path, result)

    def _result(self) -> dict[str, Any]:
        run, problem = self.run, self.run.problem
        scores = evaluate(run)
        record = {} if scores is None else scores.as_record()
        tested = np.bincount(problem.y_test, minlength=problem.num_classes)
        if scores is not None and problem.held_by_clients == "test":
            tested = scores.confusion.sum(axis=1)
        names = ("overall", "balanced", "per_class", "groups", "auroc", "auprc")
        result: dict[str, Any] = {
            "accuracy": {name: record[name] for name in names if name in record},
            "macro_f1": record.get("macro_f1"),
            "confusion": record.get("confusion"),
            "loss": record.get("loss"),
            "headline": headline(tested),
            "moved": None if run.executor.remote_clients else sum(run.state.moved.values()),
            "rounds": run.state.round,
            "weights_sha256": run.arrays.layout.sha256(run.state.weights),
            "config_sha256": self.config_sha256,
        }
        validation = evaluate(run, "validation")
        if validation is not None:
            result["validation"] = validation.as_record()
        at_threshold = evaluate_at_threshold(run)
        if at_threshold is not None:
            result["at_threshold"] = at_threshold
        if run.plan.train.local_test:
            result["local"] = evaluate_locally(run)
        return result

    def _ledgers(self) -> dict[int, Ledger]:
        """Return every client's ledger from the folder; they must match the state of the run."""
        run, ledgers = self.run, {}
        for client, path in self.folder.ledgers():
            ledgers[client] = ledger = Ledger.load(path)
            rows = run.problem.shards[client].train if client < run.clients else np.zeros(0, np.int64)
            same = np.array_equal(ledger.original, run.problem.y_train[rows])
            same = same and np.array_equal(ledger.labels, run.current_labels[rows])
            if not same or read_plain(path, LIMIT) != ledger.as_bytes():
                raise IntegrityError(f"{path}: is not the ledger that this run wrote; it was changed or damaged")
        if {client: len(ledger) for client, ledger in ledgers.items()} != run.state.moved:
            raise IntegrityError(f"{self.folder.path}: the ledgers are not those of this run")
        return ledgers


def relabelling_record(problem: Problem, state: ServerState, ledgers: dict[int, Ledger]) -> dict[str, Any]:
    """Return moves, histograms of scores and thresholds, over all clients and of each.

    Keys: ``flow`` (C, C) moves; ``before`` and ``after``, training samples of each class; ``expected`` moves into each
    class; ``bound``, the most that can move into one, floor(tau n) per client; ``z``: bin edges and counts per
    class; ``clients``: samples, moves, round, threshold, notes and refusal of each; ``counts``: per client pairs of a
    class and its number of training samples, with their original labels.
    """
    C = problem.num_classes
    flow = sum((ledger.flow for ledger in ledgers.values()), np.zeros((C, C), np.int64))
    before = np.bincount(problem.y_train[np.concatenate([s.train for s in problem.shards])], minlength=C)
    metrics = [state.relabel_metrics[client] for client in sorted(state.relabel_metrics)]
    histogram = sum((np.array(m["histogram"]) for m in metrics), np.zeros((C, len(Z_EDGES) + 1), np.int64))
    expected = sum((np.array(m["expected"]) for m in metrics), np.zeros(C))
    return {
        "classes": list(problem.class_names),
        "moved": int(flow.sum()),
        "flow": flow.tolist(),
        "before": before.tolist(),
        "after": (before - flow.sum(axis=1) + flow.sum(axis=0)).tolist(),
        "expected": expected.tolist(),
        "bound": sum(int(_largest_tau(each) * each.original.size) for each in ledgers.values()),
        "z": {"edges": list(Z_EDGES), "counts": histogram.tolist()},
        "clients": {str(client): _client(state.relabel_metrics[client], ledgers[client]) for client in sorted(ledgers)},
        "counts": [_counts(problem.y_train[shard.train]) for shard in problem.shards],
    }


def _largest_tau(ledger: Ledger) -> float:
    own: Mapping[str, float] = ledger.options.get("class_tau") or {}
    return max([float(ledger.options.get("tau", 0.0)), *own.values()])


def _counts(labels: NDArray[np.int64]) -> list[list[int]]:
    classes, numbers = np.unique(labels, return_counts=True)
    return [[int(c), int(n)] for c, n in zip(classes, numbers, strict=True)]


def _client(metrics: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
    return {
        "round": metrics["round"],
        "samples": metrics["samples"],
        "moved": len(ledger),
        "threshold": metrics["threshold"],
        "notes": list(ledger.notes),
        "refusal": ledger.refusal,
    }


def gallery_bytes(problem: Problem, ledgers: dict[int, Ledger], size: int, seed: int) -> bytes:
    """Return an npz with the moved samples of largest probability from the clients in turn, and others drawn at random.

    Arrays: ``samples`` (raw pictures, or table rows), ``client``, ``old``, ``new``, ``posterior``, ``rho``; those drawn
    at random, which follow from the seed, have ``drawn_`` before each name.
    """
    arrays: dict[str, NDArray[Any]] = {}
    kinds = {"old": None, "new": None, "posterior": float, "rho": float}
    for prefix, chosen in (("", _in_turn(ledgers, size)), ("drawn_", _drawn(ledgers, size, seed))):
        for name, kind in kinds.items():
            arrays[prefix + name] = np.array([getattr(ledgers[c], name)[i] for c, i in chosen], kind)
        ids = [problem.shards[c].train[ledgers[c].index[i]] for c, i in chosen]
        arrays[prefix + "samples"] = np.asarray(problem.x_train[np.array(ids, np.int64)])
        arrays[prefix + "client"] = np.array([client for client, _ in chosen], np.int64)
    return array_bytes(arrays)


def _drawn(ledgers: dict[int, Ledger], size: int, seed: int) -> list[tuple[int, int]]:
    """Return (client, place in its ledger) of moves drawn at random, each at most once."""
    moves = [(client, i) for client, ledger in sorted(ledgers.items()) for i in range(len(ledger.rho))]
    order = stream(seed, "gallery").permutation(len(moves))[:size]
    return [moves[k] for k in order.tolist()]


def _in_turn(ledgers: dict[int, Ledger], size: int) -> list[tuple[int, int]]:
    """Return (client, place in its ledger): each client's most probable move, then each one's second, and so on."""
    ranked = {client: np.argsort(-ledger.rho, kind="stable") for client, ledger in sorted(ledgers.items())}
    longest = max((len(order) for order in ranked.values()), default=0)
    pairs = ((client, int(order[k])) for k in range(longest) for client, order in ranked.items() if k < len(order))
    return list(itertools.islice(pairs, size))
