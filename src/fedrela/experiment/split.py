"""The shards of a configuration as private data: one folder per node, and one for the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.data.federation import Federation
from fedrela.errors import DataError
from fedrela.experiment.build import build_data, first_of_each, groups_of
from fedrela.experiment.load import config_toml
from fedrela.experiment.registries import size_depends_on_largest
from fedrela.experiment.runner import build_plan
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.federation import FederationConfig
from fedrela.experiment.toml.writer import toml_text
from fedrela.files import array_bytes, new_folder, write_new
from fedrela.files.operations import make_folder

CONFIG, NODES, SERVER = "config.toml", "nodes", "server"
SAMPLES = "samples.npz"


def split(config: Config, target: str | Path) -> list[str]:
    """Write the shards of a configuration as private data to a new folder; return the nodes' names.

    ``nodes/NAME/`` has ``node.toml`` and the samples of one node, ``server/`` ``server.toml`` with the test set and
    what the algorithm's server needs, and ``config.toml`` is the configuration with the table ``[federation]``.
    """
    with new_folder(Path(target)) as folder:
        federation = build_data(config)
        agreed = config.federation or _agreed(config, federation)
        config = _with_constants(config.model_copy(update={"federation": agreed}), federation)
        build_plan(config, federation)  # raises where the table does not fit the data
        write_new(folder / CONFIG, [config_toml(config).encode()])
        make_folder(folder / NODES)
        x, y = federation.source.x_train, federation.y_train
        for name, shard in zip(agreed.nodes, federation.shards, strict=True):
            parts = [x[shard.train], y[shard.train], x[shard.validation], y[shard.validation]]
            _write(folder / NODES / name, "node.toml", parts, federation, {"name": name})
        ids = first_of_each(y, config.algorithm.make().auxiliary)
        parts = [x[ids], y[ids], federation.source.x_test, federation.y_test]
        _write(folder / SERVER, "server.toml", parts, federation, {})
    return list(agreed.nodes)


def _write(folder: Path, file: str, parts: list[NDArray[Any]], federation: Federation, more: dict[str, Any]) -> None:
    source, names = federation.source, ("x_train", "y_train", "x_test", "y_test")
    arrays = dict(zip(names, parts, strict=True)) | {"class_names": np.array(source.class_names)}
    if source.feature_names:
        arrays["feature_names"] = np.array(source.feature_names)
    make_folder(folder)
    write_new(folder / SAMPLES, [array_bytes(arrays)])
    options = {"layout": "nchw"} if source.numeric is None else {}
    options |= {"form": "array"} if source.numeric is None and not source.is_image else {}
    table = more | {"source": "npz", "root": SAMPLES, "options": options}
    if file == "node.toml":
        table["policy"] = {"confusion": True}
    write_new(folder / file, [toml_text(table).encode()])
    for path in (folder, folder / SAMPLES, folder / file):
        path.chmod(0o700 if path == folder else 0o600)  # private to the owner


def _agreed(config: Config, federation: Federation) -> FederationConfig:
    """Return the table that describes a federation whose nodes are numbered."""
    source, data, clients = federation.source, config.data, len(federation.shards)
    width = max(2, len(str(clients - 1)))
    table: dict[str, Any] = {
        "nodes": tuple(f"node-{k:0{width}}" for k in range(clients)),
        "classes": source.class_names,
        "pixel_max": source.pixel_max,
        "evaluate": "both" if data.validation else "server",
    }
    if source.numeric is not None:
        table |= {"columns": source.feature_names, "encoded": tuple(source.encoded)}
        table["statistics"] = data.standardize == "pooled"
    else:
        kinds = {"u": "images", "f": "numbers", "i": "tokens"}
        table |= {"shape": tuple(source.x_train.shape[1:]), "form": kinds[source.x_train.dtype.kind]}
        table["statistics"] = source.is_image and data.scaling == "fit"
    groups = groups_of(federation, data.protocol)
    members = {name: [source.class_names[c] for c in groups.members(name)] for name in groups.names}
    table["groups"] = {name: tuple(classes) for name, classes in members.items()}
    if size_depends_on_largest(config.algorithm.make()):
        table["largest"] = max(len(shard.train) for shard in federation.shards)
    try:
        return FederationConfig(**table)
    except ValueError as error:
        raise DataError(f"{source.name}: does not fit [federation]: {error}") from None


def _with_constants(config: Config, federation: Federation) -> Config:
    """Return the configuration with mean and std in numbers where samples are series: float sums are not exact."""
    x = federation.x_train
    if config.data.scaling != "fit" or x.ndim < 3 or x.dtype.kind != "f":
        return config
    scaling = build_plan(config.model_copy(update={"federation": None}), federation)[0].scaling
    data = config.data.model_copy(update={"scaling": {"mean": scaling.mean, "std": scaling.std}})
    return config.model_copy(update={"data": data})
