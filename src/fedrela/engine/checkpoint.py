"""A run's whole state as a checkpoint: saved after a round, and restored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.engine.problem import STATE
from fedrela.engine.run import Run
from fedrela.errors import ArgumentError, IntegrityError
from fedrela.runfolder import Checkpoint, RunFolder


def save_checkpoint(run: Run, folder: RunFolder) -> None:
    """Write the whole state after the round just done, as named arrays and one record."""
    state = run.state
    moved = np.flatnonzero(run.current_labels != run.problem.y_train)
    arrays: dict[str, NDArray[Any]] = {"weights": state.weights, "has_state": state.has_state}
    arrays |= {"moves.sample": moved, "moves.label": run.current_labels[moved]}
    arrays |= {f"server.{name}": array for name, array in state.server.items()}
    ids = np.flatnonzero(state.has_state)
    if run.stores_client_state and ids.size:
        rows = [run.memory["client_state"].row(int(client)) for client in ids]
        arrays |= {f"{STATE}{name}": np.stack([row[name] for row in rows]) for name in rows[0]}
    record = {
        "remote_clients": run.executor.remote_clients,
        "skipped": state.skipped,
        "relabelled": {str(client): round for client, round in sorted(state.relabelled.items())},
        "moved": {str(client): number for client, number in sorted(state.moved.items())},
        "relabel_metrics": {str(client): metrics for client, metrics in sorted(state.relabel_metrics.items())},
    }
    folder.save_checkpoint(state.round, arrays, record)


def restore_checkpoint(run: Run, checkpoint: Checkpoint) -> None:
    """Put a run into the state of a checkpoint; raise an `IntegrityError` if it does not fit the run."""
    remote = bool(checkpoint.record.get("remote_clients"))
    if remote != run.executor.remote_clients:
        engine = "on a Flower grid" if remote else "with the embedded engine"
        raise ArgumentError(f"checkpoint of round {checkpoint.round}: its clients run {engine}; resume it {engine}")
    try:
        _restore(run, checkpoint)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise IntegrityError(f"checkpoint of round {checkpoint.round}: does not fit this run: {error}") from None


def _restore(run: Run, checkpoint: Checkpoint) -> None:
    state, arrays, record = run.state, checkpoint.arrays, checkpoint.record
    run.arrays.layout.check_vector(arrays["weights"])
    if arrays["has_state"].shape != state.has_state.shape:
        raise ValueError(f"{len(arrays['has_state'])} clients, not {run.clients}")
    state.round = checkpoint.round
    state.weights = np.array(arrays["weights"])
    state.has_state = np.array(arrays["has_state"]) if run.stores_client_state else np.zeros(run.clients, bool)
    state.server = {k.removeprefix("server."): np.array(a) for k, a in arrays.items() if k.startswith("server.")}
    for number, client in enumerate(np.flatnonzero(state.has_state)):
        for name, array in run.memory["client_state"].row(int(client)).items():
            array[...] = arrays[f"{STATE}{name}"][number]
    run.current_labels[...] = run.problem.y_train
    run.current_labels[arrays["moves.sample"]] = arrays["moves.label"]
    state.skipped = int(record["skipped"])
    state.relabelled = {int(client): int(round) for client, round in record["relabelled"].items()}
    state.moved = {int(client): int(number) for client, number in record["moved"].items()}
    state.relabel_metrics = {int(client): dict(metrics) for client, metrics in record["relabel_metrics"].items()}
