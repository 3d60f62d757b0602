"""Prove that a change of the code changed no result: record digests before it, compare after it.

    python tests/digests/digests.py record before.json
    python tests/digests/digests.py compare before.json

The runs cover all algorithms with FedReLa, both presets, periodic and late re-labelling, sampled clients, BatchNorm,
augmentation, collected posteriors, the random control and two workers. Digests are equal on the same processor with the
same package versions only, so this is a script and no test; a file holds one recording per machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedrela.algorithms import ALGORITHMS
from fedrela.experiment import run
from fedrela.models.runtime import processor

BASE: dict[str, dict[str, Any]] = {
    "data": {
        "source": "digits",
        "imbalance": {"kind": "step", "ratio": 10, "minority": [0, 1, 2]},
        "partition": {"kind": "dirichlet", "clients": 5, "alpha": 0.5, "min_size": 10},
    },
    "model": {"name": "mlp", "hidden": [24]},
    "train": {"rounds": 4, "epochs": 1, "batch_size": 32},
    "relabel": {"start": 3, "tau": 0.1},
    "engine": {"workers": 1},
}
QUICK: dict[str, dict[str, Any]] = {
    "climb": {"primal_steps": 1},
    "creff": {"retrain_epochs": 2, "match_steps": 2, "features": 8, "repeats": 2},
    "fedloge": {"frame_steps": 20},
    "ratioloss": {"probe": 6, "probe_epochs": 1},
}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "official preset": {"relabel": {"preset": "official", "lr_scale": 0.1}},
    "official collection": {"relabel": {"preset": "official", "passes": 3, "augment": True, "train_mode": True}},
    "periodic": {"relabel": {"period": 1, "start": 2}},
    "sampled": {"train": {"participation": 0.5, "rounds": 6}},
    "sampled, not late": {"train": {"participation": 0.5, "rounds": 6}, "relabel": {"late": False}},
    "batch normalisation": {"model": {"name": "resnet8"}, "train": {"rounds": 3, "augment": True}},
    "small cnn, augmented": {"model": {"name": "cnn_small"}, "train": {"augment": True, "clip": 1.0}},
    "collected": {"relabel": {"collected": True}},
    "random moves": {"relabel": {"moves": "random"}},
    "minmax": {"relabel": {"normalize": "minmax", "max_fraction": 0.02}},
    "tau per client": {"relabel": {"tau": {"0": 0.2, "default": 0.05}, "forbidden": [[9, 0]]}},
    "schedule and loss": {"train": {"schedule": "step", "loss": "balanced_softmax"}},
    "validation": {"data": {"validation": 0.2}, "train": {"local_test": True}},
    "two workers": {"engine": {"workers": 2}},
}
TABLES = {
    "data": {
        "source": "gaussians",
        "options": {"samples": [70, 38, 12], "test_samples": 20, "classes": 3, "dimension": 4},
        "imbalance": {"kind": "natural"},
        "partition": {"kind": "iid", "clients": 4},
    },
    "model": {"name": "logistic"},
}


def cases() -> dict[str, dict[str, Any]]:
    """Return the configuration of every run by name."""
    configs = {}
    for name in ALGORITHMS:
        configs[name] = changed({"algorithm": {"name": name, **QUICK.get(name, {})}})
        if name in ("creff", "fedetf", "fedloge", "fedyoyo", "fedrod"):
            network = {"model": {"name": "resnet8"}, "train": {"rounds": 3}}
            configs[f"{name}, batch normalisation"] = changed(configs[name], network)
    configs |= {f"fedavg, {name}": changed(change) for name, change in VARIANTS.items()}
    configs["scaffold, sampled"] = changed(configs["scaffold"], VARIANTS["sampled"])
    configs["fedrod, sampled"] = changed(configs["fedrod"], VARIANTS["sampled"], VARIANTS["periodic"])
    configs["fedavg, tables"] = changed(TABLES) | {"data": TABLES["data"]}
    return configs


def changed(*changes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the base configuration with changes laid over its tables."""
    config: dict[str, Any] = {"seed": 3, **{name: dict(table) for name, table in BASE.items()}}
    for change in changes:
        for name, table in change.items():
            if name != "seed":
                fresh = name == "model" and "name" in table
                config[name] = dict(table) if fresh else config.get(name, {}) | table
    return config


def digest_of(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a configuration and return what must not change."""
    run(config, out=folder)
    result = json.loads((folder / "result.json").read_text())
    rounds = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    compared = ("round", "accuracy", "loss", "chosen", "admitted", "moved", "relabelled", "validation", "samples")
    history = [{key: record.get(key) for key in compared} for record in rounds]
    ledgers = [ledger_of(path) for path in sorted((folder / "ledgers").rglob("*")) if path.is_file()]
    return {
        "weights": result["weights_sha256"],
        "accuracy": result["accuracy"]["overall"],
        "moved": result["moved"],
        "rounds": sha256(history),
        "ledgers": sha256(ledgers),
        "confusion": sha256(result["confusion"]),
    }


def ledger_of(path: Path) -> list[Any]:
    """Return the moves of a ledger file, whatever its form."""
    from fedrela import Ledger

    ledger = Ledger.load(path)
    changed = np.flatnonzero(ledger.labels != ledger.original)
    return [path.stem, ledger.original.tolist(), changed.tolist(), ledger.labels[changed].tolist()]


def sha256(value: Any) -> str:
    """Return the digest of plain values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def machine() -> dict[str, str]:
    """Return what digests depend on beside the code."""
    versions = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__}
    return {"processor": processor(), **versions}


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="runs whose name contains this")
    chosen = parser.parse_args()
    found: dict[str, Any] = {}
    for name, config in cases().items():
        if chosen.only in name:
            with tempfile.TemporaryDirectory() as folder:
                found[name] = digest_of(config, Path(folder) / "run")
            print(f"{name}: {found[name]['weights'][:12]} moved {found[name]['moved']}", flush=True)
    known = json.loads(chosen.file.read_text()) if chosen.file.exists() else []
    here = next((each["runs"] for each in known if each["machine"] == machine()), None)
    if chosen.what == "record":
        others = [each for each in known if each["machine"] != machine()]
        chosen.file.write_text(json.dumps([*others, {"machine": machine(), "runs": found}], indent=1) + "\n")
        return 0
    if here is None:
        print(f"{chosen.file}: nothing was recorded on this machine, {machine()}; record an earlier commit first")
        return 2
    fresh = sorted(set(found) - set(here))  # such as an algorithm that has changed since this machine's recording
    differing = [name for name in found if name in here and here[name] != found[name]]
    missing = sorted(set(here) - set(found)) if not chosen.only else []
    lists = {"different": differing, "missing": missing, "not recorded": fresh}
    equal = len(found) - len(differing) - len(fresh)
    print(f"{equal} equal, " + ", ".join(f"{len(names)} {what} {names}" for what, names in lists.items()))
    return 1 if differing or missing else 0


if __name__ == "__main__":
    sys.exit(main())
