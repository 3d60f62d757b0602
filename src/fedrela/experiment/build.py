"""The composition root: from a configuration to objects."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from fedrela.data.cache import Progress
from fedrela.data.federation import Federation, Recipe, build_federation
from fedrela.data.sources import SOURCES, Source, load
from fedrela.experiment.located import located
from fedrela.experiment.toml.places import KeyPath
from fedrela.metrics.groups import Groups, evaluation_groups

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config


def build_data(config: Config, *, source: Source | None = None, progress: Progress | None = None) -> Federation:
    """Build the federation that the ``[data]`` table describes.

    Parameters
    ----------
    config
        A checked configuration.
    source
        A source of your own, in place of the one that the configuration names.
    progress
        Called with (done, total, what) while files are decoded.

    Raises
    ------
    ArgumentError, DataError
        In one line, ``file:line:column: key: what is wrong``, where the data cannot be read or do not allow what is
        wanted of them.
    """
    data = config.data
    files: KeyPath = ("data", "source" if data.root is None else "root")
    origin = None
    if source is None:
        origin = {"source": data.source, "options": dict(data.options)}
        with located(config, _source_keys(data.source), files):
            source = load(data.source, data.root, progress=progress, **data.options)
    recipe = Recipe(config.seed, data.imbalance.plan(), data.partition.plan(), data.validation, data.standardize)
    with located(config, _recipe_keys(recipe), files):
        return build_federation(source, recipe, origin=origin)


def _source_keys(source: str) -> dict[str, KeyPath]:
    options: dict[str, KeyPath] = {name: ("data", "options", name) for name in SOURCES[source].options}
    return options | {"root": ("data", "root")}


def _recipe_keys(recipe: Recipe) -> dict[str, KeyPath]:
    """Return the keys behind the arguments of imbalance and partition, whose names all differ but for ``kind``."""
    keys: dict[str, KeyPath] = {"seed": ("seed",)}
    for table in ("imbalance", "partition"):
        keys[table] = ("data", table)
        keys |= {key.name: ("data", table, key.name) for key in fields(getattr(recipe, table)) if key.name != "kind"}
    return keys


def groups_of(federation: Federation, protocol: str = "counts") -> Groups:
    """Return the classes that are reported together: majority and minority, or head, medium and tail.

    Parameters
    ----------
    federation
        Its minority classes, where imbalance defines them, decide; else the counts do, by `protocol`.
    protocol
        See `fedrela.metrics.groups.evaluation_groups`.
    """
    test_counts = np.bincount(federation.y_test, minlength=federation.source.num_classes)
    return evaluation_groups(
        federation.selected_counts, minority=federation.minority, protocol=protocol, test_counts=test_counts
    )
