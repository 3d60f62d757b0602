"""From a configuration to its data; errors name the key at fault and its position."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedrela.data.cache import Progress
from fedrela.data.federation import Federation, Recipe, build_federation
from fedrela.data.sources import Source, find_source, load
from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.toml.reader import error_line
from fedrela.experiment.toml.writer import KeyPath
from fedrela.metrics.groups import Groups, evaluation_groups
from fedrela.text import printable

if TYPE_CHECKING:
    from fedrela.experiment.schema import Config

LONGEST_MESSAGE = 2000  # characters; messages about data hold whole paths


@contextlib.contextmanager
def errors_at(config: Config, keys: Mapping[str, KeyPath], otherwise: KeyPath) -> Iterator[None]:
    r"""Re-raise an `ArgumentError` or a `DataError` of the block with its position and key in front.

    `keys` maps arguments to keys of the configuration; `otherwise` is the key for errors about no argument.

    >>> from fedrela.experiment.load import parse_config
    >>> config = parse_config("[data]\nroot = 'x'", name="run.toml")
    >>> with errors_at(config, {"label": ("data", "options", "label")}, ("data", "root")):
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
        raise kind(error_line(config.origin.name, what, position, path)) from error


def build_data(config: Config, *, source: Source | None = None, progress: Progress | None = None) -> Federation:
    """Build the federation that the ``[data]`` table describes, possibly from a user-supplied source.

    `progress` is called with (done, total, what) while files are decoded. An error is one line, ``file:line:column:
    key: what is wrong``, if the data cannot be read or do not fit the configuration.
    """
    data = config.data
    files: KeyPath = ("data", "source" if data.root is None else "root")
    origin = None
    if source is None:
        if not config.simulates:
            what = "names no data to simulate with; fedrela export-flower DIR CONFIG --private is for private nodes"
            raise ArgumentError(f"{config.origin.name}: data.source: {what}")
        origin = {"source": data.source, "options": dict(data.options)}
        options: dict[str, KeyPath] = {name: ("data", "options", name) for name in find_source(data.source).options}
        with errors_at(config, options | {"root": ("data", "root")}, files):
            source = load(data.source, data.root, progress=progress, **data.options)
    recipe = Recipe(config.seed, data.imbalance, data.partition, data.validation, data.standardize)
    with errors_at(config, _recipe_keys(recipe), files):
        return build_federation(source, recipe, origin=origin)


def _recipe_keys(recipe: Recipe) -> dict[str, KeyPath]:
    """Return the keys behind the arguments of imbalance and partition, whose names all differ but for ``kind``."""
    keys: dict[str, KeyPath] = {"seed": ("seed",)}
    for table in ("imbalance", "partition"):
        keys[table] = ("data", table)
        keys |= {key.name: ("data", table, key.name) for key in fields(getattr(recipe, table)) if key.name != "kind"}
    return keys


def first_of_each(labels: NDArray[Any], number: int) -> NDArray[np.int64]:
    """Return the ids of the first samples of every class."""
    return np.concatenate([np.flatnonzero(labels == label)[:number] for label in np.unique(labels)])


def numbers_of(keep: Iterable[int | str], ids: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the training samples that `keep` names by id; others are held out, and never move.

    >>> numbers_of(["p3", "p1", "test"], ["p1", "p2", "p3"])
    (0, 2)
    """
    named = {*map(str, keep)}
    return tuple(row for row, name in enumerate(ids) if name in named)


def groups_of(federation: Federation, protocol: str = "counts") -> Groups:
    """Return the classes that are reported together: majority and minority, or head, medium and tail.

    If imbalance defines minority classes, they form the groups; otherwise counts do, by `protocol`; see
    `evaluation_groups`.
    """
    test_counts = np.bincount(federation.y_test, minlength=federation.source.num_classes)
    return evaluation_groups(
        federation.selected_counts, minority=federation.minority, protocol=protocol, test_counts=test_counts
    )
