"""How stored samples become a model's inputs: images and series are standardised per channel, tables are not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from fedrela.errors import ArgumentError, DataError

FORWARD_BATCH = 256  # samples per forward pass without training; fixed, since the last bits depend on it
CHUNK = 1 << 20  # pixels that `Scaling.fit` reads at once; larger chunks leave the cache and take twice as long


@dataclass(frozen=True)
class Scaling:
    """(x - mean) / std for every channel; without channels the identity, for tables. Wider integers stay integers.

    Examples
    --------
    >>> scaling = Scaling((8.0,), (4.0,))
    >>> scaling.apply(torch.tensor([[[[0, 16]]]], dtype=torch.uint8)).tolist()
    [[[[-2.0, 2.0]]]]
    """

    mean: tuple[float, ...] = ()  # one number per channel, in raw grey levels
    std: tuple[float, ...] = ()  # likewise, each above 0
    pixel_max: int = 255  # the raw value of white, which augmentation needs; the data source states it
    dimensions: int = 3  # of one sample, the first of which are the channels

    def __post_init__(self) -> None:
        is_valid = len(self.mean) == len(self.std) and all(map(math.isfinite, self.mean + self.std))
        if not (is_valid and all(std > 0 for std in self.std)):
            raise ArgumentError(
                f"scaling: expected as many finite means as positive stds, got {self.mean} and {self.std}"
            )

    @classmethod
    def fit(cls, x_train: NDArray[Any], index: ArrayLike | None = None, *, pixel_max: int = 255) -> Scaling:
        """Measure mean and population standard deviation of each channel's raw values over the training samples.

        Images are uint8 ``(n, channels, height, width)`` and may be a memory-mapped file of any size; floats of more
        than two dimensions are measured in the same way, a table of floats ``(n, columns)`` is assumed to be
        standardised already, and token ids are not scaled. `index` selects the samples to measure, all by default;
        duplicates count twice. At most `CHUNK` pixels, but at least one image, are in memory at once. Sums are
        integers, so neither `CHUNK` nor the order of `index` changes a bit. A constant channel gets std 1.

        Examples
        --------
        >>> Scaling.fit(np.array([[[[0, 16]]], [[[8, 8]]]], dtype=np.uint8))
        Scaling(mean=(8.0,), std=(5.656854249492381,), pixel_max=255, dimensions=3)
        >>> Scaling.fit(np.zeros((5, 3), dtype=np.float32))
        Scaling(mean=(), std=(), pixel_max=255, dimensions=3)
        """
        if (x_train.ndim == 2 and x_train.dtype.kind == "f") or (x_train.ndim >= 2 and x_train.dtype == np.int64):
            return cls()
        if x_train.ndim > 2 and x_train.dtype.kind == "f":
            return cls._fit_floats(x_train, index)
        if x_train.ndim != 4 or x_train.dtype != np.uint8:
            raise DataError(
                "scaling: expected images uint8 (n, channels, height, width), floats (n, ...) or integers (n, ...), "
                f"got {x_train.dtype} {x_train.shape}"
            )
        count, total, squares = pixel_sums(x_train, index)
        if not count:
            raise DataError(f"scaling: expected at least one pixel, got images of shape {x_train.shape}")
        return cls.of_sums(count, total, squares, pixel_max)

    @classmethod
    def of_sums(cls, count: int, total: NDArray[np.int64], squares: NDArray[np.int64], pixel_max: int = 255) -> Scaling:
        """Return the scaling from `pixel_sums`, which may be sums over several sets of images."""
        pairs = list(zip(total.tolist(), squares.tolist(), strict=True))  # Python's integers do not overflow
        variances = [(count * square - first * first) / count**2 for first, square in pairs]
        mean, std = tuple(first / count for first, _ in pairs), tuple(math.sqrt(v) or 1.0 for v in variances)
        return cls(mean, std, pixel_max)

    @classmethod
    def _fit_floats(cls, x: NDArray[Any], index: ArrayLike | None) -> Scaling:
        """Measure each channel in two passes: the mean, then the squared deviations from it."""
        axes = (0, *range(2, x.ndim))
        count = sum(part.size for part in _chunks(x, index)) // max(x.shape[1], 1)
        if not count:
            raise DataError(f"scaling: expected at least one value, got samples of shape {x.shape}")
        mean = sum(part.sum(axes, dtype=np.float64) for part in _chunks(x, index)) / count
        centre = np.reshape(mean, (-1, *(1 for _ in axes[1:])))
        squares = sum(np.square(part - centre).sum(axes) for part in _chunks(x, index))
        std = np.sqrt(squares / count)
        flat = std <= 1e-12 * np.abs(mean)  # rounding alone, no spread
        std = np.where(flat, 1.0, std)
        return cls(tuple(np.atleast_1d(mean).tolist()), tuple(std.tolist()), dimensions=x.ndim - 1)

    def apply(self, batch: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the model inputs of a batch of raw samples, on the batch's device.

        Every value is one subtraction and one division, so a sample has the same bits in any batch. The identity
        returns a batch of the right dtype itself, not a copy.
        """
        if not self.mean:
            return batch if batch.dtype == torch.int64 else batch.to(dtype)
        if batch.ndim < self.dimensions or batch.shape[-self.dimensions] != len(self.mean):
            form = "images (n, channels, height, width)" if self.dimensions == 3 else "samples (n, channels, ...)"
            what = f"expected {form} of {len(self.mean)} channels"
            raise ArgumentError(f"scaling: {what}, got {tuple(batch.shape)}")
        mean, std = _constants(self, dtype, batch.device)
        return batch.to(dtype, copy=True).sub_(mean).div_(std)

    def as_record(self) -> dict[str, list[float]]:
        """Return plain values, which JSON stores exactly."""
        return {"mean": list(self.mean), "std": list(self.std)}


def pixel_sums(x: NDArray[Any], index: ArrayLike | None = None) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Return number of pixels, and each channel's sum of pixels and of their squares.

    >>> pixel_sums(np.array([[[[0, 16]]], [[[8, 8]]]], dtype=np.uint8))
    (4, array([32]), array([384]))
    """
    total = squares = np.zeros(x.shape[1], np.int64)
    size = 0
    for images in _chunks(x, index):
        total = total + images.sum((0, 2, 3), dtype=np.int64)
        squares = squares + np.square(images, dtype=np.uint16).sum((0, 2, 3), dtype=np.int64)
        size += images.size
    return size // max(x.shape[1], 1), total, squares


def _chunks(x: NDArray[Any], index: ArrayLike | None) -> Iterator[NDArray[Any]]:
    """Yield the selected samples in chunks of at most `CHUNK` pixels, in stored order."""
    size = max(1, CHUNK // max(1, math.prod(x.shape[1:])))
    if index is None:
        yield from (x[start : start + size] for start in range(0, len(x), size))
        return
    rows = np.sort(np.asarray(index).ravel())
    if len(rows) and (rows.dtype.kind not in "iu" or rows[0] < 0 or rows[-1] >= len(x)):
        raise ArgumentError(f"index: expected integers from 0 to {len(x) - 1}, got {rows[0]} to {rows[-1]}")
    yield from (x[rows[start : start + size]] for start in range(0, len(rows), size))


@lru_cache(maxsize=64)
def _constants(scaling: Scaling, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False):  # cached, and used inside and outside that mode
        shape = (len(scaling.mean), *(1 for _ in range(scaling.dimensions - 1)))
        mean = torch.tensor(scaling.mean, dtype=dtype, device=device).view(shape)
        return mean, torch.tensor(scaling.std, dtype=dtype, device=device).view(shape)
