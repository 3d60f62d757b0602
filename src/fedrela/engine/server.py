"""The server's turn: from what the admitted clients sent to the next shared arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from fedrela.algorithms.context import ServerContext
from fedrela.engine.randomness import torch_stream
from fedrela.engine.run import Run
from fedrela.errors import FedrelaError
from fedrela.models.repeatable import one_thread
from fedrela.records import Upload

Result = TypeVar("Result")
LARGEST = 1e12  # far beyond what any model learns with; from there on float32 sums overflow


def server_turn(run: Run, round: int, uploads: Sequence[Upload]) -> ServerContext:
    """Return what the algorithm's server is given in a round."""
    plan, runner = run.plan, run.runner
    weights = run.state.weights.view()
    weights.flags.writeable = False
    runner.load(weights)
    return ServerContext(
        seed=plan.seed,
        round=round,
        rounds=plan.train.rounds,
        clients=run.clients,
        uploads=uploads,
        weights=weights,
        trained=run.layout.trained,
        lr=plan.train.local(round, plan.relabel.scale(round, plan.train.rounds)).lr,
        state=dict(run.state.server),
        model=runner.model,
        auxiliary=_auxiliary(run),
    )


def serve(
    run: Run, round: int, uploads: Sequence[Upload], name: str, work: Callable[[ServerContext], Result]
) -> Result:
    """Do a part of the server's work, which has the bits of one thread and random numbers of its own.

    The state is kept as copies: an array of the model or of an upload would change in the next turn.
    """
    context = server_turn(run, round, uploads)
    with one_thread(), torch_stream(run.runner.device, run.plan.seed, name, round):
        result = work(context)
    run.state.server = {name: np.array(array) for name, array in context.state.items()}
    return result


def step(run: Run, round: int, uploads: Sequence[Upload]) -> None:
    """Take the server's step: new shared arrays, new server state."""
    place = f"{run.plan.algorithm.name}: round {round}"
    new = np.asarray(serve(run, round, uploads, "server", run.plan.algorithm.server))
    if new.shape != run.state.weights.shape:
        raise FedrelaError(f"{place}: {run.state.weights.size} shared values are needed, the server gave {new.shape}")
    with np.errstate(over="ignore"):
        vector = new.astype(run.layout.dtype)
    if not np.isfinite(vector).all() or np.abs(vector).max(initial=0) > LARGEST:
        raise FedrelaError(f"{place}: the server's arrays are not finite any more: it diverged; lower lr, or set clip")
    run.state.weights = vector


def _auxiliary(run: Run) -> tuple[Tensor, Tensor] | None:
    ids = run.problem.auxiliary
    if ids is None:
        return None
    runner, problem = run.runner, run.problem
    raw, y = (torch.from_numpy(array[ids]).to(runner.device) for array in (problem.x_train, problem.y_train))
    return problem.scaling.apply(raw, runner.model.vector.dtype), y
