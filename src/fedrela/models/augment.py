"""Operations on batches of raw images: random crop and flip, moves of pixels, changes of grey levels.

An operation never changes its input and keeps the type. What differs between samples comes as an array with a row for
each, so a sample's result depends on its own pixels and its own row only. Moves copy pixels and compute places in
integers; changes of grey levels take bytes with 255 as white and agree with Pillow's to within one level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad as surround

from fedrela.arguments import check_integer
from fedrela.errors import ArgumentError

Rows = NDArray[np.float64]
FRACTION = 16  # bits behind the point of a coordinate, as in Pillow's nearest-neighbour transforms


def crop_and_flip(batch: Tensor, rng: np.random.Generator, *, pad: int | None = None, flip: bool = True) -> Tensor:
    """Return every image shifted by up to `pad` pixels each way, black (raw 0) moving in, half of them mirrored.

    Parameters
    ----------
    batch
        Raw images ``(n, channels, height, width)``.
    rng
        Gives three numbers a sample: vertical shift, horizontal shift and mirror (drawn with or without `flip`).
    pad
        Width of the border around the image before the crop; by default `usual_pad`.
    flip
        Whether images may be mirrored left to right; not for digits or text.

    Examples
    --------
    >>> image = torch.arange(1, 5, dtype=torch.uint8).view(1, 1, 2, 2)
    >>> crop_and_flip(image, np.random.default_rng(1), flip=False).tolist()
    [[[[2, 0], [4, 0]]]]
    """
    need_images("crop_and_flip", batch)
    return cropped(batch, rng.random((len(batch), 3)), pad=pad, flip=flip)


def usual_pad(height: int, width: int) -> int:
    """Return an eighth of the shorter side, at least 1.

    >>> [usual_pad(side, side) for side in (8, 28, 32, 64)]
    [1, 3, 4, 8]
    """
    return max(1, min(height, width) // 8)


def cropped(batch: Tensor, draws: Rows, *, pad: int | None = None, flip: bool = True) -> Tensor:
    """Crop and flip by ``draws (n, 3)`` in [0, 1).

    In the image with its border, top = floor(u_0 (2 pad + 1)) and left = floor(u_1 (2 pad + 1)); the crop is mirrored
    where u_2 < 1/2.
    """
    count, channels, height, width = batch.shape
    border = usual_pad(height, width) if pad is None else check_integer("pad", pad, 0)
    if not count:
        return batch.clone()
    top, left = (draws[:, :2] * (2 * border + 1)).astype(np.int64).T
    line = width + 2 * border
    plane = (height + 2 * border) * line
    first = np.arange(count) * (channels * plane) + top * line + left
    starts = first[:, None, None] + np.arange(channels)[:, None] * plane + np.arange(height) * line
    # Whole lines are copied from the view of all runs of `width` pixels: twice as fast as a gather of pixels.
    runs = surround(batch, (border,) * 4).flatten().unfold(0, width, 1)
    crops = runs.index_select(0, _like(batch, starts.ravel())).view(batch.shape)
    if not flip:
        return crops
    mirrored = np.arange(count) + count * (draws[:, 2] < 0.5)
    return torch.cat([crops, crops.flip(3)]).index_select(0, _like(batch, mirrored))


def affine(batch: Tensor, matrices: Rows, fill: int = 0) -> Tensor:
    """Move each image by its own matrix, nearest neighbour, `fill` where nothing comes from.

    Row ``(a, b, c, d, e, f)`` of ``matrices (n, 6)`` says that the pixel centred at (x, y) is copied from where
    (a x + b y + c, d x + e y + f) lies. This is Pillow's ``transform`` with ``AFFINE`` and ``NEAREST``.
    """
    count, channels, height, width = batch.shape
    a, b, c, d, e, f = matrices.T
    terms = np.stack([a, b, c + (a + b) / 2, d, e, f + (d + e) / 2])  # halves: the centre of pixel 0
    fixed = np.floor(terms * (1 << FRACTION) + 0.5).astype(np.int64)
    a_, b_, c_, d_, e_, f_ = _like(batch, fixed)[:, :, None, None]
    x = torch.arange(width, device=batch.device)
    y = torch.arange(height, device=batch.device)[:, None]
    columns = ((a_ * x + c_) + b_ * y).bitwise_right_shift_(FRACTION)
    rows = ((d_ * x + f_) + e_ * y).bitwise_right_shift_(FRACTION)
    # A frame of one pixel around the image stands for all that is outside.
    framed = surround(batch, (1, 1, 1, 1), value=fill).flatten(2)
    index = rows.clamp_(-1, height).add_(1).mul_(width + 2).add_(columns.clamp_(-1, width).add_(1))
    return framed.gather(2, index.view(count, 1, height * width).expand(-1, channels, -1)).view(batch.shape)


def rotate(batch: Tensor, degrees: Rows, fill: int = 0) -> Tensor:
    """Turn each image counter-clockwise about its middle, as Pillow's ``rotate`` does by default."""
    height, width = batch.shape[2:]
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    x, y = width / 2, height / 2
    return affine(batch, np.stack([cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y], axis=1), fill)


