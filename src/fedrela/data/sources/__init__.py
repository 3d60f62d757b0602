"""Data sources: one small file each, one contract (`Source`), one registry (`SOURCES`)."""

from __future__ import annotations

import inspect
from typing import Any

from fedrela.data.cache import PathOrNone, Progress
from fedrela.data.sources import cifar, digits, fashion_mnist, gaussians, image_folder, npz, table
from fedrela.data.sources.arrays import from_arrays
from fedrela.data.sources.base import DataSize, Download, RemoteFile, Source, SourceSpec
from fedrela.errors import ArgumentError
from fedrela.text import unknown

__all__ = ["SOURCES", "DataSize", "Download", "RemoteFile", "Source", "SourceSpec", "from_arrays", "load"]

SOURCES: dict[str, SourceSpec] = {
    "cifar10": cifar.CIFAR10_SPEC,
    "cifar100": cifar.CIFAR100_SPEC,
    "csv": table.SPEC,
    "digits": digits.SPEC,
    "fashion_mnist": fashion_mnist.SPEC,
    "gaussians": gaussians.SPEC,
    "image_folder": image_folder.SPEC,
    "imagenet_lt": image_folder.IMAGENET_LT_SPEC,
    "npz": npz.SPEC,
    "tiny_imagenet": image_folder.TINY_IMAGENET_SPEC,
}


def load(
    name: str,
    root: PathOrNone = None,
    *,
    cache: PathOrNone = None,
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
    fedrela.errors.ArgumentError: source: unknown source; nearest: digits
    """
    if name not in SOURCES:
        raise ArgumentError(unknown("source", name, SOURCES, "fedrela"), argument="source")
    loader = SOURCES[name].load
    accepted = inspect.signature(loader).parameters
    common = {"root": root, "cache": cache, "progress": progress}
    for option in options:
        if option not in accepted:
            own = [key for key in accepted if key not in common]
            raise ArgumentError(unknown("option", option, own, f"source {name!r}"), argument=option)
    return loader(**{key: value for key, value in common.items() if key in accepted}, **options)
