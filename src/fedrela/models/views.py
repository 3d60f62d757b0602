"""Two random views of each raw image, a weak and a strong one, for algorithms that compare them.

Both take bytes and return bytes; they are scaled afterwards, so what is black here is the scaled black there. A view
is made of a row of uniform draws for each sample: with the same generator, the first samples of a batch get the same
views whatever follows them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedrela.arguments import check_integer
from fedrela.errors import ArgumentError
from fedrela.models import augment
from fedrela.models.augment import Rows, affine

WEAK_DEGREES = 15.0
GREY = 128  # what moves into an image that the strong view shears, shifts or turns


def weak(batch: Tensor, rng: np.random.Generator, *, pad: int | None = None, flip: bool = True) -> Tensor:
    """Return each image cropped, perhaps mirrored, and turned by up to 15 degrees either way, black moving in.

    The turn copies the nearest pixel, as Pillow does by default. `pad` and `flip` as in `augment.crop_and_flip`.
    """
    _need_bytes("weak", batch)
    draws = rng.random((len(batch), 4))
    images = augment.cropped(batch, draws[:, :3], pad=pad, flip=flip)
    return augment.rotate(images, (2 * draws[:, 3] - 1) * WEAK_DEGREES)


def strong(
    batch: Tensor, rng: np.random.Generator, *, pad: int | None = None, flip: bool = True, white: int = 255
) -> Tensor:
    """Return each image cropped, perhaps mirrored, changed by a random row of `POLICY`, and with a black hole.

    Parameters
    ----------
    batch
        Raw images of 1 or 3 channels, uint8.
    rng
        Gives ten numbers a sample.
    pad, flip
        As in `augment.crop_and_flip`.
    white
        The raw value of white where it is not 255, such as 16 for digits; the operations see it as 255.
    """
    _need_bytes("strong", batch)
    if batch.shape[1] not in (1, 3):
        raise ArgumentError(f"strong: expected images of 1 or 3 channels, got {batch.shape[1]}")
    if check_integer("white", white) > 255:
        raise ArgumentError(f"white: expected at most 255, got {white}")
    draws = rng.random((len(batch), 10))
    images = augment.cropped(batch, draws[:, :3], pad=pad, flip=flip)
    images = _rescaled(autoaugment(_rescaled(images, white, 255), draws[:, 3:8]), 255, white)
    return cutout(images, draws[:, 8:])


class Operation(NamedTuple):
    """An operation of AutoAugment. At level m its amount is start + m slope, or start ± m slope where signed."""

    act: Callable[[Tensor, Rows], Tensor]
    start: float = 0.0
    slope: float = 0.0
    signed: bool = False


def _move(images: Tensor, place: int, amounts: Rows) -> Tensor:
    """Apply the identity matrix (1, 0, 0, 0, 1, 0) with the amounts at one place."""
    matrices = np.tile([1.0, 0.0, 0.0, 0.0, 1.0, 0.0], (len(amounts), 1))
    matrices[:, place] = amounts
    return affine(images, matrices, GREY)


# Ranges of the AutoAugment paper over levels 0 to 9; shifts are shares of the side (150 of its 331 pixels).
OPERATIONS = {
    "ShearX": Operation(lambda images, m: _move(images, 1, m), 0, 0.3 / 9, True),
    "ShearY": Operation(lambda images, m: _move(images, 3, m), 0, 0.3 / 9, True),
    "TranslateX": Operation(lambda images, m: _move(images, 2, m * images.shape[3]), 0, 150 / 331 / 9, True),
    "TranslateY": Operation(lambda images, m: _move(images, 5, m * images.shape[2]), 0, 150 / 331 / 9, True),
    "Rotate": Operation(lambda images, m: augment.rotate(images, m, GREY), 0, 30 / 9, True),
    "AutoContrast": Operation(lambda images, _: augment.autocontrast(images)),
    "Invert": Operation(lambda images, _: augment.invert(images)),
    "Equalize": Operation(lambda images, _: augment.equalize(images)),
    "Solarize": Operation(augment.solarize, 256, -256 / 9),
    "Posterize": Operation(augment.posterize, 8, -4 / 9),
    "Contrast": Operation(augment.contrast, 1, 0.1, True),
    "Color": Operation(augment.colour, 1, 0.1, True),
    "Brightness": Operation(augment.brightness, 1, 0.1, True),
    "Sharpness": Operation(augment.sharpness, 1, 0.1, True),
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


def autoaugment(images: Tensor, draws: Rows) -> Tensor:
    """Change each image by one row of `POLICY`, by ``draws (n, 5)`` in [0, 1).

    u_0 chooses the row; the first operation happens where u_1 is below its probability, with a minus where it is
    signed and u_2 < 1/2; u_3 and u_4 do the same for the second. Images of one operation are changed together.

    The paper leaves open what moves into a picture (here `GREY`), how pixels are found (here the nearest), and the
    sign: here every range that is symmetric about doing nothing is used to both sides. Images of one channel have no
    colour, so Color leaves them as they are.
    """
    images = images.clone()
    chosen = [POLICY[int(draw * len(POLICY))] for draw in draws[:, 0]]
    for place in (0, 1):
        names, chances, levels = (np.array([row[3 * place + k] for row in chosen]) for k in range(3))
        happens = draws[:, 1 + 2 * place] < chances.astype(float)
        signs = np.where(draws[:, 2 + 2 * place] < 0.5, -1.0, 1.0)
        for name in sorted(set(names[happens])):
            members = np.flatnonzero(happens & (names == name))
            operation = OPERATIONS[name]
            signed = signs[members] if operation.signed else 1.0
            amounts = operation.start + signed * operation.slope * levels[members]
            index = torch.from_numpy(members).to(images.device)
            images.index_copy_(0, index, operation.act(images.index_select(0, index), amounts))
    return images


def cutout(images: Tensor, draws: Rows) -> Tensor:
    """Blacken a square of half the shorter side, by ``draws (n, 2)`` in [0, 1).

    Its middle is the pixel (floor(u_0 height), floor(u_1 width)), so part of it may lie outside.
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
    """Map 0 .. white to 0 .. target, rounded; from a smaller `white` to 255 and back nothing is lost."""
    if white == target:
        return images
    return images.int().clamp_(max=white).mul_(2 * target).add_(white).div_(2 * white, rounding_mode="floor").byte()


def _need_bytes(where: str, batch: Tensor) -> None:
    augment.need_images(where, batch)
    if batch.dtype != torch.uint8:
        raise ArgumentError(f"{where}: expected raw images of uint8, got {batch.dtype}; scale them afterwards")
