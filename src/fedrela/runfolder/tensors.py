"""Named arrays as a safetensors file, written array by array without a copy of them all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from fedrela.errors import ArgumentError

HEADER_LIMIT = 100_000_000  # bytes; readers of the format refuse a longer one
CODES = {
    "<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "<i4": "I32", "<i2": "I16", "|i1": "I8", "<u8": "U64",
    "<u4": "U32", "<u2": "U16", "|u1": "U8", "|b1": "BOOL",
}  # fmt: skip


def tensor_chunks(arrays: Mapping[str, NDArray[Any]]) -> Iterator[bytes | memoryview]:
    """Return the bytes of a safetensors file piece by piece; what cannot be stored is an error at once.

    Larger items come first, so that each array begins at a multiple of its item size.
    """
    named = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, Any] = {}
    end = 0
    for name, array in named:
        code = CODES.get(array.dtype.newbyteorder("<").str)
        if code is None or name == "__metadata__":
            raise ArgumentError(f"array {name!r}: expected integers, floats or booleans, got {array.dtype}")
        header[name] = {"dtype": code, "shape": array.shape, "data_offsets": (end, end + array.nbytes)}
        end += array.nbytes
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise ArgumentError("arrays: a name is not Unicode text") from None
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_LIMIT:
        raise ArgumentError(f"arrays: their names take {len(text)} bytes, at most {HEADER_LIMIT} can be stored")
    return chain([len(text).to_bytes(8, "little") + text], (_content(array) for _, array in named))


def _content(array: NDArray[Any]) -> memoryview:
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return plain.reshape(-1).view(np.uint8).data


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read a safetensors file as arrays of their own, by name; a `ValueError` where it is not one."""
    try:
        arrays = load_file(path)
    except Exception as error:  # the reader answers forged bytes with many kinds of exception
        raise ValueError(f"not a safetensors file: {type(error).__name__}") from None
    return {name: arrays[name] for name in sorted(arrays)}
