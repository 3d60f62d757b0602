"""A federation: source, then imbalance, then partition, and the record from which it is rebuilt byte for byte.

The numbers of a table are standardised with statistics that clients compute themselves: a count, a mean and a sum of
squared deviations per column can be merged over clients without any sample leaving its client.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.arguments import check_choice
from fedrela.data.checks import first
from fedrela.data.imbalance import Imbalance
from fedrela.data.partition import PartitionPlan, hold_out
from fedrela.data.sources import Source, load
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.records import Shard

FORMAT = "fedrela-federation-1"
BLOCK_BYTES = 1 << 24
ARRAYS = ("x_train", "y_train", "x_test", "y_test", "client_train", "numeric")

MODES = ("pooled", "local", "none")  # of standardisation

NO_IMBALANCE = Imbalance()
DEFAULT_PARTITION = PartitionPlan("dirichlet", clients=10, alpha=0.3)


@dataclass(frozen=True)
class Recipe:
    """Everything a federation depends on besides its source.

    Parameters
    ----------
    seed
        Seed of imbalance, partition and validation samples.
    imbalance
        How many samples of each class are kept; by default all.
    partition
        Which client gets which samples; by default ten clients by Dirichlet proportions with alpha 0.3.
    validation
        Share of its samples that each client holds out.
    standardize
        The numbers of a table: with statistics of all clients (``pooled``), of each (``local``), or not (``none``).

    Examples
    --------
    >>> recipe = Recipe(imbalance=Imbalance("long_tail", factor=10), partition=PartitionPlan("iid", clients=4))
    >>> recipe.seed, recipe.imbalance.factor, recipe.partition.clients
    (1, 10, 4)
    """

    seed: int = 1
    imbalance: Imbalance = NO_IMBALANCE
    partition: PartitionPlan = DEFAULT_PARTITION
    validation: float = 0.0
    standardize: str = "pooled"

    def __post_init__(self) -> None:
        check_choice("standardize", self.standardize, MODES)


@dataclass(frozen=True, eq=False)
class Federation:
    """Client shards as index lists into one array, a test set, and the counts that describe them.

    Attributes
    ----------
    source, recipe
        What it was built from.
    x_train, x_test
        The samples: the source's own arrays, standardised where they are tables.
    shards
        One per client.
    available, class_counts
        Training samples of each class in the source, and those that imbalance left, ``(C,)``.
    client_counts
        Samples each client trains on, by class, ``(K, C)``.
    minority
        Ids of the minority classes where imbalance defines them, or None.
    note
        One sentence if the partition was redrawn or repaired, else empty.
    origin
        Name and options with which `fedrela.data.sources.load` loaded the source; None for a user's own source.

    Examples
    --------
    >>> from fedrela.data.sources import load
    >>> federation = build_federation(load("digits"), Recipe(partition=PartitionPlan("iid", clients=2), validation=0.1))
    >>> [(shard.train.size, shard.validation.size) for shard in federation.shards], federation.client_counts.shape
    ([(647, 72), (647, 72)], (2, 10))
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
    origin: Mapping[str, Any] | None = None

    @property
    def y_train(self) -> NDArray[np.int64]:
        """The original labels of the training samples."""
        return self.source.y_train

    @property
    def y_test(self) -> NDArray[np.int64]:
        """The labels of the test samples."""
        return self.source.y_test

    @property
    def selected_counts(self) -> NDArray[np.int64]:
        """Samples of each client by class, including those held out for validation, ``(K, C)``."""
        return self.client_counts + _count(self.y_train, [s.validation for s in self.shards], self.source.num_classes)

    def manifest(self) -> dict[str, Any]:
        """Return the digests and counts from which `rebuild` builds the same federation, or detects a difference."""
        arrays = {name: getattr(self.source, name) for name in ARRAYS}
        new = {} if self.x_train is self.source.x_train else {"x_train": self.x_train, "x_test": self.x_test}
        return {
            "format": FORMAT,
            "source": self.source.name,
            "origin": self.origin,
            "class_names": list(self.source.class_names),
            "feature_names": list(self.source.feature_names),
            "arrays": {k: array_record(v) for k, v in arrays.items() if v is not None},
            **({"encoded": self.source.encoded} if self.source.feature_names else {}),
            **(
                {"ids_sha256": hashlib.sha256(json.dumps(ids).encode()).hexdigest()}
                if (ids := self.source.ids_train)
                else {}
            ),
            "standardized": {k: array_record(v) for k, v in new.items()},
            "recipe": asdict(self.recipe),
            "clients": len(self.shards),
            "class_counts": self.class_counts.tolist(),
            "client_sizes": [int(shard.train.size) for shard in self.shards],
            "shards_sha256": shards_digest(self.shards),
            "minority": None if self.minority is None else self.minority.tolist(),
            "note": self.note,
        }


