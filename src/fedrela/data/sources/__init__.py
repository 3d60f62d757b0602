"""Data sources: one small file each, one contract (`Source`), one registry (`SOURCES`)."""

from __future__ import annotations

import inspect
from typing import Any

from fedrela.components import find_component, import_table
from fedrela.data.cache import PathOrNone, Progress
from fedrela.data.sources.arrays import from_arrays
from fedrela.data.sources.base import DataSize, Download, RemoteFile, Source, SourceSpec
from fedrela.errors import ArgumentError, DataError
from fedrela.text import unknown

__all__ = [
    "SOURCES", "DataSize", "Download", "RemoteFile", "Source", "SourceSpec", "find_source", "from_arrays", "load",
]  # fmt: skip

SOURCES: dict[str, SourceSpec] = import_table(
    __name__,
    {
        "cifar10": "cifar:CIFAR10_SPEC",
        "cifar100": "cifar:CIFAR100_SPEC",
        "csv": "table:SPEC",
        "digits": "digits:SPEC",
        "fashion_mnist": "fashion_mnist:SPEC",
        "gaussians": "gaussians:SPEC",
        "image_folder": "image_folder:SPEC",
        "imagenet_lt": "image_folder:IMAGENET_LT_SPEC",
        "npz": "npz:SPEC",
        "tiny_imagenet": "image_folder:TINY_IMAGENET_SPEC",
    },
)


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
        One of `SOURCES`, or your own; see `find_source`.
    root
        Folder of its files; by default ``data`` in the current folder. Sources without files ignore it.
    cache
        Folder of decoded arrays; see `fedrela.data.cache.cache_folder`.
    progress
        Called with (done, total, what) during long work.
    options
        The source's own options; an unknown one is an error.

    Examples
    --------
    >>> load("digits").x_train.shape
    (1438, 1, 8, 8)
    >>> load("digit")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fedrela.errors.ArgumentError: source: expected one of cifar10, ..., got 'digit'; nearest: digits
    """
    loader = find_source(name).load
    accepted = inspect.signature(loader).parameters
    common = {"root": root, "cache": cache, "progress": progress}
    for option in options:
        if option not in accepted:
            own = [key for key in accepted if key not in common]
            raise ArgumentError(unknown("option", option, own, f"source {name!r}"), argument=option)
    source = loader(**{key: value for key, value in common.items() if key in accepted}, **options)
    if not isinstance(source, Source):
        raise DataError(f"{name}: expected it to return fedrela.data.sources.Source, got {type(source).__name__}")
    return source


def find_source(name: object) -> SourceSpec:
    """Return a source: one of `SOURCES`, or a function from ``"package.module:load"`` or an installed package.

    Your own function returns a `Source`. If it has parameters root, cache and progress, they are passed; further
    parameters are the source's options.

    Parameters
    ----------
    name
        Its name.

    Examples
    --------
    >>> find_source("digits").label
    "scikit-learn's digits"
    >>> find_source("fedrela.data.sources.digits:load").has_files
    False
    """
    source = find_component(
        "sources", name, SOURCES, _loads_sources, "a function that returns a Source", argument="source"
    )
    if isinstance(source, SourceSpec):
        return source
    return SourceSpec(source, str(name), (source.__doc__ or "your own").partition("\n")[0], "as it says")


def _loads_sources(found: object) -> bool:
    return isinstance(found, SourceSpec) or (callable(found) and not isinstance(found, type))
