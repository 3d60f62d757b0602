"""The ledger: the original labels, every move with its reasons, and the way back.

A ledger proves what it holds. It carries a digest of the original labels, its files carry a digest of everything, and
a ledger that does not fit itself or the labels shown to it is an integrity error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.core import ledger_files
from fedrela.errors import ArgumentError, IntegrityError
from fedrela.files import digest

COLUMNS = dict(zip(ledger_files.MOVES, (np.int64, np.int64, np.int64, float, float, float), strict=True))


def labels_digest(labels: NDArray[Any]) -> str:
    """SHA-256 of labels as 64-bit integers, so that it does not depend on their dtype.

    >>> labels_digest(np.array([0, 1], np.int8)) == labels_digest(np.array([0, 1], np.uint64))
    True
    """
    return digest(np.ascontiguousarray(labels, dtype="<i8").tobytes())


@dataclass(frozen=True, eq=False)
class Ledger:
    """What one re-labelling did.

    Attributes
    ----------
    original
        The labels as they were given, read-only.
    num_classes
        C.
    index, old, new
        One entry a moved sample, ascending by index.
    posterior, z, rho
        For the same samples: posterior, score and re-labelling probability of the new class.
    options
        The options in force: tau, spread, threshold, target, normalize, max_fraction; and the owner's rules:
        forbidden moves as pairs of classes, and how many samples were held back; and the seed, where it is a number.
    notes
        What was unusual but no reason to refuse.
    refusal
        Why nothing was re-labelled, or None.
    labels_sha256
        Digest of the original labels.
    class_names
        What the classes are called, where somebody told.
    """

    original: NDArray[Any]
    num_classes: int
    index: NDArray[np.int64]
    old: NDArray[np.int64]
    new: NDArray[np.int64]
    posterior: NDArray[np.float64]
    z: NDArray[np.float64]
    rho: NDArray[np.float64]
    options: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    refusal: str | None = None
    labels_sha256: str = ""
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("original", *COLUMNS):
            frozen = getattr(self, name).copy()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)
        if not self.labels_sha256:
            object.__setattr__(self, "labels_sha256", labels_digest(self.original))

    def __len__(self) -> int:
        return int(self.index.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and ledger_files.to_record(self) == ledger_files.to_record(other)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels after re-labelling, a new array of the original dtype."""
        labels = self.original.copy()
        labels[self.index] = self.new
        return labels

    @property
    def flow(self) -> NDArray[np.int64]:
        """Moves from class to class as ``(C, C)``."""
        flow = np.zeros((self.num_classes, self.num_classes), np.int64)
        np.add.at(flow, (self.old, self.new), 1)
        return flow

    def check(self) -> None:
        """Raise an `IntegrityError` where the ledger contradicts itself."""
        if labels_digest(self.original) != self.labels_sha256:
            raise IntegrityError("ledger: the original labels do not match their digest")
        if len({getattr(self, name).shape for name in COLUMNS}) != 1 or self.index.ndim != 1:
            raise IntegrityError("ledger: its columns differ in length")
        inside = bool(np.all((self.index >= 0) & (self.index < self.original.size)))
        if not inside or bool(np.any(np.diff(self.index) <= 0)):
            raise IntegrityError("ledger: its sample indices are not ascending numbers of samples")
        if not np.array_equal(self.original[self.index], self.old):
            raise IntegrityError("ledger: a move does not start from the sample's original label")
        if bool(np.any((self.new < 0) | (self.new >= self.num_classes) | (self.new == self.old))):
            raise IntegrityError("ledger: a move does not end in another class")

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the ledger as ``.json`` (to read) or ``.npz`` (compact), by the ending of `path`."""
        ledger_files.save(self, Path(path), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Ledger:
        """Read a ledger that `save` wrote; what does not match its digest is an `IntegrityError`."""
        record = ledger_files.load(Path(path))
        try:
            ledger = cls(**_fields(record))
            ledger.check()
        except (IntegrityError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise IntegrityError(f"{path}: not a sound ledger: {error}") from None
        return ledger


def _fields(record: dict[str, Any]) -> dict[str, Any]:
    moves = record["moves"]
    fields = {name: np.asarray(moves[name], dtype) for name, dtype in COLUMNS.items()}
    fields["original"] = np.asarray(record["labels"], np.dtype(record["dtype"]))
    plain = ("num_classes", "options", "refusal", "labels_sha256")
    texts = {name: tuple(record[name]) for name in ("notes", "class_names")}
    return fields | {name: record[name] for name in plain} | texts


def undo(ledger: Ledger | str | Path, labels: ArrayLike | None = None) -> NDArray[Any]:
    """Return the original labels.

    Parameters
    ----------
    ledger
        A ledger, or the file of one.
    labels
        The labels now in force, where they are at hand: they must be the ones this ledger led to (or the original
        ones), else the ledger belongs to other data and an `IntegrityError` is raised.

    Examples
    --------
    >>> import fedrela
    >>> done = fedrela.relabel([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]], [0, 0, 0, 1], tau=0.5, seed=1)
    >>> fedrela.undo(done.ledger).tolist()
    [0, 0, 0, 1]
    """
    if not isinstance(ledger, Ledger | str | Path):
        raise ArgumentError(f"undo: expected a ledger or the path of one, got {type(ledger).__name__}")
    ledger = ledger if isinstance(ledger, Ledger) else Ledger.load(ledger)
    ledger.check()
    if labels is not None:
        now = np.asarray(labels)
        if not np.array_equal(now, ledger.labels) and not np.array_equal(now, ledger.original):
            raise IntegrityError("ledger: the labels given are not those it led to; is it another client's?")
    return ledger.original.copy()