def build_federation(source: Source, recipe: Recipe, *, origin: Mapping[str, Any] | None = None) -> Federation:
    """Apply imbalance and partition to a source.

    Parameters
    ----------
    source
        The data set.
    recipe
        Seed, imbalance, partition and validation samples.
    origin
        ``{"source": name, "options": {...}}`` as `fedrela.data.sources.load` takes them, for the manifest.

    Examples
    --------
    >>> from fedrela.data.sources import load
    >>> recipe = Recipe(1, Imbalance("step", ratio=20, minority=(0, 1, 2)), PartitionPlan("iid", clients=4))
    >>> federation = build_federation(load("digits"), recipe)
    >>> federation.class_counts.tolist()
    [6, 6, 6, 139, 139, 139, 139, 139, 139, 139]
    """
    available = np.bincount(source.y_train, minlength=source.num_classes)
    _refuse_unused_number(source, available)
    chosen = recipe.imbalance.apply(source.y_train, source.num_classes, seed=recipe.seed)
    labels = source.y_train[chosen.indices]
    ids = None if source.client_train is None else source.client_train[chosen.indices]
    partition = recipe.partition.apply(labels, ids, seed=recipe.seed)
    parts = [chosen.indices[part] for part in partition]
    pairs = zip(*hold_out(parts, recipe.validation, seed=recipe.seed), strict=True)
    shards = tuple(Shard(k, train, validation) for k, (train, validation) in enumerate(pairs))
    x_train, x_test = source.x_train, source.x_test
    if source.numeric is not None:
        x_train, x_test = standardize_table(x_train, x_test, source.numeric, shards, recipe.standardize)
    return Federation(
        source=source,
        recipe=recipe,
        x_train=x_train,
        x_test=x_test,
        shards=shards,
        available=available,
        class_counts=chosen.counts,
        client_counts=_count(source.y_train, [shard.train for shard in shards], source.num_classes),
        minority=chosen.minority,
        note=partition.note,
        origin=origin,
    )


def _refuse_unused_number(source: Source, available: NDArray[np.int64]) -> None:
    """Raise if classes have no names, and no training sample has one of their numbers: samples could move into it."""
    numbers = tuple(map(str, range(len(available))))
    c = first(available[: source.y_train.max(initial=0)] == 0)
    if c is not None and source.class_names == numbers:
        what = f"label {c} is unused, but larger labels are not"
        raise DataError(f"{source.name}: {what}; number the labels from 0, or give the classes names")


def rebuild(manifest: Mapping[str, Any], *, source: Source | None = None, root: str | Path | None = None) -> Federation:
    """Rebuild the federation of a manifest; raise an `IntegrityError` if the data or the result differ.

    Parameters
    ----------
    manifest
        What `Federation.manifest` returned.
    source
        The source, if the manifest does not name it.
    root
        The folder of a named source's files, if they have moved.

    Examples
    --------
    >>> from fedrela.data.sources import load
    >>> recipe, origin = Recipe(partition=PartitionPlan("iid", clients=2)), {"source": "digits", "options": {}}
    >>> manifest = build_federation(load("digits"), recipe, origin=origin).manifest()
    >>> [shard.train.size for shard in rebuild(manifest).shards]
    [719, 719]
    """
    origin = manifest.get("origin")
    if source is None:
        if not isinstance(origin, Mapping):
            raise ArgumentError("the manifest does not name its source; pass the source itself", argument="source")
        source = load(origin["source"], root, **origin["options"])
    try:
        stored = dict(manifest["recipe"])
        tables = {"imbalance": Imbalance(**stored["imbalance"]), "partition": PartitionPlan(**stored["partition"])}
        federation = build_federation(source, Recipe(**{**stored, **tables}), origin=origin)
        expected, actual = dict(manifest), federation.manifest()
        if "ids_sha256" not in expected:  # the run began with a version that had no ids
            actual.pop("ids_sha256", None)
    except (KeyError, TypeError, ValueError) as error:
        raise IntegrityError(f"federation: invalid manifest: {error}") from None
    if (key := _difference(expected, json.loads(json.dumps(actual)))) is not None:
        advice = "restore the data and the version to resume, or start a new run in another folder"
        raise IntegrityError(f"federation: {key} is not what the run started with; {advice}")
    return federation