def invert(images: Tensor) -> Tensor:
    """255 - x."""
    return images.bitwise_not()


def solarize(images: Tensor, thresholds: Rows) -> Tensor:
    """Invert the pixels at or above each image's threshold."""
    limits = _each(images, np.ceil(thresholds).astype(np.int16))
    return torch.where(images < limits, images, invert(images))


def posterize(images: Tensor, bits: Rows) -> Tensor:
    """Keep the upper bits of every pixel, as many as `bits` rounded."""
    return images & _each(images, (256 - 2 ** (8 - np.rint(bits))).astype(np.uint8))


def autocontrast(images: Tensor) -> Tensor:
    """Stretch each channel to the whole range: floor(255 (x - low) / (high - low)); a channel of one value stays."""
    low, high = images.amin((2, 3), keepdim=True).int(), images.amax((2, 3), keepdim=True).int()
    stretched = (images - low).mul_(255).div_((high - low).clamp_(min=1), rounding_mode="floor")
    return torch.where(high > low, stretched, images).to(torch.uint8)


def equalize(images: Tensor) -> Tensor:
    """Spread each channel's grey levels evenly.

    With histogram h, level v becomes floor((floor(s / 2) + sum_{u < v} h_u) / s), at most 255, where
    s = floor((pixels - h_last) / 255) and h_last is the count of the highest level; with s = 0 the channel stays.
    """
    levels = images.flatten(2).long()
    histogram = levels.new_zeros((*levels.shape[:2], 256)).scatter_add_(2, levels, torch.ones_like(levels))
    last = histogram.gather(2, levels.amax(2, keepdim=True))
    step = (levels.shape[2] - last).div_(255, rounding_mode="floor")
    below = histogram.cumsum(2) - histogram
    table = (below + step // 2).div_(step.clamp(min=1), rounding_mode="floor").clamp_(max=255)
    return torch.where(step > 0, table.gather(2, levels), levels).to(torch.uint8).view(images.shape)


def brightness(images: Tensor, factors: Rows) -> Tensor:
    """Blend with black: 0 is black, 1 the image itself, more is brighter."""
    return _blend(0, images, factors)


def contrast(images: Tensor, factors: Rows) -> Tensor:
    """Blend with the even grey of the image's mean."""
    grey = _grey(images)
    pixels = grey.shape[2] * grey.shape[3]
    middle = (grey.sum((1, 2, 3), keepdim=True).mul_(2).add_(pixels)).div_(2 * pixels, rounding_mode="floor")
    return _blend(middle, images, factors)


def colour(images: Tensor, factors: Rows) -> Tensor:
    """Blend with the image's grey edition; an image of one channel is its own and stays."""
    return _blend(_grey(images), images, factors)


def sharpness(images: Tensor, factors: Rows) -> Tensor:
    """Blend with the image smoothed by 3 x 3 ones with 5 in the middle, over 13; the outermost pixels stay."""
    smooth = images.int()
    lines = smooth[..., :-2] + smooth[..., 1:-1] + smooth[..., 2:]
    box = lines[..., :-2, :] + lines[..., 1:-1, :] + lines[..., 2:, :]
    middle = smooth[..., 1:-1, 1:-1]
    middle.copy_((box + 4 * middle).mul_(2).add_(13).div_(26, rounding_mode="floor"))
    return _blend(smooth, images, factors)


def need_images(where: str, batch: Tensor) -> None:
    """Raise where a batch is not made of images."""
    if batch.ndim != 4 or 0 in batch.shape[1:]:
        raise ArgumentError(f"{where}: expected images (n, channels, height, width), got shape {tuple(batch.shape)}")


def _blend(base: Tensor | int, images: Tensor, factors: Rows) -> Tensor:
    """Return base + factor (image - base), cut to a byte."""
    mixed = images.float().sub_(base).mul_(_each(images, factors.astype(np.float32))).add_(base)
    return mixed.clamp_(0, 255).to(torch.uint8)


def _grey(images: Tensor) -> Tensor:
    """Luma of RGB in integers (ITU-R 601), ``(n, 1, height, width)``; one channel counts as three equal ones."""
    shares = torch.tensor([19595, 38470, 7471], dtype=torch.int32, device=images.device).view(3, 1, 1)
    return (images * shares).sum(1, keepdim=True, dtype=torch.int32).add_(1 << 15).bitwise_right_shift_(16)


def _each(images: Tensor, values: NDArray[Any]) -> Tensor:
    """Return one value an image, to broadcast over its pixels."""
    return _like(images, values).view(-1, 1, 1, 1)


def _like(batch: Tensor, values: NDArray[Any]) -> Tensor:
    """Return an array as a tensor on the batch's device."""
    return torch.from_numpy(values).to(batch.device)
