"""Augmentation of raw images: random crop and flip, and the weak and strong views that some algorithms compare.

An operation never changes its input and keeps the dtype. Parameters that differ between samples are arrays with one row
per sample, so a sample's result depends only on its own pixels and its own row; with the same generator, the first
samples of a batch get the same views whatever follows them. Geometric operations copy pixels and compute positions in
integers; changes of grey levels take bytes with 255 as white and agree with Pillow's to within one level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad as surround

from fedrela.arguments import check_integer
from fedrela.errors import ArgumentError

PerSample = NDArray[np.float64]  # one row or value per sample
FRACTION = 16  # fractional bits of a coordinate, as in Pillow's nearest-neighbour transforms
WEAK_DEGREES = 15.0
GREY = 128  # fills an image that the strong view shears, shifts or rotates


def crop_and_flip(batch: Tensor, rng: np.random.Generator, *, pad: int | None = None, flip: bool = True) -> Tensor:
    """Return images shifted by up to `pad` pixels each way, filled with black (raw 0), half of them mirrored.

    Raw images are ``(n, channels, height, width)``. `pad` is the width of the border around the image before the crop,
    by default `usual_pad`; without `flip`, as for digits or text, none is mirrored. The generator gives three numbers
    per sample: vertical shift, horizontal shift and mirror (drawn with or without `flip`).

    Examples
    --------
    >>> image = torch.arange(1, 5, dtype=torch.uint8).view(1, 1, 2, 2)
    >>> crop_and_flip(image, np.random.default_rng(1), flip=False).tolist()
    [[[[2, 0], [4, 0]]]]
    """
    _check_images("crop_and_flip", batch)
    return cropped(batch, rng.random((len(batch), 3)), pad=pad, flip=flip)


def usual_pad(height: int, width: int) -> int:
    """Return an eighth of the shorter side, at least 1.

    >>> [usual_pad(side, side) for side in (8, 28, 32, 64)]
    [1, 3, 4, 8]
    """
    return max(1, min(height, width) // 8)


def cropped(batch: Tensor, draws: PerSample, *, pad: int | None = None, flip: bool = True) -> Tensor:
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
    # Copy whole lines from a view of all runs of `width` pixels: twice as fast as a gather of pixels.
    runs = surround(batch, (border,) * 4).flatten().unfold(0, width, 1)
    crops = runs.index_select(0, _like(batch, starts.ravel())).view(batch.shape)
    if not flip:
        return crops
    mirrored = np.arange(count) + count * (draws[:, 2] < 0.5)
    return torch.cat([crops, crops.flip(3)]).index_select(0, _like(batch, mirrored))


def affine(batch: Tensor, matrices: PerSample, fill: int = 0) -> Tensor:
    """Transform each image by its own matrix, nearest neighbour, with `fill` outside of the source.

    Row ``(a, b, c, d, e, f)`` of ``matrices (n, 6)`` copies to the pixel centred at (x, y) the pixel at
    (a x + b y + c, d x + e y + f); this is Pillow's ``transform`` with ``AFFINE`` and ``NEAREST``.
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
    # A border of one pixel represents everything outside the image.
    framed = surround(batch, (1, 1, 1, 1), value=fill).flatten(2)
    index = rows.clamp_(-1, height).add_(1).mul_(width + 2).add_(columns.clamp_(-1, width).add_(1))
    return framed.gather(2, index.view(count, 1, height * width).expand(-1, channels, -1)).view(batch.shape)


def rotate(batch: Tensor, degrees: PerSample, fill: int = 0) -> Tensor:
    """Rotate each image counter-clockwise about its centre, as Pillow's ``rotate`` does by default."""
    height, width = batch.shape[2:]
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    x, y = width / 2, height / 2
    return affine(batch, np.stack([cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y], axis=1), fill)


def invert(images: Tensor) -> Tensor:
    """255 - x."""
    return images.bitwise_not()


