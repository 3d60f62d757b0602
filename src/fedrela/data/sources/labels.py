"""Encoding of labels and client ids as integers, and the stratified test split."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedrela.arguments import check_integer
from fedrela.core.input_checks import is_missing
from fedrela.core.ledger import MOST_CLASSES as MOST_CLASSES  # the limit of all readers
from fedrela.data.checks import first, repeated
from fedrela.errors import DataError
from fedrela.options import Option, checked
from fedrela.streams import stream

TEST_SHARE = Option("test_share", float, 0.2, "share of every class in the test set", ge=0, le=1)
WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})\.0*")  # an integer with a decimal point
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # one spelling of each, so that "07" and "7" stay distinct


def check_class_names(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Return `names` if they are printable, not empty and all distinct, or raise."""
    for name in names:
        if not name.strip() or not name.isprintable():
            raise DataError(f"{where}: a class name must be printable and not empty, got {name[:40]!r}")
    if len(names) > MOST_CLASSES:
        raise DataError(f"{where}: expected at most {MOST_CLASSES} classes, got {len(names)}")
    if (twice := repeated(names)) is not None:
        raise DataError(f"{where}: class names must differ, {twice!r} occurs twice")
    return tuple(names)


def class_names_from_lines(text: bytes, classes: int, where: str) -> tuple[str, ...]:
    """Return the class names in a text of one name per line."""
    try:
        lines = [line.strip() for line in text.decode("utf-8").splitlines()]
    except UnicodeDecodeError:
        raise DataError(f"{where}: expected class names as UTF-8 text") from None
    names = [line for line in lines if line]
    if len(names) != classes:
        raise DataError(f"{where}: expected {classes} class names, got {len(names)}")
    return check_class_names(names, where)


