"""The ledger: the original labels, every move with its scores, and `undo`.

A ledger holds a digest of the original labels, and its file a digest of everything. A ledger that contradicts itself,
its digest or the labels passed to `undo` raises `IntegrityError`. A file is one record, as readable JSON or as compact
npz, never a pickle; its digest covers the record, not the bytes, so both forms have the same digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import array_bytes, digest, read_arrays, read_plain, write_bytes
from fedrela.text import printable, shown

FORMAT = "fedrela-ledger-1"
LARGEST = 1 << 30  # bytes of a file, and of its unpacked content
MOST_CLASSES = 2**16  # in every reader, since even a tiny file may declare any number
LABEL_DTYPE = re.compile(r"[<>|=]?[iu][1248]")
MOVES = {"index": np.int64, "old": np.int64, "new": np.int64, "posterior": float, "z": float, "rho": float}


def labels_digest(labels: NDArray[Any]) -> str:
    """SHA-256 of labels as 64-bit integers, so that it does not depend on their dtype.

    >>> labels_digest(np.array([0, 1], np.int8)) == labels_digest(np.array([0, 1], np.uint64))
    True
    """
    return digest(np.ascontiguousarray(labels, dtype="<i8").tobytes())


def arrays_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of named arrays: names, dtypes, shapes and values, in the order of the names.

    >>> a, b = np.zeros(3), np.ones((2, 2))
    >>> arrays_digest({"a": a, "b": b}) == arrays_digest({"b": b, "a": a}) != arrays_digest({"b": a, "a": b})
    True
    """
    sha = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        values = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        sha.update(f"{json.dumps(name)} {list(array.shape)} {values.dtype.str}\n".encode())
        sha.update(values.tobytes())
    return sha.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where the moves of a ledger come from, to check or replay them; None where unknown.

    Attributes
    ----------
    version
        The version of this package.
    seed
        The seed that was given; the draws may come from a stream of it, by round and client.
    preset
        The name of the preset.
    limits
        The limits that applied, as plain values by name.
    policy_sha256
        Digest of the owner's policy, its file or its values.
    model_sha256
        Digest of the model's arrays, see `arrays_digest`.
    inputs_sha256
        Digest of the inputs that the model scored, in row order.
    agreement
        Share of the original labels that the model predicts.

    Examples
    --------
    >>> known = Provenance(seed=3, limits={"tau": 0.05})
    >>> known.seed, known.limits, known.model_sha256
    (3, {'tau': 0.05}, None)
    """

    version: str | None = None
    seed: int | None = None
    preset: str | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    policy_sha256: str | None = None
    model_sha256: str | None = None
    inputs_sha256: str | None = None
    agreement: float | None = None


@dataclass(frozen=True, eq=False)
class Ledger:
    """The record of one re-labelling.

    Attributes
    ----------
    original
        The labels as they were given, read-only.
    index, old, new
        Index, old and new class of every moved sample, ascending by index.
    posterior, z, rho
        For the same samples: posterior, score and re-labelling probability of the new class.
    options
        The options used: tau, spread, threshold, target, normalize, max_fraction; the owner's rules: forbidden moves as
        pairs of classes, and the samples that were not eligible; and the seed, if it is a number.
    notes
        Unusual findings that are no reason to refuse.
    refusal
        Why re-labelling was refused, or None.
    labels_sha256
        Digest of the original labels.
    class_names
        Names of the classes, or empty.
    ids
        The owner's name of every row, or empty.
    provenance
        Where the moves come from, or None: a run folder's ledgers leave that to the manifest.

    Examples
    --------
    >>> import tempfile
    >>> import fedrela
    >>> done = fedrela.relabel([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]], [0, 0, 0, 1], tau=0.5, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done.ledger.save(f"{folder}/ledger.json")
    ...     ledger = Ledger.load(f"{folder}/ledger.json")
    >>> ledger.index.tolist(), ledger.labels.tolist(), ledger.flow.tolist()
    ([1], [0, 1, 0, 1], [[0, 1], [0, 0]])
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
    ids: tuple[str, ...] = ()
    provenance: Provenance | None = None

    def __post_init__(self) -> None:
        for name in ("original", *MOVES):
            frozen = getattr(self, name).copy()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)
        if not self.labels_sha256:
            object.__setattr__(self, "labels_sha256", labels_digest(self.original))

    def __repr__(self) -> str:
        refused = "" if self.refusal is None else f"refused: {printable(self.refusal, 200)}; "
        return f"<Ledger: {refused}{len(self):,} of {self.original.size:,} labels moved>"

    def __len__(self) -> int:
        return int(self.index.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and to_record(self) == to_record(other)

    @property
    def sha256(self) -> str:
        """Digest of the whole ledger, the same for both forms of its file."""
        return record_digest(to_record(self))

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

    def for_rows(self, ids: Sequence[str]) -> Ledger:
        """Return the same ledger for rows in the order of `ids`; raise a `DataError` if they are other rows."""
        row_number = {name: row for row, name in enumerate(self.ids)}
        if not self.ids or len(ids) != len(self.ids) or row_number.keys() != set(ids):
            unknown = next((name for name in ids if name not in row_number), None)
            other = f"expected {len(row_number)} rows, got {len(set(ids))} distinct ids"
            reason = other if unknown is None else f"no row {shown(unknown)}"
            raise DataError(f"ledger: made for other rows: {reason if self.ids else 'it has no row ids'}")
        order = np.array([row_number[name] for name in ids], np.int64)
        row_of = np.empty_like(order)
        row_of[order] = np.arange(order.size)
        ascending = np.argsort(row_of[self.index])
        moves = {name: getattr(self, name)[ascending] for name in MOVES if name != "index"}
        original, index = self.original[order], row_of[self.index][ascending]
        options = dict(self.options)
        if "ineligible_rows" in options:
            options["ineligible_rows"] = sorted(row_of[options["ineligible_rows"]].tolist())
        return replace(self, original=original, index=index, ids=tuple(ids), options=options, labels_sha256="", **moves)

    def check(self) -> None:
        """Raise an `IntegrityError` if the ledger contradicts itself."""
        if labels_digest(self.original) != self.labels_sha256:
            raise IntegrityError("ledger: the original labels do not match their digest")
        if len({getattr(self, name).shape for name in MOVES}) != 1 or self.index.ndim != 1:
            raise IntegrityError("ledger: its columns differ in length")
        inside = bool(np.all((self.index >= 0) & (self.index < self.original.size)))
        if not inside or bool(np.any(np.diff(self.index) <= 0)):
            raise IntegrityError("ledger: its sample indices are not ascending or out of range")
        if not np.array_equal(self.original[self.index], self.old):
            raise IntegrityError("ledger: a move does not start from the sample's original label")
        if bool(np.any((self.new < 0) | (self.new >= self.num_classes) | (self.new == self.old))):
            raise IntegrityError("ledger: a move does not end in another class")
        if self.refusal is None and np.any((self.original < 0) | (self.original >= self.num_classes)):
            raise IntegrityError(f"ledger: a label is not one of its {self.num_classes} classes")
        if self.ids and (len(self.ids) != self.original.size or len(set(self.ids)) != len(self.ids)):
            raise IntegrityError("ledger: its row ids are not one per label, all distinct")

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the ledger as ``.json`` (readable) or ``.npz`` (compact), by suffix; only its owner may read it."""
        path = Path(path)
        if path.suffix not in (".json", ".npz"):
            raise ArgumentError(f"{path}: a ledger is saved as .json or .npz")
        if self.num_classes > MOST_CLASSES:
            raise ArgumentError(f"{path}: expected at most {MOST_CLASSES} classes, got {self.num_classes}")
        write_bytes(path, self.as_bytes(path.suffix), overwrite=overwrite, private=True)

    def as_bytes(self, suffix: str = ".json") -> bytes:
        """Return what `save` writes to a file with this suffix."""
        record = to_record(self)
        record["sha256"] = record_digest(record)
        return (json.dumps(record) + "\n").encode() if suffix == ".json" else _npz_bytes(record)

    @classmethod
    def load(cls, path: str | Path) -> Ledger:
        """Read a ledger that `save` wrote; one that does not match its digest raises `IntegrityError`."""
        record = _read_record(Path(path))
        try:
            _check_types(record)
            ledger = cls(**_fields(record))
            ledger.check()
        except (IntegrityError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise IntegrityError(f"{path}: not a sound ledger: {error}") from None
        return ledger


def undo(ledger: Ledger | str | Path, labels: ArrayLike | None = None) -> NDArray[Any]:
    """Return the original labels.

    Parameters
    ----------
    ledger
        A ledger, or the file of one.
    labels
        The current labels, to check that the ledger belongs to them: they must be the labels after re-labelling or the
        original ones, else an `IntegrityError` is raised. If they are class names, the result is too.

    Examples
    --------
    >>> import fedrela
    >>> done = fedrela.relabel([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.1, 0.9]], [0, 0, 0, 1], tau=0.5, seed=1)
    >>> fedrela.undo(done.ledger).tolist()
    [0, 0, 0, 1]
    """
    if not isinstance(ledger, Ledger | str | Path):
        raise ArgumentError(f"expected a ledger or the path of one, got {type(ledger).__name__}", argument="ledger")
    ledger = ledger if isinstance(ledger, Ledger) else Ledger.load(ledger)
    ledger.check()
    original, new = ledger.original.copy(), ledger.labels
    if labels is not None:
        now = np.asarray(labels)
        if now.dtype.kind in "OTU" and ledger.class_names:
            original, new = (np.array(ledger.class_names)[codes] for codes in (original, new))
        if not np.array_equal(now, new) and not np.array_equal(now, original):
            raise IntegrityError("ledger: it did not produce these labels; is it another client's ledger?")
    return original


def to_record(ledger: Ledger) -> dict[str, Any]:
    """Return a ledger as plain values, with ids and provenance if it has them."""
    record = {
        "format": FORMAT,
        "num_classes": ledger.num_classes,
        "options": ledger.options,
        "notes": list(ledger.notes),
        "class_names": list(ledger.class_names),
        "refusal": ledger.refusal,
        "labels_sha256": ledger.labels_sha256,
        "dtype": ledger.original.dtype.str,
        "labels": ledger.original.tolist(),
        "moves": {name: getattr(ledger, name).tolist() for name in MOVES},
    }
    if ledger.ids:
        record["ids"] = list(ledger.ids)
    if ledger.provenance is not None:
        record["provenance"] = asdict(ledger.provenance)
    return record


def _read_record(path: Path) -> dict[str, Any]:
    """Read the record in a ``.json`` or ``.npz`` file and compare it with its digest."""
    if path.suffix not in (".json", ".npz"):
        raise ArgumentError(f"{path}: a ledger is a .json or .npz file")
    try:
        data = read_plain(path, LARGEST)
    except OSError as error:
        why = "a link; name the file itself" if path.is_symlink() else error.strerror
        raise DataError(f"{path}: cannot be read: {why}") from None
    try:
        record = json.loads(data) if path.suffix == ".json" else _npz_record(data)
        valid = (record.pop("sha256"), record["format"]) == (record_digest(record), FORMAT)
    except Exception as error:  # json, zipfile and NumPy raise many kinds of exception for damaged bytes
        raise IntegrityError(f"{path}: not a ledger: {type(error).__name__}") from None
    if not valid:
        raise IntegrityError(f"{path}: the ledger does not match its digest; it was changed or damaged")
    return record


def record_digest(record: dict[str, Any]) -> str:
    """SHA-256 of a record as canonical JSON."""
    return digest(json.dumps(record, sort_keys=True, separators=(",", ":")).encode())


def _npz_bytes(record: dict[str, Any]) -> bytes:
    arrays = {name: np.asarray(values) for name, values in record["moves"].items()}
    arrays["labels"] = np.asarray(record["labels"], np.dtype(record["dtype"]))
    rest = {key: value for key, value in record.items() if key not in ("moves", "labels")}
    arrays["record"] = np.frombuffer(json.dumps(rest).encode(), np.uint8)
    return array_bytes(arrays, compressed=True)


def _npz_record(data: bytes) -> dict[str, Any]:
    arrays = read_arrays(data, LARGEST)
    record: dict[str, Any] = json.loads(arrays["record"].tobytes())
    record["labels"] = arrays["labels"].tolist()
    record["moves"] = {name: arrays[name].tolist() for name in MOVES}
    return record


def _check_types(record: dict[str, Any]) -> None:
    """Raise a `ValueError` if a value that the arrays do not check has a type that no ledger writes."""
    C, options = record["num_classes"], record["options"]
    _expect(type(C) is int and 1 <= C <= MOST_CLASSES, "num_classes", f"an integer from 1 to {MOST_CLASSES}", C)
    _expect(LABEL_DTYPE.fullmatch(str(record["dtype"])), "dtype", "that of integers", record["dtype"])
    for name in ("notes", "class_names", "ids"):
        texts = record.get(name, [])
        is_list = isinstance(texts, list) and {*map(type, texts)} in (set(), {str}, {int})  # `relabel` takes both
        _expect(is_list, name, "a list of texts", texts)
    _expect((names := len(record["class_names"])) in (0, C), "class_names", f"{C} or none", names)
    _expect(isinstance(record["refusal"], str | None), "refusal", "a text or null", record["refusal"])
    _expect(isinstance(record["labels_sha256"], str), "labels_sha256", "a text", record["labels_sha256"])
    _expect(isinstance(options, dict), "options", "a table", options)
    pairs = options.get("forbidden", [])
    are_pairs = isinstance(pairs, list) and all(_are_below(C, pair) and len(pair) == 2 for pair in pairs)
    _expect(are_pairs, "options.forbidden", f"pairs of classes below {C}", pairs)
    rows, n = options.get("ineligible_rows", []), len(record["labels"])
    _expect(_are_below(n, rows), "options.ineligible_rows", f"rows below {n}", rows)
    kept = options.get("ineligible", 0)
    _expect(_are_below(n + 1, [kept]), "options.ineligible", f"an integer from 0 to {n}", kept)
    if "client" in options:
        _expect({"experiment", "round"} <= options.keys(), "options", "client, experiment and round", [*options])


def _check_provenance(origin: Provenance) -> None:
    number = (int | float | None, "a number or null")
    kinds: dict[str, Any] = {"seed": number, "agreement": number, "limits": (dict, "a table")}
    for name, value in vars(origin).items():
        kind, what = kinds.get(name, (str | None, "a text or null"))
        _expect(isinstance(value, kind), f"provenance.{name}", what, value)
    taus = origin.limits.get("class_tau") or {}
    is_table = isinstance(taus, dict) and all(type(tau) in (int, float) for tau in taus.values())
    _expect(is_table, "provenance.limits.class_tau", "a table of numbers", taus)


def _expect(holds: object, name: str, what: str, value: Any) -> None:
    if not holds:
        raise ValueError(f"{name}: expected {what}, got {shown(value)}")


def _are_below(limit: int, values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < limit for value in values)


def _fields(record: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {name: np.asarray(record["moves"][name], dtype) for name, dtype in MOVES.items()}
    fields["original"] = np.asarray(record["labels"], np.dtype(record["dtype"]))
    fields |= {name: tuple(record.get(name, ())) for name in ("notes", "class_names", "ids")}
    fields["provenance"] = Provenance(**record["provenance"]) if "provenance" in record else None
    _check_provenance(fields["provenance"] or Provenance())
    return fields | {name: record[name] for name in ("num_classes", "options", "refusal", "labels_sha256")}
