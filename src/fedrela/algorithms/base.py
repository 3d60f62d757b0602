"""The contract of an algorithm. The engine knows this class alone, and none of the algorithms.

In a round the server chooses clients and sends them the shared arrays, what `broadcast` returns, and to each client its
own `message`. Exchanges that are due come first. Each client then trains (`prepare`, `client`) and sends its shared
arrays and what `sends` declares. From these the server computes the next shared arrays (`server`). Evaluation and
re-labelling use `logits`. The defaults below are FedAvg.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from fedrela.algorithms.context import Arrays, ClientContext, ServerContext
from fedrela.algorithms.local import Batch, Group, Local, Samples
from fedrela.models.arrays import FlatModel
from fedrela.models.contract import has_split, num_features
from fedrela.models.layout import Layout
from fedrela.options import Options

__all__ = [
    "Algorithm", "ArraySpec", "Arrays", "Batch", "ClientContext", "Exchange", "Group", "Local", "Samples",
    "ServerContext", "Sizes",
]  # fmt: skip


@dataclass(frozen=True)
class ArraySpec:
    """Shape and dtype of one array that is sent or kept."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


ArraySpecs = Mapping[str, ArraySpec]


@dataclass(frozen=True)
class Sizes:
    """What the shapes of an algorithm's arrays may depend on.

    Attributes
    ----------
    shared, trained
        Values in the vector of shared arrays, and how many leading ones of them are trained.
    classes, features, clients
        C, the width of the features (0 where the model has no split), and K.
    inputs
        Shape of one sample.
    largest
        Samples of the largest client.
    dtype
        Of the model's arrays.
    """

    shared: int
    trained: int
    classes: int
    features: int
    clients: int
    inputs: tuple[int, ...]
    largest: int
    dtype: str = "float32"

    @classmethod
    def of(
        cls, model: FlatModel, shared: Layout, *, classes: int, clients: int, inputs: tuple[int, ...], largest: int
    ) -> Sizes:
        """Return the sizes of a model whose shared arrays have this layout."""
        features = num_features(model.module) if has_split(model.module) else 0
        return cls(shared.size, shared.trained, classes, features, clients, inputs, largest, shared.dtype)


@dataclass(frozen=True)
class Exchange:
    """An extra exchange with clients before training; see `Algorithm.answer` and `Algorithm.absorb`.

    Attributes
    ----------
    name
        The algorithm's name for it.
    who
        The clients chosen for the round, or all clients.
    every
        0: only before the first round; k: before rounds 1, 1 + k, 1 + 2k and so on.
    """

    name: str
    who: Literal["chosen", "all"]
    every: int = 1

    def due(self, round: int) -> bool:
        """Whether it takes place before the training of this round."""
        return round == 1 or (self.every > 0 and (round - 1) % self.every == 0)


class Algorithm:
    """A federated algorithm. The defaults are FedAvg.

    Attributes
    ----------
    name, label
        Its name in a configuration, and in tables and pages (by default the same).
    description
        What it does, in one line; by default the first line of the class docstring.
    paper
        Authors and year.
    cost
        Expected cost of a round relative to FedAvg, as ``benchmarks/algorithms.py`` measures it.
    Params
        Its parameters; an instance of it is `params`.
    uploads
        Names of all arrays that leave a client after training.
    broadcasts
        Names of the server's arrays that every client receives beside the weights.
    reduces_to
        The settings under which it equals another algorithm, for readers and tests.
    private
        Modules (added by `module`) that stay with the client.
    own_loss
        Whether the method fixes the loss, so that a configuration may not choose one.
    needs_split
        Whether it needs the features of a model apart from its head.
    needs_images
        Whether it needs samples that are images.
    auxiliary
        Samples per class that its server needs, from before imbalance; 0 for none.
    """

    name: ClassVar[str]
    label: ClassVar[str] = ""
    description: ClassVar[str] = ""
    paper: ClassVar[str]
    cost: ClassVar[float] = 1.0
    Params: ClassVar[type[Options]] = Options
    uploads: ClassVar[tuple[str, ...]] = ("weights",)
    broadcasts: ClassVar[tuple[str, ...]] = ()
    reduces_to: ClassVar[str] = ""
    own_loss: ClassVar[bool] = False
    needs_split: ClassVar[bool] = False
    private: tuple[str, ...] = ()
    needs_images: bool = False
    auxiliary: int = 0

    def __init_subclass__(cls) -> None:
        cls.label = cls.__dict__.get("label", "") or cls.__dict__.get("name", cls.__name__)
        cls.description = cls.__dict__.get("description", "") or (cls.__doc__ or "").partition("\n")[0]

    def __init__(self, **params: Any) -> None:
        self.params: Any = self.Params(**params)

    def module(self, model: nn.Module, classes: int, seed: int) -> nn.Module:
        """Return the module that clients train: the model, or the model with other or additional heads."""
        return model

    def sends(self, sizes: Sizes) -> ArraySpecs:
        """Return what leaves a client after training beyond the weights."""
        return {}

    def keeps(self, sizes: Sizes) -> ArraySpecs:
        """Return what a client keeps between rounds, beyond its private modules."""
        return {}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return the server's state before the first round."""
        return {}

    def broadcast(self, state: Arrays) -> Arrays:
        """Return what every client receives beside the weights."""
        return {name: state[name] for name in self.broadcasts}

    def message(self, state: Arrays, client: int) -> Arrays:
        """Return what this client alone receives: a few numbers, no large array."""
        return {}

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the exchanges with clients before training."""
        return ()

    def answers(self, exchange: str, sizes: Sizes) -> ArraySpecs:
        """Return what leaves a client in an exchange."""
        return {}

    def answer(self, exchange: str, context: ClientContext) -> Arrays:
        """Return a client's answer; no other change to the context is kept."""
        return {}

    def absorb(self, exchange: str, context: ServerContext) -> None:
        """Take the clients' answers, which are the uploads of this context, into the server's state."""

    def prepare(self, context: ClientContext) -> Samples:
        """Return what the client trains on: its samples, or resampled, mixed or augmented ones."""
        return context.samples

    def client(self, context: ClientContext) -> Arrays | None:
        """Train the client's model and return what else the client sends, if anything."""
        context.train()
        return None

    def server(self, context: ServerContext) -> NDArray[Any]:
        """Return the next shared arrays, as one vector: here x <- sum_i p_i y_i."""
        return context.average()

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the logits by which the method is evaluated and re-labels, in evaluation mode."""
        return module(x)

    def local_logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the logits of a client's personal model; by default the same."""
        return self.logits(module, x, received)
