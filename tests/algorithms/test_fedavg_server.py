"""What FedAvg's server may do with the average: half a step, momentum, Adam."""

from __future__ import annotations

import numpy as np
import pytest

from fedrela.algorithms.base import Sizes
from fedrela.algorithms.fedavg import FedAvg
from helpers.contexts import server_turn, uploads_of
from helpers.engine_federations import normed
from helpers.through_engine import rounds_of, weights_of

SIZES = Sizes(shared=5, trained=3, classes=2, features=0, clients=2, inputs=(1,), largest=9)
SAMPLES = (1, 3)


def steps(algorithm, rounds=6):
    """Return x and the change that clients propose, D, before each round, x after it, and the averaged buffers."""
    rng = np.random.default_rng(3)
    x, state, found = rng.normal(size=5), algorithm.start(None, SIZES, 0), []
    for _ in range(rounds):
        sent = x + rng.normal(0, 0.1, (2, 5))
        context = server_turn(uploads_of(sent, SAMPLES), x)
        context.trained, context.state = 3, state
        new, average = algorithm.server(context), np.array([0.25, 0.75]) @ sent
        found.append((x[:3], (average - x)[:3], new[:3]))
        np.testing.assert_allclose(new[3:], average[3:], atol=1e-15)
        x, state = new, context.state
    return tuple(np.stack(each) for each in zip(*found, strict=True))


def memory(D, beta):
    """The mean of all changes so far, the older the less: (1 - beta) sum_s beta^(t - s) D_s."""
    past = np.subtract.outer(np.arange(len(D)), np.arange(len(D)))
    return (1 - beta) * np.where(past >= 0, beta ** np.maximum(past, 0), 0) @ D


def test_a_step_towards_the_average():
    x, D, new = steps(FedAvg(server_lr=0.3))
    np.testing.assert_allclose(new, x + 0.3 * D, atol=1e-15)
    x, D, new = steps(FedAvg())
    np.testing.assert_allclose(new, x + D, atol=1e-15)


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_momentum(beta, rate):
    x, D, new = steps(FedAvg(server="momentum", beta=beta, server_lr=rate))
    np.testing.assert_allclose(new, x + rate * memory(D, beta), atol=1e-14)


def test_momentum_as_its_paper_writes_it():
    x, D, new = steps(FedAvg(server="momentum", beta=0.9, server_lr=10.0))
    v = np.zeros(3)
    for before, change, after in zip(x, D, new, strict=True):
        v = 0.9 * v + change
        np.testing.assert_allclose(after, before + v, atol=1e-13)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.5])
def test_adam(rate):
    x, D, new = steps(FedAvg(server="adam", server_lr=rate, eps=0.02))
    fading = 0.99 ** np.arange(1, len(D) + 1)[:, None] * 0.02**2
    step = memory(D, 0.9) / (np.sqrt(memory(D**2, 0.99) + fading) + 0.02)
    np.testing.assert_allclose(new, x + (rate or 0.01) * step, atol=1e-14)


def test_momentum_without_memory_is_fedavg():
    parts = {"make": normed, "train": {"participation": 0.6}}
    found = weights_of(FedAvg(server="momentum", beta=0.0), **parts)
    np.testing.assert_allclose(found, weights_of(FedAvg(), **parts), atol=1e-6)


@pytest.mark.parametrize("server", ["momentum", "adam"])
def test_it_learns_as_it_is(server):
    found = rounds_of(FedAvg(server=server), 8, False, make=normed)
    assert found[-1].record.loss < found[0].record.loss
