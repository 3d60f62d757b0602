"""What FedAvg promises (its mean is tested in `test_average`)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedrela.algorithms.base import Sizes
from fedrela.algorithms.fedavg import FedAvg
from fedrela.records import Upload
from helpers.contexts import blobs, client_context, linear, server_context, uploads_of
from helpers.engine_federations import normed
from helpers.through_engine import rounds_of, weights_of


def test_one_step_on_everything_is_central_descent():
    rng = np.random.default_rng(1)
    W, b = rng.normal(size=(4, 5)), rng.normal(size=4)
    sizes, sent, parts = (7, 20, 13), [], []
    for client, n in enumerate(sizes):
        x, y = blobs(n=n, seed=client, dtype="f8")
        context = client_context(linear(W, b), x, y, batch_size=n, lr=0.3)
        FedAvg().client(context)
        sent.append(Upload(client, 1, n, {"weights": context.model.collect()}))
        parts.append((x, y))
    x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    pooled = linear(W, b)
    cross_entropy(pooled(torch.from_numpy(x)), torch.from_numpy(y)).backward()
    step = np.concatenate([(p - 0.3 * p.grad).detach().numpy().ravel() for p in pooled.parameters()])
    np.testing.assert_allclose(FedAvg().server(server_context(sent, sent[0].arrays["weights"])), step, atol=1e-12)


def test_a_client_starts_without_momentum():
    x, y = blobs()
    rng = np.random.default_rng(1)
    W, b = rng.normal(size=(4, 5)), rng.normal(size=4)
    context = client_context(linear(W, b), x.astype("f8"), y, momentum=0.9, batch_size=8)
    start = context.model.collect()
    FedAvg().client(context)
    once = context.model.collect()
    context.model.load(start)
    FedAvg().client(context)
    assert context.model.collect().tobytes() == once.tobytes()


SIZES = Sizes(shared=5, trained=3, classes=2, features=0, clients=2, inputs=(1,), largest=9)
SAMPLES = (1, 3)


def steps(algorithm, rounds=6):
    """Return x and the change that clients propose, D, before each round, x after it, and the averaged buffers."""
    rng = np.random.default_rng(3)
    x, state, found = rng.normal(size=5), algorithm.start(None, SIZES, 0), []
    for _ in range(rounds):
        sent = x + rng.normal(0, 0.1, (2, 5))
        context = server_context(uploads_of(sent, SAMPLES), x)
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
