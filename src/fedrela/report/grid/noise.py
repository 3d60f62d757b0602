"""Which differences are more than noise, said in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrela.metrics.paired import is_noise
from fedrela.report.run.words import listed, name
from fedrela.report.tables.cells import points
from fedrela.report.tables.compare import pairs

Summary = Mapping[str, Any]
CHANCE = 0.05  # of an interval of 95 % to miss a difference of zero
MANY = 10  # differences among which chance must be spoken of


def verdict(difference: Mapping[str, Any]) -> str:
    """Return whether a paired difference lies beyond noise: whether its 95 % interval leaves zero out.

    >>> verdict({"mean": 0.2, "low": 0.1, "high": 0.3}), verdict({"mean": -0.2, "low": -0.3, "high": -0.1})
    ('gain', 'loss')
    >>> verdict({"mean": 0.2, "low": -0.1, "high": 0.5}), verdict({"mean": 0.2, "low": None, "high": None})
    ('noise', 'unknown')
    """
    noise = is_noise(difference)
    if noise is None:
        return "unknown"
    return "noise" if noise else "gain" if difference["mean"] > 0 else "loss"


def verdicts(summary: Summary) -> dict[tuple[str, str], str]:
    """Return for every kind of matched pair what the differences of all baselines say."""
    kinds: dict[tuple[str, str], dict[str, list[str]]] = {}
    for baseline, pair in pairs(summary):
        found = kinds.setdefault((pair["base"], pair["treated"]), {})
        for figure in summary["figures"]:
            difference = pair["differences"][figure]
            words = f"{name(baseline['label'])} {name(figure)} {points(difference['mean'])}"
            if difference["mean"] is not None:
                found.setdefault(verdict(difference), []).append(words)
    return {kind: _sentences(found) for kind, found in kinds.items()}


def _sentences(found: Mapping[str, list[str]]) -> str:
    words = {
        "gain": "Gains beyond noise, in points",
        "loss": "Losses beyond noise",
        "noise": "Within noise",
        "unknown": "With one seed nothing says how much of it is noise",
    }
    return " ".join(f"{words[kind]}: {listed(found[kind])}." for kind in words if kind in found)


def meaning(summary: Summary) -> str:
    """Say what beyond noise means here."""
    seeds, number = len(summary["seeds"]), sum(len(pair["differences"]) for _, pair in pairs(summary))
    if seeds < 2:
        return "One seed was run. Two or more are needed to tell a difference from noise."
    said = (
        "A difference is taken seed by seed, between arms that share every round before re-labelling. It lies beyond "
        f"noise where its 95 % interval (Student's t over {seeds} seeds) leaves zero out."
    )
    if number >= MANY:
        chance = max(1, round(CHANCE * number))
        said += f" Of {number} differences about {chance} would do so by chance alone."
    if seeds < 4:
        said += " So few seeds make wide intervals: what is within noise here may still be real."
    return said
