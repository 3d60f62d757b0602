"""From a configuration to its data; errors name the key to blame and its place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from fedrela.data.cache import Progress
from fedrela.data.federation import Federation, Recipe, build_federation
from fedrela.data.sources import SOURCES, Source, load
from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.toml.positions import KeyPath
from fedrela.experiment.toml.reader import placed
from fedrela.metrics.groups import Groups, evaluation_groups
from fedrela.text import printable

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

LONGEST_MESSAGE = 2000  # characters; messages about data hold whole paths


@contextlib.contextmanager
def located(config: Config, keys: Mapping[str, KeyPath], otherwise: KeyPath) -> Iterator[None]:
    r"""Raise an `ArgumentError` or a `DataError` of the block anew: the same class, with place and key in front.

    Parameters
    ----------
    config
        The configuration that the block follows.
    keys
        The name of an argument, and the key of the configuration that it comes from.
    otherwise
        The key to name where an error names no argument, or another one.

    Examples
    --------
    >>> from fedrela.experiment.load import parse_config
    >>> config = parse_config("[data]\nroot = 'x'", name="run.toml")
    >>> with located(config, {"label": ("data", "options", "label")}, ("data", "root")):
    ...     raise DataError("x: no such file")
    Traceback (most recent call last):
    ...
    fedrela.errors.DataError: run.toml:2:8: data.root: x: no such file
    """
    try:
        yield
    except (ArgumentError, DataError) as error:
        known = error.argument in keys
        path = keys[error.argument] if known else otherwise
        positions = config.origin.places
        position = positions.of(path).value if positions else None
        what = printable(error.reason if known else str(error), LONGEST_MESSAGE)
        kind = DataError if isinstance(error, DataError) else ArgumentError
        raise kind(placed(config.origin.name, what, position, path)) from error


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
