"""Image files decoded with Pillow to squares of one size."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.data.cache import Progress
from fedrela.errors import DataError
from fedrela.text import one_line

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "PPM", "WEBP")
MODES = {1: "L", 3: "RGB"}
MAX_PIXELS = 89_478_485  # where Pillow begins to warn of a decompression bomb; here it is an error
DEEP_MODES = ("I", "I;16", "I;16L", "I;16B", "F")  # Pillow would clip, not scale, their values
BLOCK_IMAGES = 512


def decode_images(paths: Sequence[Path], out: NDArray[np.uint8], progress: Progress | None, what: str) -> None:
    """Decode `paths` into `out`, ``(n, channels, size, size)``, on every core: Pillow decodes outside Python's lock."""
    _, channels, size, _ = out.shape

    def decode(i: int) -> None:
        out[i] = decode_image(paths[i], size, channels)

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(paths), BLOCK_IMAGES):  # in blocks, so that a broken image ends the work soon
            stop = min(start + BLOCK_IMAGES, len(paths))
            for _ in pool.map(decode, range(start, stop)):
                pass
            if progress:
                progress(stop, len(paths), what)


def decode_image(path: Path, size: int, channels: int) -> NDArray[np.uint8]:
    """Return the centre square of an image, resized to `size`, as ``(channels, size, size)``.

    This is the usual "resize the shorter side, crop the centre" in one step, bilinear with antialiasing. An image that
    is of this size already keeps its pixels. A JPEG more than twice as large as needed is decoded at a fraction of its
    size; transparency is dropped.
    """
    from PIL import Image

    try:
        with Image.open(path, formats=FORMATS) as image:
            _check(image, path)
            image.draft(None, (2 * size, 2 * size))
            opaque = image.convert("RGBA") if "transparency" in image.info else image
            square = _centre(opaque.convert(MODES[channels]), size)
            pixels = np.asarray(square).reshape(size, size, channels)
    except DataError:
        raise
    except Exception as error:  # Pillow answers broken files with many kinds of exception
        raise DataError(f"{path}: not a readable image: {one_line(error, 120)}") from error
    return pixels.transpose(2, 0, 1)


def _check(image: Any, path: Path) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise DataError(f"{path}: {width}x{height} pixels; {MAX_PIXELS} are the most an image may have")
    if image.mode in DEEP_MODES:
        raise DataError(f"{path}: {image.mode} pixels; expected 8 bits per channel, convert it first")


def _centre(image: Any, size: int) -> Any:
    from PIL import Image

    width, height = image.size
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return image.resize((size, size), Image.Resampling.BILINEAR, box=(left, top, left + side, top + side))
