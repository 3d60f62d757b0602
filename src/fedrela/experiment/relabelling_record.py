"""What a run records about re-labelling: metrics for the report, and a gallery of moved samples."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.core import Ledger
from fedrela.engine.problem import Problem
from fedrela.engine.state import ServerState
from fedrela.metrics import Z_EDGES

GALLERY = 24  # samples


def relabelling_record(problem: Problem, state: ServerState, ledgers: dict[int, Ledger]) -> dict[str, Any]:
    """Return moves, histograms of scores and thresholds, over all clients and of each.

    Keys: ``flow`` (C, C) moves; ``before`` and ``after``, training samples of each class; ``expected`` moves into each
    class; ``bound``, how many could move into one at most; ``z``: bin edges and counts for each class; ``clients``:
    samples, moves, round, threshold, notes and refusal of each; ``counts``: for each client pairs of a class and its
    number of training samples, with their original labels.
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
        "bound": int(sum(_bound(ledger) for ledger in ledgers.values())),
        "z": {"edges": list(Z_EDGES), "counts": histogram.tolist()},
        "clients": {str(client): _client(state.relabel_metrics[client], ledgers[client]) for client in sorted(ledgers)},
        "counts": [_counts(problem.y_train[shard.train]) for shard in problem.shards],
    }


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


def _bound(ledger: Ledger) -> int:
    """Return floor(tau n): as many samples may move into one class."""
    return int(float(ledger.options.get("tau", 0.0)) * ledger.original.size)


def gallery_bytes(problem: Problem, ledgers: dict[int, Ledger], size: int = GALLERY) -> bytes:
    """Return an npz with the moved samples of largest probability, drawn from the clients in turn.

    Arrays: ``samples`` (raw pictures, or table rows), ``client``, ``old``, ``new``, ``posterior``, ``rho``.
    """
    chosen = _in_turn(ledgers, size)
    columns = {name: np.array([getattr(ledgers[c], name)[i] for c, i in chosen]) for name in ("old", "new")}
    columns |= {
        name: np.array([getattr(ledgers[c], name)[i] for c, i in chosen], float) for name in ("posterior", "rho")
    }
    ids = [problem.shards[c].train[ledgers[c].index[i]] for c, i in chosen]
    samples: NDArray[Any] = np.asarray(problem.x_train[np.array(ids, np.int64)])
    buffer = io.BytesIO()
    clients = np.array([client for client, _ in chosen], np.int64)
    np.savez(buffer, allow_pickle=False, samples=samples, client=clients, **columns)
    return buffer.getvalue()


def _in_turn(ledgers: dict[int, Ledger], size: int) -> list[tuple[int, int]]:
    """Return (client, place in its ledger): each client's most probable move, then each one's second, and so on."""
    ranked = {client: np.argsort(-ledger.rho, kind="stable") for client, ledger in sorted(ledgers.items())}
    longest = max((len(order) for order in ranked.values()), default=0)
    turns = ((client, int(order[k])) for k in range(longest) for client, order in ranked.items() if k < len(order))
    return [pair for pair, _ in zip(turns, range(size), strict=False)]
