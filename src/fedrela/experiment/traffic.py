"""What an algorithm costs in bytes with a model: what it sends and receives beside the weights, and what it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fedrela.algorithms import ALGORITHMS, Algorithm, ArraySpec, Sizes
from fedrela.models import build
from fedrela.models.arrays import FlatModel
from fedrela.models.share import ParameterSplit
from fedrela.options import options_of

CLIENTS, LARGEST = 10, 100  # an exchange's size may depend on them


class Traffic(NamedTuple):
    """Bytes of one client's turn: the weights, what goes up and down beside them, exchanges, and what is kept."""

    weights: int
    up: dict[str, int]
    down: dict[str, int]
    exchanges: dict[str, int]
    kept: dict[str, int]


def traffic(
    algorithm: str, model: str = "mlp", input_shape: tuple[int, ...] = (3, 32, 32), classes: int = 10, **options: Any
) -> Traffic:
    """Return what an algorithm with its official defaults moves and keeps.

    Examples
    --------
    >>> found = traffic("scaffold", "logistic", (4,), 3)
    >>> found.weights, found.up, found.kept
    (60, {'control': 60}, {'control': 60})
    """
    baseline = _sketch(algorithm)
    flat = FlatModel(baseline.module(build(model, input_shape, classes, **options), classes, 0))
    share = ParameterSplit.of(flat.layout, baseline.private)
    shared = share.shared.layout
    sizes = Sizes.of(flat, shared, classes=classes, clients=CLIENTS, inputs=input_shape, largest=LARGEST)
    state = baseline.start(flat.module, sizes, 0)
    down = {name: array.nbytes for name, array in baseline.broadcast(state).items()}
    down |= {f"{name} (its own)": array.nbytes for name, array in baseline.message(state, 0).items()}
    kept = _bytes(baseline.keeps(sizes))
    if share.private.layout.size:
        kept["private arrays"] = 4 * share.private.layout.size
    exchanges = {one.name: sum(_bytes(baseline.answers(one.name, sizes)).values()) for one in baseline.exchanges()}
    return Traffic(4 * sizes.shared, _bytes(baseline.sends(sizes)), down, exchanges, kept)


def _sketch(algorithm: str) -> Algorithm:
    """Return an algorithm that need not make its frame in earnest: only sizes are asked."""
    kind = ALGORITHMS[algorithm]
    steps = {"frame_steps": 0} if "frame_steps" in {option.name for option in options_of(kind.Params)} else {}
    return kind(**steps)


def _bytes(declared: Mapping[str, ArraySpec]) -> dict[str, int]:
    return {name: field.nbytes for name, field in declared.items()}


def variants(algorithm: str) -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Return the named options by which an algorithm can follow its original code: default, choices, meaning."""
    chosen = [option for option in options_of(ALGORITHMS[algorithm].Params) if option.words]
    return {option.name: (option.default, option.choices, option.help) for option in chosen}
