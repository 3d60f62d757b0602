"""The contract of an algorithm. The engine depends only on this class, not on any algorithm.

In each round the server chooses clients and sends them the shared arrays, the arrays that `broadcast` returns, and one
`message` per client. Exchanges that are due come first. Each client then trains (`prepare`, `client`) and sends its
shared arrays and the arrays that `sends` declares. From these the server computes the next shared arrays (`server`).
Evaluation and re-labelling use `logits`. The defaults below are FedAvg.
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
from fedrela.models.contract import has_split, num_features
from fedrela.models.flat_model import FlatModel
from fedrela.models.layout import Layout
from fedrela.options import Options

__all__ = [
    "Algorithm", "ArraySpec", "Arrays", "Batch", "ClientContext", "Exchange", "Group", "Local", "Samples",
    "ServerContext", "Sizes",
]  # fmt: skip


@dataclass(frozen=True)
class ArraySpec:
    """Shape and dtype of an array that is sent or kept.

    Parameters
    ----------
    shape
        Its shape.
    dtype
        NumPy's name of its dtype.

    Examples
    --------
    >>> ArraySpec((10, 64)).nbytes, ArraySpec((10,), "int64").nbytes
    (2560, 80)
    """

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


ArraySpecs = Mapping[str, ArraySpec]


@dataclass(frozen=True)
class Sizes:
    """The sizes that the shapes of an algorithm's arrays may depend on.

    Attributes
    ----------
    shared, trained
        Number of values in the vector of shared arrays, and of those that are trained, which come first.
    classes, clients
        C and K.
    features
        Width of the features; 0 if the model has no split.
    inputs
        Shape of one sample.
    largest
        Samples of the largest client.
    dtype
        Dtype of the model's arrays.

    Examples
    --------
    The size of SCAFFOLD's control variate for a linear layer with four inputs and two classes:

    >>> from fedrela.algorithms import find_algorithm
    >>> sizes = Sizes(shared=10, trained=10, classes=2, features=0, clients=3, inputs=(4,), largest=50)
    >>> find_algorithm("scaffold")().keeps(sizes)
    {'control': ArraySpec(shape=(10,), dtype='float32')}
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

    Parameters
    ----------
    name
        The algorithm's name for it.
    who
        ``chosen``: the clients chosen for the round; ``all``: all clients.
    every
        0: only before the first round; k: before rounds 1, 1 + k, 1 + 2k and so on.

    Examples
    --------
    >>> [round for round in range(1, 8) if Exchange("prototypes", "chosen", every=3).due(round)]
    [1, 4, 7]
    """

    name: str
    who: Literal["chosen", "all"]
    every: int = 1

    def due(self, round: int) -> bool:
        """Whether it takes place before the training of this round."""
        return round == 1 or (self.every > 0 and (round - 1) % self.every == 0)


class Algorithm:
    """A federated algorithm. The defaults are FedAvg.

    Parameters
    ----------
    params
        Values of the options that `Params` declares.

    Examples
    --------
    >>> class HalfStep(Algorithm):
    ...     "FedAvg whose server goes half of the way."
    ...     def server(self, context):
    ...         return (context.weights + context.average()) / 2
    >>> HalfStep().name, HalfStep.description, HalfStep.uploads
    ('halfstep', 'FedAvg whose server goes half of the way.', ('weights',))
    """

    name: ClassVar[str]  #: in a configuration
    label: ClassVar[str] = ""  #: in tables and pages; by default the name
    description: ClassVar[str] = ""  #: what it does, in one line; by default the first line of the class docstring
    paper: ClassVar[str]  #: authors and year
    cost: ClassVar[float] = 1.0  #: cost of a round relative to FedAvg, measured by ``benchmarks/algorithms.py``
    Params: ClassVar[type[Options]] = Options  #: its parameters; an instance of it is `params`
    uploads: ClassVar[tuple[str, ...]] = ("weights",)  #: names of all arrays that leave a client after training
    discloses: ClassVar[tuple[tuple[str, str], ...]] = ()  #: each other upload and exchange, with what it reveals
    broadcasts: ClassVar[tuple[str, ...]] = ()  #: names of the server's arrays that every client receives too
    reduces_to: ClassVar[str] = ""  #: the settings under which it equals another algorithm, for readers and tests
    own_loss: ClassVar[bool] = False  #: whether the method fixes the loss, so that a configuration may not choose one
    needs_split: ClassVar[bool] = False  #: whether it needs the features of a model apart from its head
    private: tuple[str, ...] = ()  #: modules, added by `module`, that stay with the client
    needs_images: bool = False  #: whether it needs samples that are images
    mixes_inputs: bool = False  #: whether it computes new samples from the values of others
    auxiliary: int = 0  #: samples per class that its server needs, taken before imbalance; 0 for none

    def __init_subclass__(cls) -> None:
        cls.name = getattr(cls, "name", cls.__name__.lower())
        cls.label = cls.__dict__.get("label", "") or cls.__dict__.get("name", cls.__name__)
        cls.description = cls.__dict__.get("description", "") or (cls.__doc__ or "").partition("\n")[0]

    def __init__(self, **params: Any) -> None:
        self.params: Any = self.Params(**params)

    def module(self, model: nn.Module, classes: int, seed: int) -> nn.Module:
        """Return the module that clients train: the model, or the model with other or additional heads."""
        return model

    def sends(self, sizes: Sizes) -> ArraySpecs:
        """Return the arrays besides the weights that leave a client after training."""
        return {}

    def keeps(self, sizes: Sizes) -> ArraySpecs:
        """Return the arrays besides its private modules that a client keeps between rounds."""
        return {}

    def start(self, model: nn.Module, sizes: Sizes, seed: int) -> dict[str, NDArray[Any]]:
        """Return the server's state before the first round."""
        return {}

    def broadcast(self, state: Arrays) -> Arrays:
        """Return the arrays besides the weights that every client receives."""
        return {name: state[name] for name in self.broadcasts}

    def message(self, state: Arrays, client: int) -> Arrays:
        """Return what this client alone receives: a few numbers, no large array."""
        return {}

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the exchanges with clients before training."""
        return ()

    def disclosed(self) -> dict[str, str]:
        """Return all that leaves a client besides weights and number of samples, by name, with what it reveals."""
        names, reveals = [*self.uploads, *(exchange.name for exchange in self.exchanges())], dict(self.discloses)
        return {name: reveals.get(name, "") for name in names if name != "weights"}

    def answers(self, exchange: str, sizes: Sizes) -> ArraySpecs:
        """Return what leaves a client in an exchange."""
        return {}

    def answer(self, exchange: str, context: ClientContext) -> Arrays:
        """Return a client's answer; changes to the context are discarded."""
        return {}

    def absorb(self, exchange: str, context: ServerContext) -> None:
        """Update the server's state with the clients' answers, which are the uploads of this context."""

    def prepare(self, context: ClientContext) -> Samples:
        """Return what the client trains on: its samples, or resampled, mixed or augmented ones."""
        return context.samples

    def client(self, context: ClientContext) -> Arrays | None:
        """Train the client's model and return the other arrays that the client sends, if any."""
        context.train()
        return None

    def server(self, context: ServerContext) -> NDArray[Any]:
        """Return the next shared arrays, as one vector: by default x <- sum_i p_i y_i."""
        return context.average()

    def logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the logits used for evaluation and re-labelling; the module is in evaluation mode."""
        scores: Tensor = module(x)
        return scores

    def local_logits(self, module: nn.Module, x: Tensor, received: Arrays) -> Tensor:
        """Return the logits of a client's personal model; by default the same."""
        return self.logits(module, x, received)
