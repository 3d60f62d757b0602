"""The contexts that an algorithm receives in a round: one per client, and one for the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedrela.algorithms.average import equal_weights, sample_weights, weighted_sum
from fedrela.algorithms.local import AfterStep, Correction, Group, Local, Loss, Samples, on_logits, train
from fedrela.losses import LOSSES
from fedrela.models.flat_model import FlatModel
from fedrela.models.inputs import FORWARD_BATCH
from fedrela.models.layout import ParameterSplit
from fedrela.records import Upload
from fedrela.streams import stream

Arrays = Mapping[str, NDArray[Any]]


@dataclass
class ClientContext:
    """One client in one round, with the model it received; seed, round and client address its random streams."""

    seed: int
    round: int
    rounds: int
    client: int
    model: FlatModel  # loaded with the received weights and this client's private arrays
    split: ParameterSplit  # which of the model's arrays are shared and which are private
    samples: Samples  # what the client trains on, with current labels
    counts: NDArray[np.int64]  # samples per class by the current labels, (C,)
    local: Local  # how to train
    received: Arrays = field(default_factory=dict)  # what the server sent besides the weights
    state: dict[str, NDArray[Any]] = field(default_factory=dict)  # from its last round; kept for its next
    steps: int = 0  # taken so far; a client without a step sends nothing
    scores: NDArray[np.float32] | None = None  # filled with each sample's logits of the last epoch, (n, C), if set

    def stream(self, purpose: str) -> np.random.Generator:
        """Return this client's random generator for a purpose in this round."""
        return stream(self.seed, purpose, self.round, self.client)

    def tensor(self, array: NDArray[Any]) -> Tensor:
        """Return a copy of an array with the dtype and device of the model."""
        return torch.tensor(array).to(self.model.vector)

    def state_vector(self, name: str) -> Tensor:
        """Return a vector that the client kept, as long as the trained weights; zeros in its first round."""
        return self.tensor(self.state[name]) if self.state else torch.zeros_like(self.model.weights)

    def features(self) -> Tensor:
        """Return the current model's features of all samples without views, in evaluation mode."""
        module: Any = self.model.module.eval()
        with torch.no_grad():
            starts = range(0, len(self.samples), FORWARD_BATCH)
            return torch.cat([module.features(self.samples.scaled(slice(at, at + FORWARD_BATCH))) for at in starts])

    def loss(self) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the configured loss of logits and labels, with the counts of the current labels."""
        if self.local.loss == "cross_entropy":
            return cross_entropy
        function, counts = LOSSES[self.local.loss], self.tensor(self.counts)
        return lambda logits, labels: function(logits, labels, counts)

    def train(
        self,
        *,
        loss: Loss | None = None,
        correct: Correction | None = None,
        after_step: AfterStep | None = None,
        groups: Sequence[Group] = (),
        local: Local | None = None,
    ) -> None:
        """Train the model on the samples, with the configured loss unless another is given; see `local.train`."""
        self.steps += train(
            self.model,
            self.samples,
            local or self.local,
            self.stream,
            loss=loss or on_logits(self.loss()),
            correct=correct,
            after_step=after_step,
            groups=groups,
            scores=self.scores,
        )


@dataclass
class ServerContext:
    """The server in one round, with the uploads of the admitted clients; seed and round address its random streams."""

    seed: int
    round: int
    rounds: int
    clients: int  # number of all clients, K
    uploads: Sequence[Upload]  # of the admitted clients, by ascending id
    weights: NDArray[Any]  # the shared arrays as the clients received them, one vector, read-only
    trained: int  # how many of its leading values are trained; the rest are buffers of BatchNorm
    lr: float  # the clients' learning rate in this round
    state: dict[str, NDArray[Any]]  # what the server keeps between rounds; may be changed
    model: FlatModel  # the server's own model, loaded with `weights`, for a server that trains
    auxiliary: tuple[Tensor, Tensor] | None = None  # inputs and labels of the auxiliary set, if the algorithm has one

    def stream(self, purpose: str) -> np.random.Generator:
        """Return the server's random generator for a purpose in this round."""
        return stream(self.seed, purpose, self.round)

    @property
    def x(self) -> NDArray[np.float64]:
        """The trained values that the clients received."""
        return self.weights[: self.trained].astype(np.float64)

    def average(self) -> NDArray[np.float64]:
        """Return sum_i p_i y_i of all shared arrays, p_i = n_i / n over the clients of the round."""
        return weighted_sum(self.uploads, "weights", sample_weights(self.uploads))

    def mean(self, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return sum_i w_i y_i of the trained values, all clients equal by default."""
        chosen = equal_weights(self.uploads) if weights is None else weights
        return weighted_sum(self.uploads, "weights", chosen, slice(self.trained))

    def train(self, model: FlatModel, x: Tensor, y: Tensor, local: Local, subject: int = 0) -> None:
        """Train a model in place, with cross-entropy, on inputs and labels of the server.

        `subject` distinguishes several trainings in one round.
        """
        seed = int(self.stream("practice").integers(2**62))
        samples = Samples.ready(x, y.cpu().numpy(), model.vector.device, x.dtype)
        with torch.enable_grad():
            train(model, samples, local, lambda purpose: stream(seed, purpose, self.round, subject))