def solarize(images: Tensor, thresholds: PerSample) -> Tensor:
    """Invert the pixels at or above each image's threshold."""
    limits = _each(images, np.ceil(thresholds).astype(np.int16))
    return torch.where(images < limits, images, invert(images))


def posterize(images: Tensor, bits: PerSample) -> Tensor:
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


def brightness(images: Tensor, factors: PerSample) -> Tensor:
    """Blend with black: 0 is black, 1 the image itself, more is brighter."""
    return _blend(0, images, factors)


def contrast(images: Tensor, factors: PerSample) -> Tensor:
    """Blend with a uniform grey, the mean of the image."""
    grey = _grey(images)
    pixels = grey.shape[2] * grey.shape[3]
    middle = (grey.sum((1, 2, 3), keepdim=True).mul_(2).add_(pixels)).div_(2 * pixels, rounding_mode="floor")
    return _blend(middle, images, factors)


def colour(images: Tensor, factors: PerSample) -> Tensor:
    """Blend with the greyscale image; an image of one channel stays as it is."""
    return _blend(_grey(images), images, factors)


def sharpness(images: Tensor, factors: PerSample) -> Tensor:
    """Blend with the image smoothed by 3 x 3 ones with 5 in the middle, over 13; border pixels stay."""
    smooth = images.int()
    lines = smooth[..., :-2] + smooth[..., 1:-1] + smooth[..., 2:]
    box = lines[..., :-2, :] + lines[..., 1:-1, :] + lines[..., 2:, :]
    middle = smooth[..., 1:-1, 1:-1]
    middle.copy_((box + 4 * middle).mul_(2).add_(13).div_(26, rounding_mode="floor"))
    return _blend(smooth, images, factors)


def _check_images(where: str, batch: Tensor, dtype: torch.dtype | None = None) -> None:
    """Raise if a batch does not consist of images of this dtype, or of any."""
    if batch.ndim != 4 or 0 in batch.shape[1:]:
        raise ArgumentError(f"{where}: expected images (n, channels, height, width), got shape {tuple(batch.shape)}")
    if dtype not in (None, batch.dtype):
        raise ArgumentError(f"{where}: expected raw images of uint8, got {batch.dtype}; scale them afterwards")


def _blend(base: Tensor | int, images: Tensor, factors: PerSample) -> Tensor:
    """Return base + factor (image - base), clipped to a byte."""
    mixed = images.float().sub_(base).mul_(_each(images, factors.astype(np.float32))).add_(base)
    return mixed.clamp_(0, 255).to(torch.uint8)


def _grey(images: Tensor) -> Tensor:
    """Luma of RGB in integers (ITU-R 601), ``(n, 1, height, width)``; one channel counts as three equal ones."""
    shares = torch.tensor([19595, 38470, 7471], dtype=torch.int32, device=images.device).view(3, 1, 1)
    return (images * shares).sum(1, keepdim=True, dtype=torch.int32).add_(1 << 15).bitwise_right_shift_(16)


def _each(images: Tensor, values: NDArray[Any]) -> Tensor:
    """Return one value per image, to broadcast over its pixels."""
    return _like(images, values).view(-1, 1, 1, 1)


def _like(batch: Tensor, values: NDArray[Any]) -> Tensor:
    """Return an array as a tensor on the batch's device."""
    return torch.from_numpy(values).to(batch.device)


def weak(batch: Tensor, rng: np.random.Generator, *, pad: int | None = None, flip: bool = True) -> Tensor:
    """Return each image cropped, perhaps mirrored, and rotated by up to 15 degrees either way, filled with black.

    The rotation copies the nearest pixel, as Pillow does by default. `pad` and `flip` as in `crop_and_flip`.
    """
    _check_images("weak", batch, torch.uint8)
    draws = rng.random((len(batch), 4))
    images = cropped(batch, draws[:, :3], pad=pad, flip=flip)
    return rotate(images, (2 * draws[:, 3] - 1) * WEAK_DEGREES)


