"""The algorithms and models that a configuration may name, what an algorithm sends, and how many bytes that takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from fedrela.algorithms import ALGORITHMS, Algorithm, ArraySpec, Exchange, Sizes
from fedrela.errors import ArgumentError
from fedrela.models import MODELS, build, model_options
from fedrela.models.flat_model import FlatModel
from fedrela.models.layout import ParameterSplit
from fedrela.options import options_of

__all__ = ["ALGORITHMS", "MODELS", "Traffic", "model_options", "model_size", "sent_besides_weights", "traffic"]

COLOUR_IMAGE, TEN_CLASSES = (3, 32, 32), 10
CLIENTS, LARGEST = 10, 100  # an exchange's size may depend on them
# Names do not depend on sizes, but an algorithm is asked for both at once.
ANY_SIZES = Sizes(64, 64, TEN_CLASSES, features=8, clients=CLIENTS, inputs=COLOUR_IMAGE, largest=LARGEST)


def sent_besides_weights(algorithm: str) -> list[str]:
    """Return what leaves a client besides the weights.

    >>> sent_besides_weights("scaffold"), sent_besides_weights("climb")
    (['control'], ['loss (every 5 rounds, all clients)'])
    """
    kind = ALGORITHMS[algorithm]
    sent = [array for array in kind.uploads if array != "weights"]
    return sent + [_answers(kind(), exchange) for exchange in kind().exchanges()]


def _answers(baseline: Algorithm, exchange: Exchange) -> str:
    names = ", ".join(baseline.answers(exchange.name, ANY_SIZES)) or "number of samples"
    return f"{names} ({when(exchange)})"


def when(exchange: Exchange) -> str:
    """Describe when an exchange is held, and with whom."""
    often = {0: "once", 1: "before each round"}.get(exchange.every, f"every {exchange.every} rounds")
    return f"{often}{', all clients' if exchange.who == 'all' else ''}"


def model_size(name: str) -> int | None:
    """Return the number of parameters for 32x32x3 and 10 classes; None if a model does not accept those.

    >>> model_size("simple_cnn")
    62006
    """
    try:
        model = build(name, COLOUR_IMAGE, TEN_CLASSES)
    except ArgumentError:
        return None
    return sum(parameter.numel() for parameter in model.parameters())


class Traffic(NamedTuple):
    """Bytes per client and round: the weights, what else goes up and down, exchanges, and client state."""

    weights: int
    up: dict[str, int]
    down: dict[str, int]
    exchanges: dict[str, int]
    stored: dict[str, int]


def traffic(
    algorithm: str, model: str = "mlp", input_shape: tuple[int, ...] = (3, 32, 32), classes: int = 10, **options: Any
) -> Traffic:
    """Return what an algorithm with its official defaults sends, receives and stores.

    Examples
    --------
    >>> found = traffic("scaffold", "logistic", (4,), 3)
    >>> found.weights, found.up, found.stored
    (60, {'control': 60}, {'control': 60})
    """
    kind = ALGORITHMS[algorithm]
    fast = {"frame_steps": 0} if "frame_steps" in {option.name for option in options_of(kind.Params)} else {}
    baseline = kind(**fast)  # with few steps: only sizes matter here
    flat = FlatModel(baseline.module(build(model, input_shape, classes, **options), classes, 0))
    split = ParameterSplit.of(flat.layout, baseline.private)
    shared = split.shared.layout
    sizes = Sizes.of(flat, shared, classes=classes, clients=CLIENTS, inputs=input_shape, largest=LARGEST)
    state = baseline.start(flat.module, sizes, 0)
    down = {name: array.nbytes for name, array in baseline.broadcast(state).items()}
    down |= {f"{name} (its own)": array.nbytes for name, array in baseline.message(state, 0).items()}
    stored = _bytes(baseline.keeps(sizes))
    if split.private.layout.size:
        stored["private arrays"] = 4 * split.private.layout.size
    exchanges = {one.name: sum(_bytes(baseline.answers(one.name, sizes)).values()) for one in baseline.exchanges()}
    return Traffic(4 * sizes.shared, _bytes(baseline.sends(sizes)), down, exchanges, stored)


def _bytes(declared: Mapping[str, ArraySpec]) -> dict[str, int]:
    return {name: field.nbytes for name, field in declared.items()}


def size_depends_on_largest(algorithm: Algorithm) -> bool:
    """Whether the size of some exchange depends on the number of samples of the largest client.

    >>> size_depends_on_largest(ALGORITHMS["fedmix"]()), size_depends_on_largest(ALGORITHMS["fedmix"](group=4))
    (False, True)
    """
    small, large = (replace(ANY_SIZES, largest=number) for number in (1, LARGEST))
    return any(
        dict(algorithm.answers(e.name, small)) != dict(algorithm.answers(e.name, large)) for e in algorithm.exchanges()
    )
