"""Samples as small PNG pictures, written by hand: a few chunks round what zlib packs."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, COLOUR = 0, 2
LARGEST = 96  # pixels a side; larger pictures are shrunk to a whole fraction
DARKEST = 127  # the largest value of pictures that need stretching to be seen, like digits with 16 grey levels


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG file of a picture, (height, width) in grey or (height, width, 3) in colour.

    >>> png(np.zeros((2, 3), np.uint8))[12:24] == b"IHDR" + struct.pack(">II", 3, 2)
    True
    """
    height, width = pixels.shape[:2]
    kind = GREY if pixels.ndim == 2 else COLOUR
    rows = np.zeros((height, 1 + pixels.size // height), np.uint8)  # a zero before each row: no filter
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def visible(samples: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    """Return samples, (n, channels, height, width), as pictures for `png`.

    Three channels are colours; of any other number the mean is shown in grey. Pictures whose values stay low are
    stretched, all by the same factor, and large ones shrunk.
    """
    if not samples.size:
        return []
    most = int(samples.max())
    factor = 255 / most if 0 < most <= DARKEST else 1.0
    return [_picture(sample, factor) for sample in samples]


def _picture(sample: NDArray[Any], factor: float) -> NDArray[np.uint8]:
    seen = sample.transpose(1, 2, 0) if len(sample) == 3 else sample.mean(axis=0)
    step = -(-max(seen.shape[:2]) // LARGEST)
    high, wide = (max(side // step, 1) for side in seen.shape[:2])
    cut = seen[: high * step, : wide * step]
    blocks = cut.reshape(high, len(cut) // high, wide, cut.shape[1] // wide, *cut.shape[2:])
    grey: NDArray[np.uint8] = np.rint(blocks.mean(axis=(1, 3)) * factor).astype(np.uint8)
    return grey
