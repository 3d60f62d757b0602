"""How a ledger lies on disk: one record, as JSON for people or as npz for size, never a pickle.

The digest in a file covers the record, not the bytes, so both forms of a ledger carry the same digest.
"""

from __future__ import annotations

import io
import json
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import digest, write_bytes

if TYPE_CHECKING:
    from fedrela.core.ledger import Ledger

FORMAT = "fedrela-ledger-1"
MOVES = ("index", "old", "new", "posterior", "z", "rho")
UNREADABLE = (  # what json, zipfile and NumPy's header parser raise for damaged bytes
    OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, MemoryError, OverflowError, RecursionError,
    RuntimeError, SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def to_record(ledger: Ledger) -> dict[str, Any]:
    """Return a ledger as plain values."""
    return {
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


def save(ledger: Ledger, path: Path, *, overwrite: bool) -> None:
    """Write `ledger` to a ``.json`` or ``.npz`` file."""
    record = to_record(ledger)
    record["sha256"] = _record_digest(record)
    if path.suffix == ".json":
        data = (json.dumps(record, indent=None, separators=(", ", ": ")) + "\n").encode()
    elif path.suffix == ".npz":
        data = _npz_bytes(record)
    else:
        raise ArgumentError(f"{path}: a ledger is saved as .json or .npz")
    write_bytes(path, data, overwrite=overwrite)


def load(path: Path) -> dict[str, Any]:
    """Read the record in a ``.json`` or ``.npz`` file and compare it with its digest."""
    if path.suffix not in (".json", ".npz"):
        raise ArgumentError(f"{path}: a ledger is a .json or .npz file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        record = json.loads(data) if path.suffix == ".json" else _npz_record(data)
        claimed = record.pop("sha256")
        sound = record["format"] == FORMAT and _record_digest(record) == claimed
    except UNREADABLE as error:
        raise IntegrityError(f"{path}: not a ledger: {type(error).__name__}") from None
    if not sound:
        raise IntegrityError(f"{path}: the ledger does not match its digest; it was changed or damaged")
    return record


def _record_digest(record: dict[str, Any]) -> str:
    return digest(json.dumps(record, sort_keys=True, separators=(",", ":")).encode())


def _npz_bytes(record: dict[str, Any]) -> bytes:
    arrays = {name: np.asarray(values) for name, values in record["moves"].items()}
    arrays["labels"] = np.asarray(record["labels"], np.dtype(record["dtype"]))
    rest = {key: value for key, value in record.items() if key not in ("moves", "labels")}
    arrays["record"] = np.frombuffer(json.dumps(rest).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _npz_record(data: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        record: dict[str, Any] = json.loads(arrays["record"].tobytes())
        record["labels"] = arrays["labels"].tolist()
        record["moves"] = {name: arrays[name].tolist() for name in MOVES}
    return record
