"""The named choices of a re-labelling: the paper's equations, the official code's, and the ablations.

Where paper and official code differ, the difference is one of three options; a preset fixes all three, and naming
one overrides the preset for that one alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.core.checks import as_array, check_array, check_choice, check_fraction

PRESETS = {
    "paper": {"spread": "sample", "threshold": "higher", "target": "argmax"},
    "official": {"spread": "population", "threshold": "order", "target": "winner"},
}
SPREADS = ("sample", "population")
QUANTILES = ("higher", "order", "linear")
TARGETS = ("argmax", "winner")
NORMALIZATIONS = ("zscore", "minmax", "none")

Threshold = str | NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """How one re-labelling works; built by `resolve`, so every field is valid."""

    tau: float
    spread: str
    threshold: Threshold
    target: str
    normalize: str
    max_fraction: float

    def with_tau(self, tau: float) -> Options:
        """Return the same options with another tau."""
        return replace(self, tau=check_fraction("tau", tau, per_cent_hint=True))

    def as_record(self) -> dict[str, Any]:
        """Return plain values for the ledger."""
        record = asdict(self)
        if not isinstance(self.threshold, str):
            record["threshold"] = self.threshold.tolist()
        return record


def resolve(
    num_classes: int,
    *,
    tau: float,
    preset: str,
    spread: str | None,
    threshold: str | float | ArrayLike | None,
    target: str | None,
    normalize: str,
    max_fraction: float,
) -> Options:
    """Fill what was left open from the preset, and check every choice."""
    fixed = PRESETS[check_choice("preset", preset, tuple(PRESETS))]
    return Options(
        tau=check_fraction("tau", tau, per_cent_hint=True),
        spread=check_choice("spread", fixed["spread"] if spread is None else spread, SPREADS),
        threshold=_threshold(fixed["threshold"] if threshold is None else threshold, num_classes),
        target=check_choice("target", fixed["target"] if target is None else target, TARGETS),
        normalize=check_choice("normalize", normalize, NORMALIZATIONS),
        max_fraction=check_fraction("max_fraction", max_fraction),
    )


def _threshold(value: str | float | ArrayLike, num_classes: int) -> Threshold:
    if isinstance(value, str):
        return check_choice("threshold (by name)", value, QUANTILES)
    constant = as_array("threshold (z values)", value)
    wide = np.full(num_classes, constant) if constant.ndim == 0 else constant
    return check_array("threshold (z values)", wide, (num_classes,), np.float64)
