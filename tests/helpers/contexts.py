"""Turns without an engine: a module, samples, and how to train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from fedrela.algorithms.context import ClientContext, ServerContext
from fedrela.algorithms.local import Local, Samples
from fedrela.models.flat_model import FlatModel
from fedrela.models.inputs import Scaling
from fedrela.models.layout import ParameterSplit
from fedrela.records import Upload
from fedrela.streams import stream

CPU = torch.device("cpu")


class AsStored:
    """Random numbers that leave every order as it is."""

    def permutation(self, n: int) -> np.ndarray:
        return np.arange(n)


@dataclass
class StoredOrder(ClientContext):
    """A context that goes through its samples in the order in which they are stored, in every epoch."""

    def stream(self, purpose: str) -> Any:
        return AsStored()


def client_context(
    module: nn.Module, x: np.ndarray, y: np.ndarray, *, stored: bool = False, view: Any = None, **local: Any
) -> ClientContext:
    model = FlatModel(module)
    samples = Samples(
        torch.from_numpy(x), np.arange(len(x)), y.astype(np.int64), Scaling(), CPU, view, model.vector.dtype
    )  # fmt: skip
    classes = max(int(y.max(initial=0)) + 1, 2)
    return (StoredOrder if stored else ClientContext)(
        seed=5,
        round=1,
        rounds=1,
        client=0,
        model=model,
        split=ParameterSplit.of(model.layout),
        samples=samples,
        counts=np.bincount(samples.labels, minlength=classes),
        local=Local(**({"lr": 0.1} | local)),
    )


def server_context(uploads: list[Upload], weights: np.ndarray) -> ServerContext:
    model = FlatModel(nn.Linear(1, 1))
    return ServerContext(1, 1, 1, len(uploads), uploads, weights, weights.size, 0.1, {}, model)


def linear(weight: np.ndarray, bias: np.ndarray) -> nn.Linear:
    module = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.from_numpy(weight).dtype)
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(weight))
        module.bias.copy_(torch.from_numpy(bias))
    return module


def blobs(n: int = 23, columns: int = 5, classes: int = 4, seed: int = 0, dtype: str = "f4") -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, columns)).astype(dtype), rng.integers(0, classes, n)


def uploads_of(vectors: np.ndarray, samples: Any = None) -> list[Upload]:
    counts = [1] * len(vectors) if samples is None else samples
    return [Upload(i, 1, int(n), {"weights": v}) for i, (v, n) in enumerate(zip(vectors, counts, strict=True))]


def two_parts(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Sequential(nn.Linear(5, 70), nn.Tanh()), nn.Linear(70, 4))


def batches(context: ClientContext, x, y):
    """The batches of all epochs, made here from the same stream."""
    order = stream(context.seed, "order", context.round, context.client)
    for _ in range(context.local.epochs):
        places = order.permutation(len(y))
        for start in range(0, len(y), context.local.batch_size):
            at = places[start : start + context.local.batch_size]
            yield torch.from_numpy(x[at]), torch.from_numpy(y[at])


def bits(module: nn.Module) -> bytes:
    return b"".join(p.detach().numpy().tobytes() for p in module.parameters())


def digest(model: FlatModel) -> str:
    return model.layout.sha256(model.collect())
