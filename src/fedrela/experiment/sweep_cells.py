"""The runs of a sweep: every combination of values, for every baseline, arm and seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedrela.experiment.arms import ARMS
from fedrela.experiment.grid import Cell
from fedrela.experiment.overlay import laid_over, nested, overlay
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.baselines import BaselineConfig
from fedrela.experiment.schema.relabel import RelabelConfig
from fedrela.experiment.schema.sweep import entries_of, points_of
from fedrela.experiment.schema.swept import compared

AS_GIVEN = "as given"  # the arm where [compare] names none: what [relabel] says
SWEPT_BASELINE = "as swept"  # the baseline where the algorithm itself is swept
ACT_WITHOUT = ("enabled", "lr_scale", "collected")  # keys of [relabel] that may change a run that re-labels nothing


def cells_of(config: Config) -> Iterator[Cell]:
    """Yield every run: all combinations of values for every baseline, arm and seed."""
    entries = entries_of(config.sweep)
    chosen = any(entry.target in (("algorithm",), ("algorithm", "name")) for entry in entries)
    usual = BaselineConfig.of(config.algorithm).label
    baselines = {baseline.label: baseline.changes() for baseline in compared(config, "baselines")}
    for label, baseline in (baselines or {SWEPT_BASELINE if chosen else usual: {}}).items():
        for point in points_of(entries):
            for arm in compared(config, "arms") or (AS_GIVEN,):
                for seed in compared(config, "seeds") or (config.seed,):
                    last = {"seed": seed, **({"relabel": ARMS[arm]} if arm in ARMS else {})}
                    yield Cell(_swept(config, baseline, point.values, last), label, arm, seed, point.values)


def _swept(config: Config, baseline: Mapping[str, Any], values: Mapping[str, Any], last: Mapping[str, Any]) -> Config:
    """Return the configuration of one run: values over what its baseline lays over, and what its arm sets last.

    Swept keys that cannot change a run without re-labelling have their defaults in it, so that there is one such run.
    """
    made = overlay(config, laid_over(laid_over(baseline, nested(values)), last))
    if made.relabel.enabled:
        return made
    acting = {*ACT_WITHOUT, *(() if made.relabel.lr_scale == 1 else ("start",))}
    swept = {key.split(".")[1] for key in values if key.startswith("relabel.")} - acting
    return overlay(made, {"relabel": {name: RelabelConfig.model_fields[name].default for name in swept}})
