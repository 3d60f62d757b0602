"""FedMix: its invariants."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fedmix import FedMix
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.engine.round import next_round
from helpers.contexts import blobs, client_context, linear
from helpers.engine_federations import Made


def final(algorithm, rounds=3):
    run = Made(algorithm=algorithm).begin(SerialExecutor())
    for _ in range(rounds):
        next_round(run)
    run.close()
    return run


def test_without_mixing_it_is_fedavg_bit_for_bit():
    assert final(FedMix(lam=0.0)).state.weights.tobytes() == final(FedAvg()).state.weights.tobytes()
    assert final(FedMix(lam=0.1)).state.weights.tobytes() != final(FedAvg()).state.weights.tobytes()


@pytest.mark.parametrize("group", [0, 4])
def test_the_pool_holds_the_means_of_groups(group):
    run = final(FedMix(group=group), rounds=1)
    pool, problem = run.state.server, run.problem
    groups = [1 if not group else -(-len(shard.train) // group) for shard in problem.shards]
    assert len(pool["x"]) == len(pool["y"]) == sum(groups)
    assert pool["y"].sum(axis=1) == pytest.approx(np.ones(sum(groups)), abs=1e-6)
    if not group:
        for row, shard in enumerate(problem.shards):
            assert pool["x"][row] == pytest.approx(problem.x_train[shard.train].mean(axis=0), abs=1e-6)
            counts = np.bincount(problem.y_train[shard.train], minlength=4)
            assert pool["y"][row] == pytest.approx(counts / counts.sum(), abs=1e-6)


def one_step(x_bar, y_bar, *, second_order=True, lam=0.2):
    """The gradient of one full batch, and what it should be by the formula."""
    x, y = blobs(9, 5, 3)
    torch.manual_seed(0)
    module = linear(np.random.default_rng(1).normal(size=(3, 5)).astype("f4"), np.zeros(3, "f4"))
    before = module.weight.detach().clone()
    context = client_context(module, x, y, batch_size=9, lr=1.0)
    context.received = {"x": x_bar[None].astype("f4"), "y": y_bar[None].astype("f4")}
    FedMix(lam=lam, second_order=second_order).client(context)
    return before, before - module.weight.detach(), torch.from_numpy(x), torch.from_numpy(y)


def test_the_loss_is_the_formula():
    x_bar, y_bar, lam = np.array([1.0, -2.0, 0.5, 0.0, 3.0]), np.array([0.2, 0.5, 0.3]), 0.2
    before, step, x, y = one_step(x_bar, y_bar, lam=lam)
    W = before.clone().requires_grad_()
    u = ((1 - lam) * x).requires_grad_()
    own = cross_entropy(u @ W.T, y)
    (slope,) = torch.autograd.grad(own, [u], create_graph=True)
    other = cross_entropy(u @ W.T, torch.from_numpy(y_bar).float().expand(9, 3))
    total = (1 - lam) * own + lam * other + lam * (slope * torch.from_numpy(x_bar).float()).sum()
    (expected,) = torch.autograd.grad(total, [W])
    assert torch.allclose(step, expected, atol=1e-5)


def test_a_mean_of_zero_makes_the_second_order_term_vanish():
    zero, y_bar = np.zeros(5), np.array([0.2, 0.5, 0.3])
    assert torch.allclose(one_step(zero, y_bar)[1], one_step(zero, y_bar, second_order=False)[1], atol=1e-6)
