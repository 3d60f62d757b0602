"""The record of a finished run in a study's ``summary.json``: digests, accuracies, labels moved, seconds, versions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedrela.errors import IntegrityError
from fedrela.experiment.result import Result
from fedrela.files import digest
from fedrela.models.runtime import processor
from fedrela.runfolder import RunFolder
from fedrela.runfolder.json_records import Record
from fedrela.runfolder.names import MACHINE

CURVE = 20  # points of accuracy over rounds that a record keeps, about
VALIDATION_KEYS = ("overall", "balanced", "groups")  # of the accuracies on the clients' validation samples
DIGITS = 6  # decimals of a share
REQUIRED = {  # what every record has
    "address": str, "config_sha256": str, "weights_sha256": str, "rounds": int, "headline": str, "overall": int | float,
    "environment": dict,
}  # fmt: skip


def check_records(place: Path, cells: Any) -> list[Record]:
    """Return the records of ``summary.json``; raise an `IntegrityError` if one is damaged or there twice."""
    advice = "restore the file, or remove it and run the study again"
    if not isinstance(cells, list):
        raise IntegrityError(f"expected a list of cells; {advice}", path=place)
    addresses = set()
    for i, record in enumerate(cells):
        if not isinstance(record, dict):
            raise IntegrityError(f"cells[{i}]: expected a table, got {type(record).__name__}; {advice}", path=place)
        for key, kind in REQUIRED.items():
            if not isinstance(record.get(key), kind):
                raise IntegrityError(f"cells[{i}].{key}: is missing or no {key}; {advice}", path=place)
        if record["address"] in addresses:
            raise IntegrityError(f"cells[{i}]: this run is recorded twice; {advice}", path=place)
        addresses.add(record["address"])
    return cells


def run_record(result: Result) -> Record:
    """Return the record of a finished run: digests, accuracies, labels moved, seconds and versions."""
    record, folder = result.record, RunFolder.open(result.folder)
    history = [each for each in result.history() if each["accuracy"]]
    curve = [(each["round"], each["accuracy"][record["headline"]]) for each in history]
    seconds = sum(sum(value for key, value in each.items() if key != "round") for each in folder.timing())
    validation = {key: record["validation"][key] for key in VALIDATION_KEYS} if "validation" in record else None
    kept: Record = _rounded(
        {
            "config_sha256": result.config_sha256,
            "data_sha256": digest(json.dumps(folder.manifest["data"].get("arrays"), sort_keys=True).encode()),
            **({"code": folder.manifest["code"]} if folder.manifest.get("code") else {}),
            "weights_sha256": result.weights_sha256,
            "rounds": result.rounds,
            "headline": record["headline"],
            **{key: value for key, value in record["accuracy"].items() if value is not None},
            "macro_f1": record["macro_f1"],
            "moved": result.moved,
            **({} if validation is None else {"validation": validation}),
            **{key: record[key] for key in ("at_threshold",) if key in record},
            "best_test": {key: value for key, value in result.metrics("best-test").items() if key != "moved"},
            "last_ten": last_ten(curve),
            "curve": _thinned(curve),
            "seconds": round(seconds, 1),
            "environment": {**folder.manifest["packages"], **environment(folder)},
        }
    )
    return kept


def environment(folder: RunFolder) -> Record:
    """Return what the bits of a result may depend on besides package versions: where the run started."""
    machine = folder.read_json(MACHINE)
    return {"python": machine["python"], "machine": f"{machine['system']} {machine.get('processor') or processor()}"}


def last_ten(curve: Sequence[tuple[int, float]]) -> float | None:
    """Return the gain over the last ten rounds; None if the round before them was not scored.

    >>> last_ten([(10, 0.5), (20, 0.8), (30, 0.81)])
    0.01
    """
    known = dict(curve)
    last = max(known, default=0)
    return round(known[last] - known[last - 10], DIGITS) if last - 10 in known else None


def _thinned(curve: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    step = max(1, -(-len(curve) // CURVE))
    return [point for i, point in enumerate(curve) if (len(curve) - 1 - i) % step == 0]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value
