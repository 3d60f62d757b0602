"""The whole state of a run as named arrays and one record, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.engine.run import Run
from fedrela.errors import ArgumentError, IntegrityError
from fedrela.runfolder import Checkpoint, RunFolder


def save(run: Run, folder: RunFolder) -> None:
    """Write a checkpoint of the round just done."""
    state = run.state
    arrays = {"weights": state.weights, "known": state.known, **_moves(run)}
    arrays |= {f"server.{name}": array for name, array in state.server.items()}
    ids = np.flatnonzero(state.known)
    if run.kept and ids.size:
        rows = [run.areas["kept"].views(int(client)) for client in ids]
        arrays |= {f"kept.{name}": np.stack([row[name] for row in rows]) for name in run.kept}
    record = {
        "remote_clients": run.executor.remote_clients,
        "skipped": state.skipped,
        "relabelled": {str(client): round for client, round in sorted(state.relabelled.items())},
        "moved": {str(client): number for client, number in sorted(state.moved.items())},
        "figures": {str(client): figures for client, figures in sorted(state.figures.items())},
    }
    folder.save_checkpoint(state.round, arrays, record)


def restore(run: Run, checkpoint: Checkpoint) -> None:
    """Put a run into the state of a checkpoint; one that does not fit the run is an `IntegrityError`."""
    elsewhere = bool(checkpoint.record.get("remote_clients"))
    if elsewhere != run.executor.remote_clients:
        clients = "elsewhere" if elsewhere else "here"
        raise ArgumentError(f"checkpoint of round {checkpoint.round}: its clients are {clients}; go on as it began")
    try:
        _restore(run, checkpoint)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise IntegrityError(f"checkpoint of round {checkpoint.round}: does not fit this run: {error}") from None


def _restore(run: Run, checkpoint: Checkpoint) -> None:
    state, arrays, record = run.state, checkpoint.arrays, checkpoint.record
    run.layout.check_vector(arrays["weights"])
    if arrays["known"].shape != state.known.shape:
        raise ValueError(f"{len(arrays['known'])} clients, not {run.clients}")
    state.round = checkpoint.round
    state.weights = np.array(arrays["weights"])
    state.known = np.array(arrays["known"]) if run.kept else np.zeros(run.clients, bool)
    state.server = {k.removeprefix("server."): np.array(a) for k, a in arrays.items() if k.startswith("server.")}
    for number, client in enumerate(np.flatnonzero(state.known)):
        for name, place in run.areas["kept"].views(int(client)).items():
            place[...] = arrays[f"kept.{name}"][number]
    run.labels[...] = run.problem.y_train
    run.labels[arrays["moves.sample"]] = arrays["moves.label"]
    state.skipped = int(record["skipped"])
    state.relabelled = {int(client): int(round) for client, round in record["relabelled"].items()}
    state.moved = {int(client): int(number) for client, number in record["moved"].items()}
    state.figures = {int(client): dict(figures) for client, figures in record["figures"].items()}


def _moves(run: Run) -> dict[str, NDArray[Any]]:
    """Return which samples have another label now, and which."""
    changed = np.flatnonzero(run.labels != run.problem.y_train)
    return {"moves.sample": changed, "moves.label": run.labels[changed]}
