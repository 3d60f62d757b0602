"""A tiny federation of awkward cases: absent classes, a client of one class, a last batch of one sample."""

from __future__ import annotations

import numpy as np

from fedrela.arguments import check_choice
from fedrela.engine.problem import Problem
from fedrela.metrics import Groups
from fedrela.models.inputs import Scaling
from fedrela.records import Shard
from fedrela.streams import stream

CLASSES, SIDE = 4, 8
# Samples per client and class; 17 and 25 leave one sample for the last batch of eight.
CLIENTS = ((10, 5, 2, 0), (0, 12, 6, 3), (14, 0, 0, 0), (6, 6, 10, 3), (3, 2, 9, 2))
TEST = 6  # samples per class


def small_federation(inputs: str = "images", *, auxiliary: int = 0) -> Problem:
    """Return the federation: ``"images"`` of 3 x 8 x 8, or ``"tables"`` of 12 columns.

    `auxiliary` is the number of samples per class for the server, which belong to no client.

    Examples
    --------
    >>> problem = small_federation()
    >>> [len(shard.train) for shard in problem.shards], problem.input_shape
    ([17, 21, 14, 25, 16], (3, 8, 8))
    """
    images = check_choice("inputs", inputs, ("images", "tables")) == "images"
    rng = stream(1, "small federation")
    labels = [np.repeat(np.arange(CLASSES), counts) for counts in CLIENTS]
    y = np.concatenate([*labels, np.repeat(np.arange(CLASSES), auxiliary)])
    starts = np.cumsum([0, *(len(part) for part in labels)])
    shards = [Shard(k, np.arange(starts[k], starts[k + 1]), np.empty(0, np.int64)) for k in range(len(labels))]
    y_test = np.repeat(np.arange(CLASSES), TEST)
    shape = (3, SIDE, SIDE) if images else (12,)
    centres = rng.normal(0, 1, (CLASSES, *shape))
    x, x_test = (centres[each] + rng.normal(0, 1, (len(each), *shape)) for each in (y, y_test))
    kind = np.uint8 if images else np.float32
    x, x_test = ((np.clip(128 + 40 * values, 0, 255) if images else values).astype(kind) for values in (x, x_test))
    return Problem(
        x_train=x,
        y_train=y,
        x_test=x_test,
        y_test=y_test,
        shards=shards,
        num_classes=CLASSES,
        groups=Groups(("majority", "minority"), np.array([0, 0, 0, 1]), "counts"),
        scaling=Scaling.fit(x),
        class_names=tuple("abcd"),
        auxiliary=np.arange(starts[-1], len(y)) if auxiliary else None,
    )
