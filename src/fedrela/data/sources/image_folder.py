"""Data sets of image files in class folders or list files, Tiny-ImageNet and ImageNet-LT among them."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np

from fedrela.data.cache import NewArray, Progress, cached_arrays
from fedrela.data.sources.base import Download, RemoteFile, Source, SourceSpec
from fedrela.data.sources.image_lists import Listing, list_files, list_folders
from fedrela.data.sources.pictures import MODES, decode_images
from fedrela.data.sources.places import root_folder
from fedrela.errors import ArgumentError, DataError

LARGEST = 4096


def load(
    root: str | Path | None = None,
    *,
    train_list: str | None = None,
    test_list: str | None = None,
    test: str | None = None,
    size: int = 64,
    channels: int = 3,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Source:
    """Return a data set of image files, decoded and resized once into the cache.

    Parameters
    ----------
    root
        The folder with ``train/CLASS/*.jpg`` and ``val`` or ``test``, or the one that the list files start from.
    train_list, test_list
        Text files in `root` with a path and a label a line, as ImageNet-LT has them; both or neither.
    test
        Folder of the test images; see `fedrela.data.sources.image_lists.list_folders`.
    size, channels
        Every image becomes ``size x size``, in colour (3) or grey (1).
    cache, progress
        See `fedrela.data.cache.cached_arrays`.
    """
    return _load("image_folder", root_folder(root), train_list, test_list, test, size, channels, cache, progress)


def load_tiny_imagenet(
    root: str | Path | None = None,
    *,
    size: int = 64,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Source:
    """Return Tiny-ImageNet from ``root/tiny-imagenet-200`` or `root`; its annotated ``val`` part is the test set."""
    base = root_folder(root)
    folder = base / "tiny-imagenet-200" if (base / "tiny-imagenet-200").is_dir() else base
    if not (folder / "train").is_dir():
        put = f"put the unpacked folder tiny-imagenet-200 in {base}, or run `fedrela data fetch tiny_imagenet`"
        raise DataError(f"tiny_imagenet: no folder train in {folder}; {put}")
    return _load("tiny_imagenet", folder, None, None, "val", size, 3, cache, progress)


def load_imagenet_lt(
    root: str | Path | None = None,
    *,
    train_list: str = "ImageNet_LT_train.txt",
    test_list: str = "ImageNet_LT_test.txt",
    size: int = 64,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Source:
    """Return ImageNet-LT: ImageNet's ``train`` and ``val`` folders in `root`, and the two lists beside them."""
    return _load("imagenet_lt", root_folder(root), train_list, test_list, None, size, 3, cache, progress)


def _load(
    name: str,
    root: Path,
    train_list: str | None,
    test_list: str | None,
    test: str | None,
    size: int,
    channels: int,
    cache: str | Path | None,
    progress: Progress | None,
) -> Source:
    if isinstance(size, bool) or not 1 <= size <= LARGEST:
        raise ArgumentError(f"size: expected from 1 to {LARGEST} pixels, got {size!r}")
    if channels not in MODES:
        raise ArgumentError(f"channels: expected 1 (grey) or 3 (colour), got {channels!r}")
    listing = _listing(name, root, train_list, test_list, test)
    parts = {"x_train": listing.train, "x_test": listing.test}

    def decode(new: NewArray) -> None:
        for part, samples in parts.items():
            out = new(part, (len(samples), channels, size, size), np.uint8)
            decode_images([path for path, _ in samples], out, progress, f"decoding {name} {part[2:]}")

    options = {"reader": "images", "size": size, "channels": channels, "train": len(listing.train)}
    options["pillow"] = version("pillow")  # another version may round pixels another way
    files = [path for samples in parts.values() for path, _ in samples]
    arrays = cached_arrays(name, files, options, list(parts), decode, folder=cache, progress=progress)
    y_train, y_test = (np.array([label for _, label in samples], np.int64) for samples in parts.values())
    return Source(name, arrays["x_train"], y_train, arrays["x_test"], y_test, listing.class_names)


def _listing(name: str, root: Path, train_list: str | None, test_list: str | None, test: str | None) -> Listing:
    if (train_list is None) != (test_list is None):
        raise ArgumentError("train_list and test_list: both or neither are needed")
    if train_list is not None and test_list is not None:
        for file in (train_list, test_list):
            if not (root / file).is_file():
                raise DataError(f"{name}: {root / file} is missing; put the list there, a path and a label a line")
        return list_files(root, root / train_list, root / test_list)
    if not (root / "train").is_dir():
        raise DataError(
            f"{name}: {root / 'train'} is missing; put the images in {root}/train/CLASS/ and {root}/val/CLASS/"
        )
    return list_folders(root, test)


SPEC = SourceSpec(
    load,
    "image files",
    "your own images, one folder per class or with list files",
    "ROOT/train/CLASS and ROOT/val/CLASS, or the lists in ROOT",
)
IMAGENET_LT_SPEC = SourceSpec(
    load_imagenet_lt,
    "ImageNet-LT",
    "ImageNet's images as its two list files name them, 1,000 classes",
    "ROOT/train, ROOT/val and the lists in ROOT",
)
# The course that made it states no sum. Size and SHA-256 of the archive as others hold it:
# https://huggingface.co/datasets/cnak47/cv-datasets/commit/6931f66584bf3a507711a644f6803fa5f419faf1
TINY_IMAGENET_SPEC = SourceSpec(
    load_tiny_imagenet,
    "Tiny-ImageNet-200",
    "120,000 colour images of 64x64, 200 classes",
    "ROOT/tiny-imagenet-200, ROOT",
    Download(
        (
            RemoteFile(
                "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
                248_100_043,
                "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
            ),
        ),
        folder="tiny-imagenet-200",
    ),
)