def encode_labels(
    values: NDArray[Any], class_names: Sequence[str] | None, where: str
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return labels 0 .. C - 1 and their class names.

    Without `class_names`, the classes are the distinct values: integers (also written as text) in ascending order,
    other text in alphabetical order. With `class_names`, integers are positions in it and text is one of the names.

    >>> encode_labels(np.array(["10", "9", "9"]), None, "y")
    (array([1, 0, 0]), ('9', '10'))
    """
    plain = plain_values(values, where)
    if class_names is None:
        _check_spellings(plain, where)
        classes, codes = np.unique(plain, return_inverse=True)
        return codes.astype(np.int64), check_class_names([str(value) for value in classes], where)
    names = check_class_names([str(name) for name in class_names], where)
    if _without_objects(values, where).dtype.kind in "iubf":
        return check_codes(plain, len(names), where), names
    position = {name: c for c, name in enumerate(names)}
    texts = [str(value) for value in plain]
    for i, text in enumerate(texts):
        if text not in position:
            raise DataError(f"{where}: sample {i}: label {text[:40]!r} is not one of the class names")
    return np.array([position[text] for text in texts], np.int64), names


def check_codes(values: NDArray[Any], classes: int | None, where: str) -> NDArray[np.int64]:
    """Return integer labels as int64 if all are in 0 .. C - 1; the error names the first that is not.

    Without class names C is unknown and at most the number of samples: a single wrong label must not create a class,
    and a row of every matrix, for each number below it.
    """
    if values.dtype.kind not in "iub":
        raise DataError(f"{where}: expected integer labels, got {values.dtype}")
    if (i := first(values < 0)) is not None:
        raise DataError(f"{where}: sample {i}: labels count from 0, got {values[i]}; renumber the classes")
    limit = min(MOST_CLASSES, len(values)) if classes is None else classes
    if (i := first(values >= limit)) is not None:
        why = f" for {len(values)} samples without class_names" if classes is None else ""
        raise DataError(f"{where}: sample {i}: expected a label from 0 to {limit - 1}{why}, got {values[i]}")
    return values.astype(np.int64)


def encode_clients(values: ArrayLike, where: str) -> NDArray[np.int64]:
    """Return natural client ids as integers: integers stay, text is numbered in alphabetical order."""
    plain = plain_values(np.asarray(values), where)
    if plain.dtype.kind in "iu":
        return plain.astype(np.int64)
    _check_spellings(plain, where)
    return np.unique(plain, return_inverse=True)[1].astype(np.int64)


def two_spellings(texts: Sequence[str]) -> tuple[int, int] | None:
    """Return the first two samples that write one integer with and without a decimal point, or None.

    >>> two_spellings(["0", "1", "1.0"]), two_spellings(["07", "7", "1.5"])
    ((1, 2), None)
    """
    first_of: dict[str, int] = {}
    for i, text in enumerate(texts):
        first_of.setdefault(text, i)
    pairs = [
        (first_of[found[1]], i)
        for text, i in first_of.items()
        if (found := WHOLE.fullmatch(text)) and found[1] in first_of
    ]
    return min(((min(pair), max(pair)) for pair in pairs), default=None)


def _check_spellings(plain: NDArray[Any], where: str) -> None:
    if plain.dtype.kind == "U" and (pair := two_spellings(plain.tolist())) is not None:
        i, j = pair
        what = f"expected one spelling of a number, got {str(plain[i])!r} and, in sample {j}, {str(plain[j])!r}"
        raise DataError(f"{where}: sample {i}: {what}")


def plain_values(values: NDArray[Any], where: str) -> NDArray[Any]:
    """Return `values` as integers if every one is an integer, and as text otherwise.

    >>> plain_values(np.array([1.0, 2.0]), "y"), plain_values(np.array(["07", "b"]), "y").tolist()
    (array([1, 2]), ['07', 'b'])
    """
    if values.ndim != 1 or not values.size:
        raise DataError(f"{where}: expected one dimension and at least one value, got shape {values.shape}")
    values = _without_objects(values, where)
    if values.dtype.kind == "f":
        is_integer = np.isfinite(values) & (values == np.round(values)) & (np.abs(values) < 2**53)
        if (i := first(~is_integer)) is not None:
            raise DataError(f"{where}: sample {i}: expected an integer or text, got {values[i]}")
        return values.astype(np.int64)
    if values.dtype.kind in "iub":
        return values.astype(np.int64)
    if values.dtype.kind not in "US":
        raise DataError(f"{where}: expected integers or text, got {values.dtype}")
    texts = np.char.strip(np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values)
    if all(INTEGER.fullmatch(text) for text in texts):
        return texts.astype(np.int64)
    return texts


def _without_objects(values: NDArray[Any], where: str) -> NDArray[Any]:
    """Convert an array of Python objects, which pandas uses for text, to the dtype of its values."""
    if values.dtype.kind not in "OT":
        return values
    for i, value in enumerate(values.tolist()):
        if is_missing(value):
            raise DataError(f"{where}: sample {i}: expected a value, got none; leave the sample out")
    return np.asarray(values.tolist())


def held_out_count(samples: int, share: float) -> int:
    """Return how many of a class's `samples` go to the test set: the share, halves rounded up.

    A class keeps at least one training sample; with two or more samples it has at least one test sample.

    >>> [held_out_count(n, 0.2) for n in (1, 2, 10, 13, 178)]
    [0, 1, 2, 3, 36]
    """
    return min(max(math.floor(samples * share + 0.5), 1), samples - 1)


def stratified(
    labels: NDArray[np.int64], share: float, seed: int, purpose: str = "test split"
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ascending indices of training and test samples, `share` of every class in the test set.

    With a share of 0 or 1 nothing is split: all samples are training samples, or all are test samples.

    >>> train, test = stratified(np.array([0, 0, 0, 0, 1, 1]), 0.25, seed=0)
    >>> len(train), len(test)
    (4, 2)
    """
    share = checked(TEST_SHARE, share)
    generator = stream(check_integer("seed", seed, 0), purpose)
    held_out = np.full(len(labels), share == 1)
    for c in np.unique(labels) if 0 < share < 1 else ():
        members = np.flatnonzero(labels == c)
        held_out[generator.permutation(members)[: held_out_count(len(members), share)]] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)
