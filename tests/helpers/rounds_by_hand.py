"""Rounds without an engine: clients in turn, their samples in the stored order, then the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from fedrela.algorithms.base import Algorithm, Sizes
from fedrela.algorithms.context import ClientContext, ServerContext
from fedrela.models.flat_model import FlatModel
from fedrela.records import Upload
from helpers.contexts import client_context

Part = tuple[np.ndarray, np.ndarray]


class ByHand:
    """A federation: `parts` are the clients' inputs and labels, `samples` their n_k where it is another number."""

    def __init__(
        self, algorithm: Algorithm, module: nn.Module, parts: Sequence[Part], samples: Any = None, **local: Any
    ) -> None:
        self.algorithm, self.module, self.parts, self.local = algorithm, module, list(parts), local
        self.samples = [int(n) for n in (samples if samples is not None else (len(y) for _, y in parts))]
        model = FlatModel(module)
        self.layout, self.weights, self.number = model.layout, model.collect(), 0
        self.sizes = Sizes(
            shared=model.layout.size, trained=model.layout.trained, classes=4, features=0, clients=len(parts),
            inputs=parts[0][0].shape[1:], largest=max(self.samples), dtype=model.layout.dtype,
        )  # fmt: skip
        self.state: dict[str, Any] = dict(algorithm.start(module, self.sizes, seed=1))
        self.client_states: list[dict[str, Any]] = [{} for _ in parts]

    def context(self, client: int) -> ClientContext:
        context = client_context(self.module, *self.parts[client], stored=True, **self.local)
        context.model.load(self.weights)
        context.client, context.round, context.state = client, self.number, dict(self.client_states[client])
        sent = {**self.algorithm.broadcast(self.state), **self.algorithm.message(self.state, client)}
        context.received = {name: np.array(array) for name, array in sent.items()}
        return context

    def server_context(self, uploads: list[Upload]) -> ServerContext:
        return ServerContext(
            seed=1, round=self.number, rounds=9, clients=len(self.parts), uploads=uploads, weights=self.weights,
            trained=self.sizes.trained, lr=self.local["lr"], state=self.state, model=FlatModel(nn.Linear(1, 1)),
        )  # fmt: skip

    def exchange(self) -> None:
        for exchange in self.algorithm.exchanges():
            if exchange.due(self.number):
                asked = range(len(self.parts))
                answers = [dict(self.algorithm.answer(exchange.name, self.context(client))) for client in asked]
                sent = [Upload(i, self.number, self.samples[i], answer) for i, answer in enumerate(answers)]
                self.algorithm.absorb(exchange.name, self.server_context(sent))

    def round(self, chosen: Sequence[int] | None = None) -> list[Upload]:
        """Carry out a round, by default with everybody, and return what the clients sent."""
        self.number += 1
        self.exchange()
        uploads = []
        for client in range(len(self.parts)) if chosen is None else chosen:
            context = self.context(client)
            sent = dict(self.algorithm.client(context) or {})
            self.client_states[client] = context.state
            arrays = {"weights": context.split.shared.read(context.model), **sent}
            uploads.append(Upload(client, self.number, self.samples[client], arrays))
        self.weights = self.algorithm.server(self.server_context(uploads)).astype(self.layout.dtype)
        return uploads

    def named(self) -> dict[str, np.ndarray]:
        return self.layout.split(self.weights)


class Bowl(nn.Module):
    """A point y in a bowl of the sample's own: the value is sum A (y - b)^2 / 2 + <noise, y>, its gradient
    A (y - b) + noise. A sample is A, b and noise in a row.
    """

    def __init__(self, start: np.ndarray) -> None:
        super().__init__()
        self.y = nn.Parameter(torch.tensor(start))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        A, b, noise = x.chunk(3, dim=1)
        values = (A * (self.y - b) ** 2 / 2 + noise * self.y).sum(dim=1)
        return torch.stack([values, values], dim=1)


def first_logit(logits: torch.Tensor, labels: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """A loss for `Bowl`."""
    return logits[:, 0].mean()


def bowls(A: Any, b: Any, noise: Any) -> Part:
    """Return samples of one client, one for each row of noise."""
    rows = np.atleast_2d(noise)
    x = np.concatenate([np.broadcast_to(each, rows.shape) for each in (A, b, rows)], axis=1)
    return x, np.zeros(len(rows), int)
