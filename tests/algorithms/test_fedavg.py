"""What FedAvg promises (its mean is tested in `test_average`)."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from fedrela.algorithms.fedavg import FedAvg
from fedrela.records import Upload
from helpers.contexts import blobs, client_context, linear, server_turn


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
    np.testing.assert_allclose(FedAvg().server(server_turn(sent, sent[0].arrays["weights"])), step, atol=1e-12)


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
