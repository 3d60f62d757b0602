"""Which uploads of a round are averaged: a bad one is left out, without harm to the others.

Each upload is checked by itself against what the algorithm declares. One that fails is left out with a reason, as if it
had never been sent. Only two rules compare uploads: a sender may not send two different ones, and its change may not be
far larger than the changes of the others.

Some errors cannot be detected here and are admitted: swapped arrays of equal shape, zeros, values too small to matter,
a false number of samples if the server does not know the true one, and any poisoning within these limits.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.algorithms.base import ArraySpec, ArraySpecs
from fedrela.records import Failure, FailureKind, Upload
from fedrela.text import printable

INTEGERS = {int, *(np.dtype(code).type for code in np.typecodes["AllInteger"])}
LARGEST_INTEGER = 2**53  # float64 represents every integer up to here
LARGEST_SQUARE = float(np.finfo(np.float32).max)  # of a norm: beyond it float32 arithmetic overflows
LONGEST_TEXT = 60  # characters of a sender's own text in a reason
BLOCK = 80_000  # values that stay in the processor's cache
PIECE = 10_000  # values; BLAS may share a longer dot product among threads, and bits would depend on their number
FEWEST = 3  # uploads, for the median of the others to be meaningful

Expected = Mapping[int, int | None]


@dataclass(frozen=True, eq=False)
class Admission:
    """Who takes part in a round's average, and why others do not."""

    admitted: tuple[Upload, ...]  # by ascending client id; each has exactly the declared arrays, as plain arrays
    excluded: tuple[tuple[int | None, Failure], ...]  # sender (None if it is unknown) and reason, sorted
    norms: Mapping[int, float]  # ||weights - reference|| of each admitted client; empty without a reference


class _RefusedError(Exception):
    """One upload is left out."""

    def __init__(self, kind: FailureKind, detail: str = "") -> None:
        self.failure = Failure(kind, detail)


def admit(
    uploads: Iterable[object],
    *,
    round: int,
    expected: Expected,
    specs: ArraySpecs,
    reference: NDArray[Any] | None,
    norm_limit: float = 50.0,
) -> Admission:
    """Check the uploads of one round; the result does not depend on the order of arrival.

    `uploads` is whatever arrived; nothing in it raises. A late upload of another round is left out. Identical copies
    from one sender count once. If its uploads for this round differ, or one of them is malformed, none of them counts:
    which arrived first is chance, and must not decide.

    `expected` has the chosen clients, each with its n_k, or None if the server does not know it; `specs` is what the
    algorithm declares that a client sends. `reference` are the weights that the clients received; None, as for the
    answers of an exchange, means neither norms nor a limit. An upload is left out if ||weights - reference|| exceeds
    `norm_limit` times the median of the other uploads' norms. There is no limit if `norm_limit` is 0, with fewer than
    three uploads, or if the median is 0.
    """
    excluded: list[tuple[int | None, Failure]] = []
    sent: dict[int, list[object]] = {}
    for upload in uploads:
        address = _address(upload, round, expected)
        if isinstance(address, int):
            sent.setdefault(address, []).append(upload)
        else:
            excluded.append(address)
    admitted: dict[int, Upload] = {}
    norms: dict[int, float] = {}
    for client in sorted(sent):
        checked = [_check_content(each, client, round, expected[client], specs, reference) for each in sent[client]]
        valid = [each for each in checked if not isinstance(each, Failure)]
        if len(valid) == len(checked) and all(_same(valid[0][0], copy) for copy, _ in valid[1:]):
            admitted[client], norms[client] = valid[0]
        else:
            twice = Failure(FailureKind.SENT_TWICE)
            excluded += [(client, each if isinstance(each, Failure) else twice) for each in checked]
    for client, times in _too_large(norms, norm_limit).items():
        detail = f"{times:.4g} times the median of the others"
        excluded.append((client, Failure(FailureKind.NORM_TOO_LARGE, detail)))
        del admitted[client], norms[client]
    excluded.sort(key=lambda each: (each[0] is None, each[0] or 0, str(each[1])))
    return Admission(tuple(admitted.values()), tuple(excluded), norms if reference is not None else {})


def _as_int(value: object) -> int | None:
    """Return an integer from 0 to the largest one as int, or None for anything else, including True and 1.0."""
    number = int(value) if type(value) in INTEGERS else -1  # type: ignore[call-overload]  # no bool passes the test
    return number if 0 <= number <= LARGEST_INTEGER else None