def _difference(expected: Any, actual: Mapping[str, Any]) -> str | None:
    """Return the first key whose value differs, with its parents: ``"source.x_train"``."""
    for key, value in actual.items():
        other = expected.get(key) if isinstance(expected, Mapping) else None
        if isinstance(value, dict) and isinstance(other, dict):
            if (inner := _difference(other, value)) is not None:
                return f"{key}.{inner}"
        elif value != other:
            return key
    return None


def array_record(array: NDArray[Any]) -> dict[str, Any]:
    """Return shape, dtype and SHA-256 of an array, which is read in blocks.

    >>> array_record(np.arange(3, dtype=np.int64))["shape"]
    [3]
    """
    digest = hashlib.sha256()
    rows = max(1, BLOCK_BYTES // max(array[:1].nbytes, 1))
    for start in range(0, len(array), rows):
        digest.update(np.ascontiguousarray(array[start : start + rows]).tobytes())
    return {"shape": list(array.shape), "dtype": array.dtype.str, "sha256": digest.hexdigest()}


def shards_digest(shards: Sequence[Shard]) -> str:
    """SHA-256 over the sample indices of all clients, each list preceded by its length."""
    digest = hashlib.sha256()
    for shard in shards:
        for part in (shard.train, shard.validation):
            digest.update(np.array([part.size], "<i8").tobytes())
            digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()


def _count(y: NDArray[np.int64], parts: Sequence[NDArray[np.int64]], num_classes: int) -> NDArray[np.int64]:
    return np.array([np.bincount(y[part], minlength=num_classes) for part in parts])


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean and sum of squared deviations of some samples, per column."""

    count: int
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, x: NDArray[Any]) -> Moments:
        """Compute them from samples ``(n, columns)``.

        >>> Moments.of(np.array([[1.0], [3.0]])).deviation
        array([1.])
        """
        values = x.astype(np.float64)
        mean = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
        return cls(len(values), mean, np.square(values - mean).sum(axis=0))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of samples together."""
        count = self.count + other.count
        if count == 0:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / count)
        squares = self.squares + other.squares + np.square(step) * (self.count * other.count / count)
        return Moments(count, mean, squares)

    @property
    def deviation(self) -> NDArray[np.float64]:
        """Standard deviation per column, and 1 for a column that does not vary (beyond rounding)."""
        sigma = np.sqrt(self.squares / max(self.count, 1))
        return np.where(sigma > 1e-12 * np.abs(self.mean), sigma, 1.0)

    def standardize(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Return ``(x - mean) / deviation`` as float32."""
        return ((x - self.mean) / self.deviation).astype(np.float32)


def standardize_table(
    x_train: NDArray[Any], x_test: NDArray[Any], numeric: NDArray[np.bool_], shards: Sequence[Shard], mode: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Standardise the numeric columns of a table, with statistics of the clients' training samples alone.

    `mode` is "pooled" (merged statistics of all clients), "local" (every client its own, the test set the merged ones)
    or "none".
    """
    if mode == "none" or not numeric.any():
        return x_train, x_test
    new_train, new_test = x_train.copy(), x_test.copy()
    own = [Moments.of(x_train[np.ix_(shard.train, numeric)]) for shard in shards]
    pooled = reduce(Moments.merge, own)
    for shard, moments in zip(shards, own, strict=True):
        rows = np.ix_(np.concatenate([shard.train, shard.validation]), numeric)
        new_train[rows] = (moments if mode == "local" else pooled).standardize(x_train[rows])
    new_test[:, numeric] = pooled.standardize(x_test[:, numeric])
    return new_train, new_test