def strong(
    batch: Tensor, rng: np.random.Generator, *, pad: int | None = None, flip: bool = True, white: int = 255
) -> Tensor:
    """Return each image cropped, perhaps mirrored, changed by a random row of `POLICY`, with a black square cut out.

    Raw images are uint8 of 1 or 3 channels; `white` is their raw value of white, such as 16 for digits, which the
    operations see as 255. `pad` and `flip` as in `crop_and_flip`. The generator gives ten numbers per sample.
    """
    _check_images("strong", batch, torch.uint8)
    if batch.shape[1] not in (1, 3):
        raise ArgumentError(f"strong: expected images of 1 or 3 channels, got {batch.shape[1]}")
    if check_integer("white", white) > 255:
        raise ArgumentError(f"white: expected at most 255, got {white}")
    draws = rng.random((len(batch), 10))
    images = cropped(batch, draws[:, :3], pad=pad, flip=flip)
    images = _rescaled(autoaugment(_rescaled(images, white, 255), draws[:, 3:8]), 255, white)
    return cutout(images, draws[:, 8:])


class Operation(NamedTuple):
    """An operation of AutoAugment. At level m its amount is start + m slope, or start ± m slope where signed."""

    act: Callable[[Tensor, PerSample], Tensor]
    start: float = 0.0
    slope: float = 0.0
    signed: bool = False


def _move(images: Tensor, entry: int, amounts: PerSample) -> Tensor:
    """Apply the identity matrix (1, 0, 0, 0, 1, 0) with the amounts as one of its entries."""
    matrices = np.tile([1.0, 0.0, 0.0, 0.0, 1.0, 0.0], (len(amounts), 1))
    matrices[:, entry] = amounts
    return affine(images, matrices, GREY)


# Ranges of the AutoAugment paper over levels 0 to 9; shifts are shares of the side (150 of its 331 pixels).
OPERATIONS = {
    "ShearX": Operation(lambda images, m: _move(images, 1, m), 0, 0.3 / 9, True),
    "ShearY": Operation(lambda images, m: _move(images, 3, m), 0, 0.3 / 9, True),
    "TranslateX": Operation(lambda images, m: _move(images, 2, m * images.shape[3]), 0, 150 / 331 / 9, True),
    "TranslateY": Operation(lambda images, m: _move(images, 5, m * images.shape[2]), 0, 150 / 331 / 9, True),
    "Rotate": Operation(lambda images, m: rotate(images, m, GREY), 0, 30 / 9, True),
    "AutoContrast": Operation(lambda images, _: autocontrast(images)),
    "Invert": Operation(lambda images, _: invert(images)),
    "Equalize": Operation(lambda images, _: equalize(images)),
    "Solarize": Operation(solarize, 256, -256 / 9),
    "Posterize": Operation(posterize, 8, -4 / 9),
    "Contrast": Operation(contrast, 1, 0.1, True),
    "Color": Operation(colour, 1, 0.1, True),
    "Brightness": Operation(brightness, 1, 0.1, True),
    "Sharpness": Operation(sharpness, 1, 0.1, True),
}