def _address(upload: object, round: int, expected: Expected) -> int | tuple[int | None, Failure]:
    """Return the sender, with the reason if its upload does not belong to this round; None for an unknown sender."""
    if type(upload) is not Upload:
        return None, Failure(FailureKind.MALFORMED, "not an upload")
    client = _as_int(getattr(upload, "client", None))
    if client is None:
        return None, Failure(FailureKind.UNKNOWN_SENDER)
    if client not in expected:
        return client, Failure(FailureKind.NOT_CHOSEN)
    if _as_int(getattr(upload, "round", None)) != round:
        return client, Failure(FailureKind.WRONG_ROUND)
    return client


def _check_content(
    upload: object, client: int, round: int, samples: int | None, specs: ArraySpecs, reference: NDArray[Any] | None
) -> tuple[Upload, float] | Failure:
    """Return the upload in plain form and its norm (0 without a reference), or why it is left out."""
    try:
        count = _as_int(getattr(upload, "samples", None))
        if not count:
            raise _RefusedError(FailureKind.WRONG_SAMPLES)
        if samples is not None and count != samples:
            raise _RefusedError(FailureKind.WRONG_SAMPLES, f"expected {samples}, got {count}")
        arrays, norm = _read(getattr(upload, "arrays", None), specs), 0.0
        for name, spec in specs.items():
            _check_array(name, arrays[name], spec)
            origin = reference if name == "weights" else None
            square = _square(name, arrays[name], origin)
            norm = norm if origin is None else float(np.sqrt(square))
    except _RefusedError as refused:
        return refused.failure
    return Upload(client, round, count, arrays), norm


def _read(arrays: object, specs: ArraySpecs) -> dict[str, NDArray[Any]]:
    """Return the declared arrays; a mapping may decode them only now, and may fail in any way."""
    try:
        if not isinstance(arrays, Mapping):
            raise _RefusedError(FailureKind.MALFORMED, "no named arrays")
        for name in specs:
            if name not in arrays:
                raise _RefusedError(FailureKind.MALFORMED, f"missing array: {name}")
        if len(arrays) != len(specs):
            more = [key for key in islice(arrays, len(specs) + 1) if type(key) is str and key not in specs]
            text = ": ".join(["undeclared array", *(printable(key, LONGEST_TEXT) for key in more[:1])])
            raise _RefusedError(FailureKind.MALFORMED, text)
        values = {name: arrays[name] for name in specs}
        for name, value in values.items():
            if not isinstance(value, np.ndarray):
                raise _RefusedError(FailureKind.MALFORMED, f"not an array: {name}")
        return {name: np.asarray(value) for name, value in values.items()}  # a subclass may behave in any way
    except _RefusedError:
        raise
    except Exception:
        raise _RefusedError(FailureKind.MALFORMED, "unreadable arrays") from None


def _check_array(name: str, values: NDArray[Any], spec: ArraySpec) -> None:
    pairs = {"shape": (values.shape, spec.shape), "dtype": (values.dtype, np.dtype(spec.dtype))}
    for what, (got, declared) in pairs.items():
        if got != declared:
            got = printable(got, LONGEST_TEXT)
            raise _RefusedError(FailureKind.MALFORMED, f"wrong {what}: {name}: expected {declared}, got {got}")


def _square(name: str, values: NDArray[Any], origin: NDArray[Any] | None) -> float:
    """Return ||values - origin||^2, which is not finite if a value is not; 0 for integers."""
    if values.dtype.kind != "f":
        return 0.0
    flat = values.reshape(-1).astype(np.promote_types(values.dtype, np.float32), copy=False)
    square = 0.0
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, BLOCK):
            block = flat[start : start + BLOCK]
            if origin is not None:
                block = block - origin[start : start + BLOCK]
            pieces = (block[at : at + PIECE] for at in range(0, block.size, PIECE))
            square += sum(float(piece.dot(piece)) for piece in pieces)
    if not square <= LARGEST_SQUARE:
        raise _RefusedError(FailureKind.TOO_LARGE if np.isfinite(values).all() else FailureKind.NOT_FINITE, name)
    return square


def _same(one: Upload, other: Upload) -> bool:
    """Whether two uploads in plain form are the same to the bit."""
    pairs = zip(one.arrays.values(), other.arrays.values(), strict=True)
    return one.samples == other.samples and all(a.tobytes() == b.tobytes() for a, b in pairs)


def _too_large(norms: Mapping[int, float], limit: float) -> dict[int, float]:
    """Return the clients beyond the limit, each with norm / median of the others' norms."""
    if len(norms) < FEWEST:
        return {}
    ordered = sorted((norm, client) for client, norm in norms.items())
    middle = {(len(norms) - 2) // 2, (len(norms) - 1) // 2}
    beyond = {}
    for rank, (norm, client) in enumerate(ordered):
        median = statistics.fmean(ordered[k + (k >= rank)][0] for k in middle)
        if 0 < limit * median < norm:
            beyond[client] = norm / median
    return beyond
