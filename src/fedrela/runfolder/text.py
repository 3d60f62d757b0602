"""Records as text: one canonical JSON, so that what is read is exactly what was written, and seals that prove it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.files import digest

Record = dict[str, Any]
SEAL = "sha256"


def line(record: Mapping[str, Any]) -> bytes:
    r"""Return a record as one line.

    >>> line({"round": 1, "loss": None})
    b'{"round": 1, "loss": null}\n'
    """
    return (_text(dict(record)) + "\n").encode()


def page(record: Mapping[str, Any]) -> bytes:
    """Return a record as a file, one key a line.

    >>> print(page({"round": 1, "chosen": [0, 2]}).decode(), end="")
    {
    "round": 1,
    "chosen": [0, 2]
    }
    """
    rows = ",\n".join(f"{_text(key)}: {_text(value)}" for key, value in record.items())
    return f"{{\n{rows}\n}}\n".encode()


def _text(value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"record: plain JSON values are needed: {error}") from None


def parse(data: bytes, form: Callable[[Mapping[str, Any]], bytes]) -> Record:
    """Read what `form`, `line` or `page`, returned; a `ValueError` for anything else."""
    try:
        record = json.loads(data.decode("ascii"))
        if isinstance(record, dict) and form(record) == data:
            return record
    except RecursionError:
        pass
    raise ValueError("not a record of this format")


def sealed(record: Mapping[str, Any]) -> Record:
    """Return `record` with the digest of itself as its last key."""
    if SEAL in record:
        raise ArgumentError(f"record: the key {SEAL!r} is kept for its digest; choose another")
    return {**record, SEAL: digest(line(record))}


def unsealed(record: Mapping[str, Any]) -> Record:
    """Return a sealed record without its seal; a `ValueError` where it was changed."""
    plain = {key: value for key, value in record.items() if key != SEAL}
    if record.get(SEAL) != digest(line(plain)):
        raise ValueError("it does not match its digest")
    return plain
