"""The server's part of a round: exchanges before training, and the step to the next shared arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from fedrela.algorithms.base import Exchange
from fedrela.algorithms.context import ServerContext
from fedrela.engine.admission import admit
from fedrela.engine.dispatch import collect, make_tasks
from fedrela.engine.run import Run
from fedrela.errors import RunFailedError
from fedrela.models.runtime import one_thread, torch_stream
from fedrela.records import Failure, FailureKind, Upload

Result = TypeVar("Result")
LARGEST = 1e12  # far beyond any useful weight; above it float32 sums overflow


def hold_exchanges(
    run: Run, round: int, chosen: Sequence[int], missing: Mapping[int, Failure], deadline: float
) -> dict[int, Failure]:
    """Hold every exchange that precedes the training of this round, and return the clients that failed in one.

    They are left out of the rest of the round. Clients of `missing` that failed in an exchange are not asked again.
    """
    failed = {client: failure for client, failure in missing.items() if failure.exchange}
    for exchange in run.plan.algorithm.exchanges():
        if exchange.due(round):
            everybody = range(run.clients) if exchange.who == "all" else chosen
            asked = [client for client in everybody if client not in failed and run.samples[client] != 0]
            failed |= _hold(run, round, exchange, asked, deadline)
    return failed


def _hold(run: Run, round: int, exchange: Exchange, asked: list[int], deadline: float) -> dict[int, Failure]:
    algorithm, name = run.plan.algorithm, exchange.name
    specs = dict(algorithm.answers(name, run.arrays.sizes))
    answers = run.memory.allocate(f"exchange {name}", specs, len(asked))
    tasks = make_tasks(run, "ask", round, asked, answers, name)
    collected = collect(run, tasks, answers, specs, deadline)
    expected = {client: run.samples[client] for client in asked}
    admission = admit(collected.uploads, round=round, expected=expected, specs=specs, reference=None, norm_limit=0.0)
    if admission.admitted:
        _on_server(run, round, admission.admitted, name, partial(algorithm.absorb, name))
    refused = {c: Failure(FailureKind.REFUSED, reason) for c, reason in admission.excluded if c is not None}
    return {client: replace(failure, exchange=name) for client, failure in (collected.failed | refused).items()}


def aggregate(run: Run, round: int, uploads: Sequence[Upload]) -> None:
    """Take the server's step: new shared arrays, new server state."""
    where = f"{run.plan.algorithm.name}: round {round}"
    new = np.asarray(_on_server(run, round, uploads, "server", run.plan.algorithm.server))
    if new.shape != run.state.weights.shape:
        raise RunFailedError(
            f"{where}: expected {run.state.weights.size} shared values from the server, got shape {new.shape}"
        )
    with np.errstate(over="ignore"):
        weights = new.astype(run.arrays.layout.dtype)
    if not np.isfinite(weights).all() or np.abs(weights).max(initial=0) > LARGEST:
        raise RunFailedError(
            f"{where}: the server's arrays are no longer finite: training diverged; lower lr, or set clip"
        )
    run.state.weights = weights


def _on_server(
    run: Run, round: int, uploads: Sequence[Upload], name: str, work: Callable[[ServerContext], Result]
) -> Result:
    """Run server code on one thread, with its own random numbers.

    The state is copied, since arrays of the model or of uploads change later.
    """
    plan, runner, weights = run.plan, run.runner, run.state.weights.view()
    weights.flags.writeable = False
    runner.load(weights)
    context = ServerContext(
        seed=plan.seed,
        round=round,
        rounds=plan.train.rounds,
        clients=run.clients,
        uploads=uploads,
        weights=weights,
        trained=run.arrays.layout.trained,
        lr=plan.local(round).lr,
        state=dict(run.state.server),
        model=runner.model,
        auxiliary=_auxiliary(run),
    )
    with one_thread(), torch_stream(runner.device, plan.seed, name, round, own_code=runner.own_code):
        result = work(context)
    run.state.server = {name: np.array(array) for name, array in context.state.items()}
    return result


def _auxiliary(run: Run) -> tuple[Tensor, Tensor] | None:
    """Return the samples that the algorithm's server asks for, or None."""
    ids = run.problem.auxiliary
    if ids is None:
        return None
    runner, problem = run.runner, run.problem
    raw, y = (torch.from_numpy(array[ids]).to(runner.device) for array in (problem.x_train, problem.y_train))
    return problem.scaling.apply(raw, runner.model.vector.dtype), y
