"""What identifies a run besides its accuracies: its manifest, its configuration as kept, and whether two runs agree."""

from __future__ import annotations

import json
import os
import platform
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fedrela.components import code_digests
from fedrela.data.federation import Federation
from fedrela.engine.dispatch import broadcast_arrays, message_arrays
from fedrela.engine.executors import Executor
from fedrela.engine.run import Run
from fedrela.errors import ArgumentError, IntegrityError
from fedrela.experiment.build import LONGEST_MESSAGE
from fedrela.experiment.load import config_sha256
from fedrela.experiment.private import PrivateFederation
from fedrela.experiment.schema import Config
from fedrela.experiment.toml.writer import leaves, toml_text
from fedrela.models.runtime import processor
from fedrela.records import RunManifest
from fedrela.runfolder import RunFolder
from fedrela.runfolder.names import CONFIG
from fedrela.text import printable

MOST_NAMED = 3  # keys that a message about another configuration names
PACKAGES = ("fedrela", "numpy", "torch")  # whose versions a result may depend on


def manifest_of(config: Config, federation: Federation | PrivateFederation, made: Run) -> RunManifest:
    """Return what a run's result depends on, besides its configuration."""
    groups, algorithm = made.problem.groups, made.plan.algorithm
    received = broadcast_arrays(made) | message_arrays(made, 0)
    return RunManifest(
        version=version("fedrela"),
        config_sha256=config_sha256(config),
        data=federation.manifest(),
        model={
            "arrays": [[entry.name, list(entry.shape), entry.kind] for entry in made.arrays.layout.entries],
            "dtype": made.arrays.layout.dtype,
            "first_sha256": made.arrays.layout.sha256(made.state.weights),
            "scaling": made.problem.scaling.as_record(),
        },
        algorithm={
            "name": algorithm.name,
            "label": algorithm.label,
            "params": asdict(algorithm.params),
            "sends": {name: [list(field.shape), field.dtype] for name, field in made.arrays.upload.items()},
            "receives": {name: [list(array.shape), str(array.dtype)] for name, array in received.items()},
            "keeps": {name: [list(field.shape), field.dtype] for name, field in made.arrays.client_state.items()},
        },
        classes=list(made.problem.class_names),
        groups={"names": list(groups.names), "of_class": groups.of_class.tolist(), "protocol": groups.protocol},
        packages={name: version(name) for name in PACKAGES},
        code=code_of(config),
    )


def code_of(config: Config) -> dict[str, str]:
    """Return the digest of each file of the user's own that a configuration names as ``module:name``, by module."""
    return code_digests([config.data.source, config.model.name, config.algorithm.name, config.relabel.method])


def run_toml(config: Config) -> str:
    """Return the configuration as the run folder keeps it: without ``[engine]``, on which nothing depends."""
    return toml_text({key: value for key, value in config.as_table().items() if key != "engine"})


def machine_facts(config: Config, executor: Executor) -> dict[str, Any]:
    """Return facts that are never compared: when and on what machine the run started, and its workers."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "processor": processor(),
        "system": platform.system(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "engine": config.engine.as_table(),
        "remote_clients": executor.remote_clients,
    }


def check_same_config(folder: RunFolder, config: Config) -> None:
    """Raise if the run in a folder has a different configuration, and name the differences."""
    if folder.manifest["config_sha256"] == config_sha256(config):
        return
    stored, given = (dict(leaves(tomllib.loads(text))) for text in (folder.read(CONFIG).decode(), run_toml(config)))
    found = [
        f"{key} is {given.get(key, 'left out')}, there {stored.get(key, 'left out')}"
        for key in dict.fromkeys([*given, *stored])
        if given.get(key) != stored.get(key)
    ]
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    what = printable(f"{', '.join(found[:MOST_NAMED])}{more}" or "its digest differs", LONGEST_MESSAGE)
    advice = "give the same configuration to resume it, or another folder to start a new run"
    raise ArgumentError(f"{folder.path}: the run there has a different configuration: {what}; {advice}")


def check_comparable(path: Path, manifest: Mapping[str, Any]) -> None:
    """Raise if the run of a manifest has other data, packages or code than the one in a folder."""
    manifests = (RunFolder.open(path).manifest, manifest)
    wanted, found = (
        {"packages": each["packages"], "data": each["data"].get("arrays"), "code": each.get("code", {})}
        for each in manifests
    )
    check_same(path, wanted, found)


def check_code(path: Path, wanted: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Raise if a module that has a digest in both, by what a run in a folder recorded and as it is now, has changed."""
    if changed := [module for module in wanted if found.get(module, wanted[module]) != wanted[module]]:
        what = printable(f"your own code in {', '.join(changed)} has changed since the run started", LONGEST_MESSAGE)
        raise IntegrityError(f"{path}: {what}; restore it to continue, or begin in a new folder")


def check_same(path: Path, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Raise if a run in a folder, to be continued or compared, has other values in its manifest."""
    as_stored = json.loads(json.dumps(found))  # JSON stores tuples as lists
    if "ids_sha256" not in wanted.get("data", {}):  # the run began with a version that had no ids
        as_stored.get("data", {}).pop("ids_sha256", None)
    first = ("code", "packages")  # since all else may follow from them
    for key in sorted(wanted, key=lambda key: key not in first):
        if key == "code":
            check_code(path, wanted[key], as_stored.get(key, {}))
        elif wanted[key] != as_stored.get(key):
            if key == "packages":
                now, then = _different_versions(as_stored.get(key, {}), wanted[key])
                what = f"this environment has {now}, but the run started with {then}"
                raise IntegrityError(f"{path}: {what}; install the same to continue")
            advice = "to continue, give the same one, your own model or algorithm included"
            raise IntegrityError(f"{path}: {key} differs from what the run started with; {advice}")


def _different_versions(*packages: Mapping[str, str]) -> list[str]:
    """Return in words, for each of two environments, the versions in which they differ.

    >>> _different_versions({"numpy": "2", "torch": "8"}, {"numpy": "1", "torch": "8", "mine": "3"})
    ['numpy 2, no mine', 'numpy 1, mine 3']
    """
    one, other = packages
    names = [name for name in {**other, **one} if one.get(name) != other.get(name)]
    return [", ".join(f"{name} {has[name]}" if name in has else f"no {name}" for name in names) for has in packages]
