"""The server's turn: from what the admitted clients sent to the next shared arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fedrela.algorithms.turns import ServerTurn
from fedrela.engine.run import Run
from fedrela.errors import FedrelaError
from fedrela.models.repeatable import one_thread
from fedrela.records import Upload


def server_turn(run: Run, round: int, uploads: Sequence[Upload]) -> ServerTurn:
    """Return what the algorithm's server is given in a round."""
    plan, station = run.plan, run.station
    weights = run.state.weights.view()
    weights.flags.writeable = False
    station.share.shared.write(station.model, weights)
    return ServerTurn(
        seed=plan.seed,
        round=round,
        rounds=plan.train.rounds,
        clients=run.clients,
        uploads=uploads,
        weights=weights,
        trained=run.layout.trained,
        lr=plan.train.local(round, plan.relabel.scale(round, plan.train.rounds)).lr,
        state=run.state.server,
        model=station.model,
        auxiliary=_auxiliary(run),
    )


def step(run: Run, round: int, uploads: Sequence[Upload]) -> None:
    """Take the server's step: new shared arrays, new server state."""
    with one_thread():
        new = run.plan.algorithm.server(server_turn(run, round, uploads))
    vector = np.asarray(new).astype(run.layout.dtype)
    if vector.shape != run.state.weights.shape or not np.isfinite(vector).all():
        raise FedrelaError(f"{run.plan.algorithm.name}: round {round}: the server's arrays are not finite any more")
    run.state.weights = vector


def _auxiliary(run: Run) -> tuple[Tensor, Tensor] | None:
    ids = run.problem.auxiliary
    if ids is None:
        return None
    x = run.problem.scaling.apply(torch.from_numpy(run.problem.x_train[ids]).to(run.station.device))
    return x, torch.from_numpy(run.problem.y_train[ids]).to(run.station.device)
