"""Repeat some recorded runs of a study, and compare them with their records."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.grid import Cell
from fedrela.experiment.runner import run
from fedrela.reproduction.studies import SUMMARY, Study
from fedrela.reproduction.study_records import run_record
from fedrela.runfolder.json_records import Record
from fedrela.text import listed

TOLERANCE = 0.02  # by how much an accuracy may differ elsewhere: another processor, another version of PyTorch
GROUP_TOLERANCE = 0.1  # the same for a group of classes, which may have few test samples
SHARES = ("overall", "balanced", "groups", "validation")  # of a record, that are compared elsewhere
LATER = ("at_threshold", "best_test", "data_sha256", "code")  # that early records lack
NOT_COMPARED = ("seconds", "environment")
SAME = "the same weights, bit by bit"
OTHER = "other weights, on the same machine with the same versions"


@dataclass(frozen=True)
class Check:
    """Whether a repeated run agrees with its record, and why."""

    same: bool
    words: str


def verify(
    study: Study, cells: int, seed: int, out: Path, on_start: Callable[[Cell], None], workers: int | str | None = None
) -> Iterator[Check]:
    """Repeat some recorded runs of a study, alone and from their first round, and compare them with the records.

    `seed` chooses the `cells` runs; `on_start` is called before each. On the same machine with the same versions
    weights must have the same digest; elsewhere the accuracies must agree within `TOLERANCE`.
    """
    recorded = {cell.name: (cell, record) for cell, record in study.recorded()}.values()  # rows may share a run
    if not recorded:
        raise DataError(f"{study.folder / SUMMARY}: no run is recorded yet; use fedrela results run {study.folder}")
    if cells > len(recorded):
        raise ArgumentError(f"--cells: expected at most {len(recorded)}, the runs that are recorded, got {cells}")
    for cell, record in random.Random(seed).sample(list(recorded), cells):
        on_start(cell)
        found = run_record(run(cell.config, out=out / cell.name, workers=workers))
        yield compared(record, found)


def compared(wanted: Record, found: Record) -> Check:
    """Compare a repeated run with its record.

    >>> record = {"weights_sha256": "a", "overall": 0.8, "moved": 3, "groups": {"tail": 0.1}, "environment": {}}
    >>> compared(record, record).words
    'the same weights, bit by bit'
    >>> compared({**record, "overall": 0.83, "moved": 4}, record).words
    'the same weights, bit by bit, but the record has another overall (off by 3.0 points) and moved'
    >>> elsewhere = {**record, "weights_sha256": "b", "environment": {"torch": "3"}}
    >>> compared(record, elsewhere).words
    'not the same machine and versions; overall differs by 0.0 points, within the tolerance of 2'
    >>> compared({**record, "overall": 0.83}, elsewhere).words
    'not the same machine and versions; overall differs by 3.0 points, more than the tolerance of 2'
    """
    found = json.loads(json.dumps(found))  # JSON stores tuples as lists
    same_weights = wanted["weights_sha256"] == found["weights_sha256"]
    if wanted["environment"] == found["environment"]:
        keys = dict.fromkeys([*found, *(key for key in wanted if key in LATER)])
        absent = [key for key in LATER if key not in wanted]
        others = [key for key in keys if key not in (*NOT_COMPARED, *absent) and wanted.get(key) != found.get(key)]
        if same_weights and others:
            named = listed([_named(wanted.get(key), found.get(key), key) for key in others])
            return Check(False, f"{SAME}, but the record has another {named}")
        return Check(same_weights, SAME if same_weights else OTHER)
    shares, measured = _shares(wanted), _shares(found)
    gaps = {name: abs(shares.get(name, -1.0) - share) for name, share in measured.items()}
    limits = {name: GROUP_TOLERANCE if "." in name and not same_weights else TOLERANCE for name in gaps}
    worst = max(gaps, key=lambda name: gaps[name] / limits[name])
    same = gaps[worst] <= limits[worst]
    words = f"{worst} differs by {100 * gaps[worst]:.1f} points, {'within' if same else 'more than'} the tolerance"
    words = f"not the same machine and versions; {words} of {100 * limits[worst]:g}"
    return Check(same, f"{SAME}; {words}" if same_weights else words)


def _named(wanted: Any, found: Any, key: str) -> str:
    """Write a key in which two records differ, with the difference of an accuracy."""
    if isinstance(wanted, float) and isinstance(found, float):
        return f"{key} (off by {100 * abs(wanted - found):.1f} points)"
    return key


def _shares(record: Mapping[str, Any], names: tuple[str, ...] = SHARES) -> dict[str, float]:
    """Return the accuracies of a record by name, such as ``groups.tail`` or ``validation.groups.tail``."""
    shares: dict[str, float] = {}
    for name in names:
        if isinstance(value := record.get(name), Mapping):
            shares |= {f"{name}.{key}": share for key, share in _shares(value, tuple(value)).items()}
        elif value is not None:
            shares[name] = float(value)
    return shares
