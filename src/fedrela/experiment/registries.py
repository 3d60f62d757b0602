"""What a configuration may name, as facts for people: read from the registries themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

from fedrela.algorithms import ALGORITHMS, Algorithm, Exchange, Sizes
from fedrela.errors import ArgumentError
from fedrela.models import MODELS, build, model_options
from fedrela.options import Option, options_of

COLOUR_PICTURE, TEN_CLASSES = (3, 32, 32), 10
# Names do not depend on sizes, but an algorithm is asked for both at once.
ANY_SIZES = Sizes(shared=64, trained=64, classes=10, features=8, clients=10, inputs=COLOUR_PICTURE, largest=100)


class AlgorithmFacts(NamedTuple):
    """An algorithm: authors and year, what leaves a client beside the weights, and its parameters."""

    name: str
    paper: str
    sends: tuple[str, ...]
    parameters: tuple[Option, ...]


class ModelFacts(NamedTuple):
    """A model: its options with their defaults, and its parameters for 32x32x3 and 10 classes, if it takes those."""

    name: str
    options: dict[str, Any]
    parameters: int | None


def algorithms() -> Iterator[AlgorithmFacts]:
    """Yield every algorithm.

    >>> facts = {each.name: each for each in algorithms()}
    >>> facts["fedprox"].parameters[0].help
    'weight of the proximal term'
    """
    for name, kind in ALGORITHMS.items():
        baseline = kind()
        sent = [array for array in kind.uploads if array != "weights"]
        sent += [_answers(baseline, exchange) for exchange in baseline.exchanges()]
        yield AlgorithmFacts(name, kind.paper, tuple(sent), options_of(kind.Params))


def _answers(baseline: Algorithm, exchange: Exchange) -> str:
    names = ", ".join(baseline.answers(exchange.name, ANY_SIZES)) or "number of samples"
    when = {0: "once", 1: "before each round"}.get(exchange.every, f"every {exchange.every} rounds")
    return f"{names} ({when}{', all clients' if exchange.who == 'all' else ''})"


def models() -> Iterator[ModelFacts]:
    """Yield every model.

    >>> {each.name: each.parameters for each in models()}["simple_cnn"]
    62006
    """
    for name, make in MODELS.items():
        defaults = inspect.signature(make).parameters
        yield ModelFacts(name, {option: defaults[option].default for option in model_options(name)}, _size(name))


def _size(name: str) -> int | None:
    try:
        model = build(name, COLOUR_PICTURE, TEN_CLASSES)
    except ArgumentError:
        return None
    return sum(parameter.numel() for parameter in model.parameters())
