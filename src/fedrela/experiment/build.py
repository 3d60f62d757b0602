"""The composition root: from a configuration to objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedrela.data.cache import Progress
from fedrela.data.federation import Federation, Recipe, build_federation
from fedrela.data.sources import Source, load
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
    """
    data = config.data
    if source is None:
        source = load(data.source, data.root, progress=progress, **data.options)
    recipe = Recipe(config.seed, data.imbalance.plan(), data.partition.plan(), data.validation, data.standardize)
    return build_federation(source, recipe)


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
        federation.client_counts, minority=federation.minority, protocol=protocol, test_counts=test_counts
    )
