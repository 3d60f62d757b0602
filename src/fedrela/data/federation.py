"""A federation: source, then imbalance, then partition, and what is needed to build it again byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.data.fingerprint import array_record, shards_digest
from fedrela.data.imbalance import Imbalance
from fedrela.data.partition import hold_out
from fedrela.data.partition.plan import PartitionPlan
from fedrela.data.sources.base import Source
from fedrela.data.standardize import standardize_table
from fedrela.errors import IntegrityError
from fedrela.records import Shard

FORMAT = "fedrela-federation-1"
ARRAYS = ("x_train", "y_train", "x_test", "y_test", "client_train")

AS_IT_IS = Imbalance()
TEN_CLIENTS = PartitionPlan("dirichlet", clients=10, alpha=0.3)


@dataclass(frozen=True)
class Recipe:
    """Everything a federation depends on beside its source."""

    seed: int = 1
    imbalance: Imbalance = AS_IT_IS
    partition: PartitionPlan = TEN_CLIENTS
    validation: float = 0.0
    standardize: str = "pooled"


@dataclass(frozen=True, eq=False)
class Federation:
    """Client shards as index lists into one array, a test set, and the figures about them.

    Attributes
    ----------
    source, recipe
        What it was built from.
    x_train, x_test
        The samples: the source's own arrays, standardised where they are tables.
    shards
        One a client.
    available, class_counts
        Training samples of each class in the source, and those that imbalance left, ``(C,)``.
    client_counts
        Samples each client trains on, by class, ``(K, C)``.
    minority
        Ids of the minority classes where imbalance defines them, or None.
    note
        One sentence where the partition was drawn anew or repaired, else empty.
    """

    source: Source
    recipe: Recipe
    x_train: NDArray[Any]
    x_test: NDArray[Any]
    shards: tuple[Shard, ...]
    available: NDArray[np.int64]
    class_counts: NDArray[np.int64]
    client_counts: NDArray[np.int64]
    minority: NDArray[np.int64] | None
    note: str

    @property
    def y_train(self) -> NDArray[np.int64]:
        """The original labels of the training samples."""
        return self.source.y_train

    @property
    def y_test(self) -> NDArray[np.int64]:
        """The labels of the test samples."""
        return self.source.y_test

    def manifest(self, *, progress: Any = None) -> dict[str, Any]:
        """Return digests and counts from which `rebuild` makes the same federation, or notices that it cannot."""
        arrays = {name: getattr(self.source, name) for name in ARRAYS}
        return {
            "format": FORMAT,
            "source": self.source.name,
            "class_names": list(self.source.class_names),
            "arrays": {k: array_record(v, k, progress) for k, v in arrays.items() if v is not None},
            "recipe": asdict(self.recipe),
            "clients": len(self.shards),
            "class_counts": self.class_counts.tolist(),
            "client_sizes": [int(shard.train.size) for shard in self.shards],
            "shards_sha256": shards_digest(self.shards),
            "minority": None if self.minority is None else self.minority.tolist(),
            "note": self.note,
        }


def build_federation(source: Source, recipe: Recipe) -> Federation:
    """Apply imbalance and partition to a source.

    Examples
    --------
    >>> from fedrela.data.sources import load
    >>> recipe = Recipe(1, Imbalance("step", ratio=20, minority=(0, 1, 2)), PartitionPlan("iid", clients=4))
    >>> federation = build_federation(load("digits"), recipe)
    >>> federation.class_counts.tolist()
    [6, 6, 6, 139, 139, 139, 139, 139, 139, 139]
    """
    chosen = recipe.imbalance.apply(source.y_train, source.num_classes, seed=recipe.seed)
    labels = source.y_train[chosen.indices]
    ids = None if source.client_train is None else source.client_train[chosen.indices]
    partition = recipe.partition.apply(labels, ids, seed=recipe.seed)
    parts = [chosen.indices[part] for part in partition.parts]
    pairs = zip(*hold_out(parts, recipe.validation, seed=recipe.seed), strict=True)
    shards = tuple(Shard(k, train, held) for k, (train, held) in enumerate(pairs))
    x_train, x_test = source.x_train, source.x_test
    if source.numeric is not None:
        x_train, x_test = standardize_table(x_train, x_test, source.numeric, shards, recipe.standardize)
    return Federation(
        source=source,
        recipe=recipe,
        x_train=x_train,
        x_test=x_test,
        shards=shards,
        available=np.bincount(source.y_train, minlength=source.num_classes),
        class_counts=chosen.counts,
        client_counts=_client_counts(source.y_train, shards, source.num_classes),
        minority=chosen.minority,
        note=partition.note,
    )


def rebuild(source: Source, manifest: Mapping[str, Any]) -> Federation:
    """Build the federation of a manifest again; a source or a result that differs is an `IntegrityError`."""
    try:
        stored = dict(manifest["recipe"])
        stored["imbalance"] = Imbalance(**_tuples(stored["imbalance"]))
        stored["partition"] = PartitionPlan(**stored["partition"])
        recipe = Recipe(**stored)
        federation = build_federation(source, recipe)
        wanted, found = dict(manifest), federation.manifest()
    except (KeyError, TypeError, ValueError) as error:
        raise IntegrityError(f"federation: the manifest cannot be followed: {error}") from None
    for key in found:
        if _plain(wanted.get(key)) != _plain(found[key]):
            raise IntegrityError(f"federation: {key} differs from the manifest; is it other data or another version?")
    return federation


def _client_counts(y: NDArray[np.int64], shards: tuple[Shard, ...], num_classes: int) -> NDArray[np.int64]:
    counts = np.zeros((len(shards), num_classes), np.int64)
    for shard in shards:
        counts[shard.client] = np.bincount(y[shard.train], minlength=num_classes)
    return counts


def _tuples(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with lists as tuples, which JSON does not have."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}


def _plain(value: Any) -> Any:
    """Return a value as JSON would give it back."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
