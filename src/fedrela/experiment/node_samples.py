"""A node's own samples, converted to the federation's classes and columns and split into training and test."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrela.data.federation import array_record
from fedrela.data.sources import Source, find_source, load
from fedrela.data.sources.labels import stratified
from fedrela.errors import DataError
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.federation import FederationConfig, NodeConfig
from fedrela.text import nearest_hint

DTYPES = {"images": np.uint8, "numbers": np.float32, "tokens": np.int64}
Samples = NDArray[np.generic]


class MismatchError(DataError):
    """Data or a policy that do not fit the federation. The server gets the message, so it contains no sample value."""


@dataclass(frozen=True, eq=False)
class NodeSamples:
    """The samples of one party, with the federation's labels: samples to train on, and samples to test on."""

    x_train: Samples
    y_train: NDArray[np.int64]
    x_test: Samples
    y_test: NDArray[np.int64]
    ids_train: tuple[str, ...] = ()  # a name for each, if the source has them
    ids_test: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Digest of all samples and labels."""
        parts = (self.x_train, self.y_train, self.x_test, self.y_test)
        return hashlib.sha256("\n".join(str(array_record(part)) for part in parts).encode()).hexdigest()

    def counts(self, classes: int) -> NDArray[np.int64]:
        """Return the number of training samples of each class."""
        return np.bincount(self.y_train, minlength=classes)


def sample_form(federation: FederationConfig) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Return shape and dtype of one sample."""
    if federation.columns:
        return (len(federation.columns),), np.dtype(np.float32)
    return federation.shape, np.dtype(DTYPES[federation.form])


def load_samples(node: NodeConfig, config: Config) -> NodeSamples:
    """Read a node's samples in the federation's form; raise a `MismatchError` if they do not fit.

    The node's test samples are the test part of its source, or ``test_share`` of every class of all its samples.
    """
    federation = config.federation
    assert federation is not None
    share, options = node.test_share, dict(node.options)
    native = share is not None and _splits(node) and (0 < share < 1 or _is_ours(node))
    source = load(node.source, node.root, **options | ({"test_share": share} if native else {}))
    x_train, x_test = (_aligned(source, part, federation) for part in ("train", "test"))
    y_train, y_test = (_labels(source, part, node, federation) for part in ("train", "test"))
    ids_train, ids_test = source.ids_train, source.ids_test
    if share is not None and (share in (0, 1) or not native):  # 0 and 1 also join a test part of the source's own
        x, y = np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test])
        train, test = stratified(y, share, config.seed)
        x_train, y_train, x_test, y_test = x[train], y[train], x[test], y[test]
        if ids := (*ids_train, *ids_test):
            ids_train, ids_test = (tuple(ids[row] for row in part) for part in (train, test))
    return NodeSamples(x_train, y_train, x_test, y_test, ids_train, ids_test)


def is_split(node: NodeConfig) -> bool:
    """Whether the node's source is divided into training and test samples here, which gives rows other numbers."""
    if _splits(node) and "test_file" not in node.options:
        return node.test_share != 0 or not _is_ours(node)
    return node.test_share not in (None, 0)


def _splits(node: NodeConfig) -> bool:
    return "test_share" in find_source(node.source).options


def _is_ours(node: NodeConfig) -> bool:
    """Whether the source is one of this package, which does not split with a share of 0 or 1."""
    return ":" not in node.source or node.source.startswith("fedrela.")


def _labels(source: Source, part: str, node: NodeConfig, federation: FederationConfig) -> NDArray[np.int64]:
    """Return the labels of a part as numbers of the federation's classes."""
    y: NDArray[np.int64] = getattr(source, f"y_{part}")
    number = {name: c for c, name in enumerate(federation.classes)}
    table = np.full(source.num_classes, -1)
    for c in np.unique(y).tolist():
        word = source.class_names[c]
        name = node.classes.get(word, word)
        if name not in number:
            hint = nearest_hint(name, federation.classes)
            raise MismatchError(f"{source.name}: class {word!r} is not in the federation{hint}; map it in [classes]")
        table[c] = number[name]
    return table[y]


def _aligned(source: Source, part: str, federation: FederationConfig) -> Samples:
    """Return the samples of a part with the agreed shape and columns."""
    x: Samples = getattr(source, f"x_{part}")
    if federation.columns:
        x = _columns(source, x, federation)
    shape, dtype = sample_form(federation)
    if x.shape[1:] != shape or x.dtype != dtype:
        raise MismatchError(f"{source.name}: expected samples {dtype} {shape}, got {x.dtype} {x.shape[1:]}")
    return x


def _columns(source: Source, x: Samples, federation: FederationConfig) -> Samples:
    """Return a table with the agreed columns; a category value that this node does not know is all zeros."""
    if source.numeric is None:
        raise MismatchError(f"{source.name}: expected a table with columns, got samples of shape {x.shape[1:]}")
    own = {name: j for j, name in enumerate(source.feature_names)}
    wanted, stems = federation.columns, {_stem(name) for name in own}
    if unknown := [name for name in own if name not in wanted]:
        stem = _stem(unknown[0])
        if stem != unknown[0] and stem in {_stem(name) for name in wanted}:  # the value stays here
            what = f"column {stem!r} has a value that federation.columns does not list"
            raise MismatchError(f"{source.name}: {what}; compare them, or replace the value")
        hint = nearest_hint(stem, wanted) or "; name it in the option ignore to leave it out"
        raise MismatchError(f"{source.name}: column {stem!r} is not in the federation{hint}")
    columns = np.zeros((len(x), len(wanted)), np.float32)
    for j, name in enumerate(wanted):
        if name in own:
            columns[:, j] = x[:, own[name]]
        elif name not in federation.encoded or _stem(name) not in stems:
            raise MismatchError(f"{source.name}: column {name!r} is missing; the federation has it")
    return columns


def _stem(name: str) -> str:
    """Return the column behind an encoded one, ``sex`` of ``sex=f`` and ``bmi`` of ``bmi missing``."""
    return name.partition("=")[0].removesuffix(" missing")


def numeric_columns(federation: FederationConfig) -> NDArray[np.bool_]:
    """Return which columns of a table are numbers to standardise."""
    return np.array([name not in federation.encoded for name in federation.columns], bool)


def class_table(names: Sequence[str], samples: NodeSamples) -> list[tuple[str, int, int]]:
    """Return each class with its number of training and of test samples."""
    test = np.bincount(samples.y_test, minlength=len(names))
    return list(zip(names, samples.counts(len(names)).tolist(), test.tolist(), strict=True))
