"""Settings laid one over another: each holds at some places of a table, and the last that speaks of a key counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedrela.experiment.overlay import nested

# A key that chooses -> the keys that belonged to the former choice.
CHOOSERS = {
    "algorithm.name": "algorithm.",
    "data.imbalance.kind": "data.imbalance.",
    "data.partition.kind": "data.partition.",
    "data.source": "data.options.",
    "model.name": "model.",
}


@dataclass(frozen=True)
class Overlay:
    """Settings by dotted key, and where they hold: at every place whose axes have one of the values in `at`."""

    at: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Any]

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Overlay:
        """Return the overlay that a TOML table states: its key ``at``, and tables of a configuration.

        >>> Overlay.of({"at": {"method": "FedAvg"}, "train": {"lr": 0.1}})
        Overlay(at={'method': ('FedAvg',)}, values={'train.lr': 0.1})
        """
        at = {axis: (value,) if isinstance(value, str) else tuple(value) for axis, value in table.get("at", {}).items()}
        return cls(at, dict(_flat({key: value for key, value in table.items() if key != "at"})))

    def holds(self, place: Mapping[str, str]) -> bool:
        """Whether it holds at a place."""
        return all(place.get(axis) in values for axis, values in self.at.items())


def settled(overlays: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a configuration's tables from settings by dotted key, later ones over earlier ones.

    A key that makes another choice, such as ``model.name``, clears what was set for the former one.

    >>> settled([{"model.name": "mlp", "model.hidden": [9], "seed": 1}, {"model.name": "cnn"}, {"seed": 2}])
    {'seed': 2, 'model': {'name': 'cnn'}}
    """
    found: dict[str, Any] = {}
    for overlay in overlays:
        for key, value in overlay.items():
            if key in CHOOSERS and found.get(key, value) != value:
                found = {other: v for other, v in found.items() if not other.startswith(CHOOSERS[key])}
        found |= overlay
    return nested(found)


def number(text: str) -> float | int | None:
    """Return the number that an axis states, or None for a word.

    >>> number("10"), number("0.3"), number("5%"), number("Original")
    (10, 0.3, 0.05, None)
    """
    digits = text.removesuffix("%")
    if not digits.replace(".", "", 1).isdecimal():
        return None
    if digits != text:
        return float(digits) / 100
    return float(digits) if "." in digits else int(digits)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value
