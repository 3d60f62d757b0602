"""Runs of an algorithm through the engine, with what server and clients hold after every round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.problem import Problem
from fedrela.engine.round import next_round
from fedrela.records import RoundRecord, Shard
from helpers.engine_federations import Made, table_problem


@dataclass(frozen=True)
class After:
    """A run after a round: shared arrays, how many of them are trained, and what server and clients keep."""

    weights: np.ndarray
    trained: int
    server: dict[str, np.ndarray]
    client_states: dict[int, dict[str, np.ndarray]]
    record: RoundRecord


def rounds_of(algorithm: Any, rounds: int = 3, relabelled: bool = True, **parts: Any) -> list[After]:
    """Return what a run looks like after each of its rounds; re-labelling is due in the first one."""
    train = {"rounds": rounds} | parts.pop("train", {})
    relabel = {"enabled": relabelled, "start": 1, "tau": 0.3}
    with SerialExecutor() as executor:
        run = Made(algorithm, train=train, relabel=relabel, **parts).begin(executor)
        found = []
        for _ in range(rounds):
            record = next_round(run).record
            assert record.excluded == []
            states = {
                client: {name: array.copy() for name, array in run.memory["client_state"].row(client).items()}
                for client in np.flatnonzero(run.state.has_state).tolist()
            }
            found.append(
                After(run.state.weights.copy(), run.arrays.layout.trained, dict(run.state.server), states, record)
            )
        run.close()
    assert any(after.record.moved for after in found) == relabelled
    return found


def weights_of(algorithm: Any, rounds: int = 3, relabelled: bool = True, **parts: Any) -> np.ndarray:
    """Return the shared arrays after each round, (rounds, values)."""
    return np.stack([after.weights for after in rounds_of(algorithm, rounds, relabelled, **parts)])


def equal_clients(clients: int = 4) -> Problem:
    """The table federation with as many samples for each client."""
    problem = table_problem(clients)
    fewest = min(len(shard.train) for shard in problem.shards)
    return replace(problem, shards=[Shard(s.client, s.train[:fewest], s.validation) for s in problem.shards])