# The 25 sub-policies that the paper found for CIFAR-10: two operations in turn, each with its probability and level.
POLICY = (
    ("Invert", 0.1, 7, "Contrast", 0.2, 6),
    ("Rotate", 0.7, 2, "TranslateX", 0.3, 9),
    ("Sharpness", 0.8, 1, "Sharpness", 0.9, 3),
    ("ShearY", 0.5, 8, "TranslateY", 0.7, 9),
    ("AutoContrast", 0.5, 8, "Equalize", 0.9, 2),
    ("ShearY", 0.2, 7, "Posterize", 0.3, 7),
    ("Color", 0.4, 3, "Brightness", 0.6, 7),
    ("Sharpness", 0.3, 9, "Brightness", 0.7, 9),
    ("Equalize", 0.6, 5, "Equalize", 0.5, 1),
    ("Contrast", 0.6, 7, "Sharpness", 0.6, 5),
    ("Color", 0.7, 7, "TranslateX", 0.5, 8),
    ("Equalize", 0.3, 7, "AutoContrast", 0.4, 8),
    ("TranslateY", 0.4, 3, "Sharpness", 0.2, 6),
    ("Brightness", 0.9, 6, "Color", 0.2, 8),
    ("Solarize", 0.5, 2, "Invert", 0.0, 3),
    ("Equalize", 0.2, 0, "AutoContrast", 0.6, 0),
    ("Equalize", 0.2, 8, "Equalize", 0.6, 4),
    ("Color", 0.9, 9, "Equalize", 0.6, 6),
    ("AutoContrast", 0.8, 4, "Solarize", 0.2, 8),
    ("Brightness", 0.1, 3, "Color", 0.7, 0),
    ("Solarize", 0.4, 5, "AutoContrast", 0.9, 3),
    ("TranslateY", 0.9, 9, "TranslateY", 0.7, 9),
    ("AutoContrast", 0.9, 2, "Solarize", 0.8, 3),
    ("Equalize", 0.8, 8, "Invert", 0.1, 3),
    ("TranslateY", 0.7, 9, "AutoContrast", 0.9, 1),
)


def autoaugment(images: Tensor, draws: PerSample) -> Tensor:
    """Change each image by one row of `POLICY`, by ``draws (n, 5)`` in [0, 1).

    u_0 chooses the row; the first operation happens where u_1 is below its probability, with a minus where it is
    signed and u_2 < 1/2; u_3 and u_4 do the same for the second. Images of one operation are changed together.

    The paper leaves open the fill (here `GREY`), the interpolation (here nearest), and the sign: here every range that
    is symmetric about the identity is used on both sides. Color leaves images of one channel as they are.
    """
    images = images.clone()
    chosen = [POLICY[int(draw * len(POLICY))] for draw in draws[:, 0]]
    for step in (0, 1):
        names, chances, levels = (np.array([row[3 * step + k] for row in chosen]) for k in range(3))
        happens = draws[:, 1 + 2 * step] < chances.astype(float)
        signs = np.where(draws[:, 2 + 2 * step] < 0.5, -1.0, 1.0)
        for name in sorted(set(names[happens])):
            members = np.flatnonzero(happens & (names == name))
            operation = OPERATIONS[name]
            signed = signs[members] if operation.signed else 1.0
            amounts = operation.start + signed * operation.slope * levels[members]
            index = torch.from_numpy(members).to(images.device)
            images.index_copy_(0, index, operation.act(images.index_select(0, index), amounts))
    return images


def cutout(images: Tensor, draws: PerSample) -> Tensor:
    """Blacken a square of half the shorter side, by ``draws (n, 2)`` in [0, 1).

    Its centre is the pixel (floor(u_0 height), floor(u_1 width)), so part of it may lie outside.
    """
    height, width = images.shape[2:]
    hole = max(1, min(height, width) // 2)
    corner = np.floor(draws * (height, width)) - hole // 2
    inside = []
    for side, first in ((height, corner[:, :1]), (width, corner[:, 1:])):
        inside.append((np.arange(side) >= first) & (np.arange(side) < first + hole))
    keep = ~(inside[0][:, None, :, None] & inside[1][:, None, None, :])
    return images * torch.from_numpy(keep).to(images.device)


def _rescaled(images: Tensor, white: int, target: int) -> Tensor:
    """Map 0 .. white to 0 .. target, rounded; from a smaller `white` to 255 and back is lossless."""
    if white == target:
        return images
    return images.int().clamp_(max=white).mul_(2 * target).add_(white).div_(2 * white, rounding_mode="floor").byte()
