"""What an algorithm is given: by the engine at a client's turn and at the server's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fedrela.algorithms.samples import Samples
from fedrela.models.arrays import FlatModel
from fedrela.models.share import ParameterSplit
from fedrela.records import Upload
from fedrela.streams import stream

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Local:
    """How a client trains in this round."""

    lr: float
    epochs: int = 1
    batch_size: int = 32
    momentum: float = 0.0
    weight_decay: float = 0.0
    clip: float = 0.0
    loss: str = "cross_entropy"


@dataclass
class ClientContext:
    """One client in one round, with the model it received.

    Attributes
    ----------
    seed, round, rounds, client
        Address of this turn, and how many rounds there are.
    model
        Loaded with the weights received and with this client's private arrays.
    share
        Which of the model's arrays are shared and which private.
    samples
        What the client trains on, labels in force included.
    counts
        Samples of each class by the labels in force, (C,).
    local
        How to train.
    received
        What the server sent beside the weights.
    state
        What this client kept from its last turn, empty at its first; what is in it afterwards is kept.
    steps
        How many steps the client took so far; a client without a step sends nothing.
    scores
        Logits of the last epoch by sample, (n, C), where they are wanted and the loss leaves them.
    """

    seed: int
    round: int
    rounds: int
    client: int
    model: FlatModel
    share: ParameterSplit
    samples: Samples
    counts: NDArray[np.int64]
    local: Local
    received: Arrays = field(default_factory=dict)
    state: dict[str, NDArray[Any]] = field(default_factory=dict)
    steps: int = 0
    scores: NDArray[np.float32] | None = None

    def stream(self, purpose: str) -> np.random.Generator:
        """Return this turn's own random numbers for a purpose."""
        return stream(self.seed, purpose, self.round, self.client)


@dataclass
class ServerContext:
    """The server in one round, with what the admitted clients sent.

    Attributes
    ----------
    seed, round, rounds
        Address of this turn, and how many rounds there are.
    clients
        Number of all clients, K.
    uploads
        Of the admitted clients, by ascending id.
    weights
        The shared arrays as the clients received them, one vector, read-only.
    trained
        How many of its leading values are trained; the rest are buffers of BatchNorm.
    lr
        The clients' learning rate in this round.
    state
        What the server keeps; may be changed.
    model
        A model of the server's own, loaded with `weights`, for a server that trains.
    auxiliary
        The balanced set that the algorithm asked for: inputs and labels.
    """

    seed: int
    round: int
    rounds: int
    clients: int
    uploads: Sequence[Upload]
    weights: NDArray[Any]
    trained: int
    lr: float
    state: dict[str, NDArray[Any]]
    model: FlatModel
    auxiliary: tuple[Tensor, Tensor] | None = None

    def stream(self, purpose: str) -> np.random.Generator:
        """Return this turn's own random numbers for a purpose."""
        return stream(self.seed, purpose, self.round)
