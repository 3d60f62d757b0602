"""The local training of NIID-Bench, reproduced by the shipped loop in the stored order of batches."""

from __future__ import annotations

import numpy as np
import pytest

from fedrela.algorithms.fedavg import FedAvg
from fedrela.algorithms.fedprox import FedProx
from goldens.local_training import BATCH, FEDPROX, clients, load
from helpers.contexts import client_context, linear


@pytest.fixture
def folder(request):
    return request.config.getoption("--goldens")


def trained(algorithm, golden, client):
    options = {name: float(golden[name]) for name in ("lr", "momentum", "weight_decay")}
    context = client_context(
        linear(golden["W0"], golden["b0"]), client.x, client.y, stored=True,
        epochs=int(golden["epochs"]), batch_size=BATCH, **options,
    )  # fmt: skip
    assert not algorithm.client(context)
    assert context.steps == int(golden["epochs"]) * len(client.y) // BATCH
    return context.model.read()


def check(algorithm, golden):
    for client in clients(golden):
        found = trained(algorithm, golden, client)
        np.testing.assert_allclose(found["weight"], client.weight, atol=1e-6, rtol=0)
        np.testing.assert_allclose(found["bias"], client.bias, atol=1e-6, rtol=0)


def test_fedavg(folder):
    check(FedAvg(), load("fedavg_niidbench_local", folder))


@pytest.mark.parametrize("name", FEDPROX)
def test_fedprox(folder, name):
    golden = load(name, folder)
    check(FedProx(mu=float(golden["mu"])), golden)


def test_goldens_tell_the_strengths_apart(folder):
    golden = load("fedprox_niidbench_mu0p01", folder)
    with pytest.raises(AssertionError):
        check(FedAvg(), golden)


def test_without_a_pull_it_is_fedavg_to_the_bit(folder):
    golden = load("fedprox_niidbench_mu0p0", folder)
    for client in clients(golden):
        prox, avg = trained(FedProx(mu=0.0), golden, client), trained(FedAvg(), golden, client)
        assert all(prox[name].tobytes() == avg[name].tobytes() for name in avg)
