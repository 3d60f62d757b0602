"""What FedProx promises, beside the goldens."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import cross_entropy

from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fedprox import FedProx
from fedrela.losses import LOSSES
from helpers.batteries import examples
from helpers.contexts import blobs, client_context, linear

RNG = np.random.default_rng(2)
W, B = RNG.normal(size=(4, 5)), RNG.normal(size=4)


def run(algorithm, n=24, **local):
    x, y = blobs(n=n, dtype="f8")
    context = client_context(linear(W, B), x, y, **({"batch_size": 8} | local))
    algorithm.client(context)
    return context.model.collect()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_first_step_is_fedavgs(momentum):
    once = {"n": 8, "momentum": momentum}
    np.testing.assert_array_equal(run(FedProx(mu=1.0), **once), run(FedAvg(), **once))
    assert not np.array_equal(run(FedProx(mu=1.0), momentum=momentum), run(FedAvg(), momentum=momentum))


@pytest.mark.parametrize("mu", [0.0, 0.01, 1.0])
def test_the_term_in_the_loss_gives_the_same(mu):
    """The pull enters the momentum, as it does where the term is part of the loss."""
    x, y = blobs(n=24, dtype="f8")
    plain = linear(W, B)
    anchor = [p.detach().clone() for p in plain.parameters()]
    optimiser = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    context = client_context(linear(W, B), x, y, stored=True, batch_size=8, epochs=3, momentum=0.9, weight_decay=1e-3)
    FedProx(mu=mu).client(context)
    for start in (0, 8, 16) * 3:
        optimiser.zero_grad()
        loss = cross_entropy(plain(torch.from_numpy(x[start : start + 8])), torch.from_numpy(y[start : start + 8]))
        pull = sum(((p - a) ** 2).sum() for p, a in zip(plain.parameters(), anchor, strict=True))
        (loss + mu / 2 * pull).backward()
        optimiser.step()
    expected = np.concatenate([p.detach().numpy().ravel() for p in plain.parameters()])
    np.testing.assert_allclose(context.model.collect(), expected, atol=1e-12)


class Beside(FedProx):
    """A port that pulls beside the momentum: a step back after each step."""

    def client(self, context):
        x, rate = context.model.weights.clone(), context.local.lr * self.params.mu
        context.train(after_step=lambda y: y.sub_(y - x, alpha=rate))
        return {}


def test_a_pull_beside_the_momentum_is_another_algorithm():
    assert np.abs(run(Beside(mu=1.0), momentum=0.9) - run(FedProx(mu=1.0), momentum=0.9)).max() > 1e-3


class Slope(nn.Module):
    """A model whose gradient is the same everywhere: the loss is <g, y>."""

    def __init__(self, start, slope):
        super().__init__()
        self.y = nn.Parameter(torch.tensor(start, dtype=torch.float64))
        self.slope = torch.tensor(slope, dtype=torch.float64)

    def forward(self, x):
        value = (self.y * self.slope).sum()
        return torch.stack([value, torch.zeros(())]).expand(len(x), 2)


@examples(40, 1000)
@given(st.floats(1e-3, 0.5), st.floats(1e-3, 2.0), st.integers(1, 12))
def test_under_a_constant_gradient_it_stops_at_the_closed_form(eta, mu, tau):
    slope = [0.7, -1.3, 0.2]
    none = np.zeros((tau, 1)), np.zeros(tau, int)
    context = client_context(Slope([1.0, 2.0, 3.0], slope), *none, lr=eta, batch_size=1, loss="first logit")
    x = context.model.weights.clone()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LOSSES, "first logit", lambda logits, labels, counts: logits[0, 0])
        FedProx(mu=mu).client(context)
    moved = -np.array(slope) * (1 - (1 - eta * mu) ** tau) / mu
    np.testing.assert_allclose((context.model.weights - x).numpy(), moved, rtol=1e-9, atol=1e-12)


def test_a_very_strong_pull_holds_the_client_where_it_is():
    start = np.concatenate([W.ravel(), B])
    far, near = (np.abs(run(FedProx(mu=mu), lr=0.05, epochs=20) - start).max() for mu in (0.0, 15.0))
    assert near < far / 5


def test_buffers_are_not_pulled():
    x, y = blobs(n=24, dtype="f8")
    found = []
    for algorithm in (FedAvg(), FedProx(mu=5.0)):
        torch.manual_seed(0)
        module = nn.Sequential(nn.BatchNorm1d(5, dtype=torch.float64), nn.Linear(5, 4, dtype=torch.float64))
        context = client_context(module, x, y, batch_size=24, lr=0.0)
        algorithm.client(context)
        found.append(context.model.read()["0.running_mean"])
    assert found[0].tobytes() == found[1].tobytes()
    assert np.abs(found[0]).min() > 0
