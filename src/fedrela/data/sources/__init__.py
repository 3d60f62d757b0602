"""Data sources: one small file each, one contract (`Source`), one explicit list (`SOURCES`)."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedrela.data.cache import Progress
from fedrela.data.sources import cifar, digits, fashion_mnist, gaussians, image_folder, npz, table
from fedrela.data.sources.arrays import from_arrays
from fedrela.data.sources.base import Source
from fedrela.errors import ArgumentError

__all__ = ["SOURCES", "Source", "from_arrays", "load"]

SOURCES: dict[str, Callable[..., Source]] = {
    "cifar10": cifar.load_cifar10,
    "cifar100": cifar.load_cifar100,
    "csv": table.load,
    "digits": digits.load,
    "fashion_mnist": fashion_mnist.load,
    "gaussians": gaussians.load,
    "image_folder": image_folder.load,
    "imagenet_lt": image_folder.load_imagenet_lt,
    "npz": npz.load,
    "tiny_imagenet": image_folder.load_tiny_imagenet,
}
EVERYWHERE = ("root", "cache", "progress")


def load(
    name: str,
    root: str | Path | None = None,
    *,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Source:
    """Load the source called `name`.

    Parameters
    ----------
    name
        One of `SOURCES`.
    root
        Where its files lie; by default ``data`` in the current folder. Sources without files ignore it.
    cache
        Folder of decoded arrays; see `fedrela.data.cache.cache_folder`.
    progress
        Called with (done, total, what) during long work.
    options
        The source's own options; one it does not have is an error.

    Examples
    --------
    >>> load("digits").x_train.shape
    (1438, 1, 8, 8)
    >>> load("digit")
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: source: there is no 'digit'; nearest: 'digits'
    """
    if name not in SOURCES:
        raise ArgumentError(f"source: there is no {name!r}{_nearest(name, list(SOURCES))}")
    own = source_options(name)
    for option in options:
        if option not in own:
            raise ArgumentError(f"{name}: there is no option {option!r}{_nearest(option, own)}")
    accepted = inspect.signature(SOURCES[name]).parameters
    common = {"root": root, "cache": cache, "progress": progress}
    return SOURCES[name](**{key: value for key, value in common.items() if key in accepted}, **options)


def source_options(name: str) -> list[str]:
    """Return the options that a source has beyond root, cache and progress.

    >>> source_options("gaussians")
    ['samples', 'test_samples', 'classes', 'dimension', 'separation', 'seed']
    """
    return [key for key in inspect.signature(SOURCES[name]).parameters if key not in EVERYWHERE]


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(str(word), known, 1, 0.5)
    return f"; nearest: {near[0]!r}" if near else f"; there are {', '.join(known) or 'none'}"
