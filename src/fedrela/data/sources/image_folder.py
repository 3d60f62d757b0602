"""Data sets of image files in class folders or list files, Tiny-ImageNet and ImageNet-LT among them.

Images are decoded with Pillow to squares of one size.
"""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrela.data.cache import NewArray, PathOrNone, Progress, cached_arrays
from fedrela.data.sources.base import DataSize, Source, SourceSpec, archive
from fedrela.data.sources.file_readers import inside, read_text, reading, root_folder
from fedrela.data.sources.labels import MOST_CLASSES, check_class_names
from fedrela.errors import ArgumentError, DataError
from fedrela.options import Option, checked
from fedrela.text import one_line

SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".ppm", ".pgm"))
UNREAD_SUFFIXES = frozenset((".tif", ".tiff", ".dcm", ".heic", ".avif", ".jp2", ".svs", ".nii", ".npy"))
ANNOTATIONS = "val_annotations.txt"
SIZE = Option("size", int, 64, "pixels of a side", ge=1, le=4096)
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "PPM", "WEBP")
MODES = {1: "L", 3: "RGB"}
MAX_PIXELS = 89_478_485  # above this Pillow warns of a decompression bomb; we raise an error
DEEP_MODES = ("I", "I;16", "I;16L", "I;16B", "F")  # Pillow would clip, not scale, their values
BLOCK_IMAGES = 512


@dataclass(frozen=True)
class Listing:
    """Image files of training and test set with their labels, and the names of the classes."""

    train: list[tuple[Path, int]]
    test: list[tuple[Path, int]]
    class_names: tuple[str, ...]


def load(
    root: PathOrNone = None,
    *,
    train_list: str | None = None,
    test_list: str | None = None,
    test: str | None = None,
    size: int = 64,
    channels: int = 3,
    cache: PathOrNone = None,
    progress: Progress | None = None,
) -> Source:
    """Return a data set of image files, decoded and resized once into the cache.

    `root` has ``train/CLASS/*.jpg`` and ``val`` or ``test`` (see `list_folders`), or two text files with a path and a
    label per line, as ImageNet-LT has them (see `list_files`). Every image becomes ``size x size``, in colour (3
    `channels`) or grey (1).
    """
    check_form(size, channels)
    base = root_folder(root)
    if (train_list is None) != (test_list is None):
        raise ArgumentError("expected both train_list and test_list, or neither", argument="train_list")
    if train_list is not None and test_list is not None:
        listing = list_files(base, train_list, test_list)
    else:
        listing = list_folders(base, test, f"put the images in {base}/train/CLASS/ and {base}/val/CLASS/")
    return _load("image_folder", base, listing, size, channels, cache, progress)


def load_tiny_imagenet(
    root: PathOrNone = None, *, size: int = 64, cache: PathOrNone = None, progress: Progress | None = None
) -> Source:
    """Return Tiny-ImageNet from ``root/tiny-imagenet-200`` or `root`; its annotated ``val`` part is the test set."""
    check_form(size)
    base = _find_tiny(root)
    return _load("tiny_imagenet", base, list_folders(base, "val", ""), size, 3, cache, progress)


def _find_tiny(root: PathOrNone) -> Path:
    base = root_folder(root)
    folder = base / "tiny-imagenet-200" if (base / "tiny-imagenet-200").is_dir() else base
    if not (folder / "train").is_dir():
        put = f"put the unpacked folder tiny-imagenet-200 in {base}, or run `fedrela data fetch tiny_imagenet`"
        raise DataError(f"{folder / 'train'} is missing; {put}")
    return folder


def load_imagenet_lt(
    root: PathOrNone = None,
    *,
    train_list: str = "ImageNet_LT_train.txt",
    test_list: str = "ImageNet_LT_test.txt",
    size: int = 64,
    cache: PathOrNone = None,
    progress: Progress | None = None,
) -> Source:
    """Return ImageNet-LT: ImageNet's ``train`` and ``val`` folders in `root`, and the two lists beside them."""
    check_form(size)
    base = root_folder(root)
    return _load("imagenet_lt", base, list_files(base, train_list, test_list), size, 3, cache, progress)


def _load(
    name: str, root: Path, listing: Listing, size: int, channels: int, cache: PathOrNone, progress: Progress | None
) -> Source:
    parts = {"x_train": listing.train, "x_test": listing.test}

    def decode(new: NewArray) -> None:
        for part, samples in parts.items():
            out = new(part, (len(samples), channels, size, size), np.uint8)
            decode_images([path for path, _ in samples], out, progress, f"decoding {name} {part[2:]}")

    options = {"reader": "images", "size": size, "channels": channels, "train": len(listing.train)}
    options["pillow"] = version("pillow")  # versions may round pixels differently
    files = [path for samples in parts.values() for path, _ in samples]
    check_files(root, files)
    arrays = cached_arrays(name, files, options, list(parts), decode, folder=cache, progress=progress)
    y_train, y_test = (np.array([label for _, label in samples], np.int64) for samples in parts.values())
    is_once = len(set(files)) == len(files)  # a list may name an image twice
    ids = [tuple(path.relative_to(root).as_posix() for path, _ in samples if is_once) for samples in parts.values()]
    x_train, x_test = arrays["x_train"], arrays["x_test"]
    return Source(name, x_train, y_train, x_test, y_test, listing.class_names, ids_train=ids[0], ids_test=ids[1])


def check_files(root: Path, files: Sequence[Path]) -> None:
    """Refuse pipes, devices, and links that point out of `root`."""
    top, folders = Path(os.path.realpath(root)), {path.parent for path in files}
    real = {folder: Path(os.path.realpath(folder)) for folder in folders}
    for path in files:
        target = Path(os.path.realpath(path)) if path.is_symlink() else real[path.parent]
        if not target.is_relative_to(top):
            raise DataError(f"{path}: a link points out of {root}; put the images themselves there")
        if path.exists() and not path.is_file():
            raise DataError(f"{path}: expected an image, got a folder, a pipe or a device")


def check_form(size: int, channels: int = 3) -> None:
    """Raise if images cannot have this size or number of channels."""
    checked(SIZE, size)
    if channels not in MODES:
        raise ArgumentError(f"expected 1 (grey) or 3 (colour), got {channels!r}", argument="channels")


def list_folders(root: Path, test: str | None, put: str) -> Listing:
    """List ``root/train/CLASS/*`` (or ``CLASS/images/*``, as Tiny-ImageNet has it) and the test images.

    Classes are the folders of ``root/train`` in the order of their names. Test images are in ``root/TEST/CLASS/*``, or
    in ``root/TEST/images`` with a ``val_annotations.txt`` of name and class per line. TEST is `test`; by default it is
    "test" if that has folders of these classes, else "val". `put` is the advice if there is no training set.
    """
    if not (root / "train").is_dir():
        raise DataError(f"{root / 'train'} is missing; {put}")
    names = check_class_names(_folders(root / "train"), str(root / "train"))
    if not names:
        raise DataError(f"{root / 'train'}: no class folder; put the images in {root / 'train'}/CLASS/")
    number = {name: c for c, name in enumerate(names)}
    train = [(path, number[name]) for name in names for path in _images(root / "train" / name, required=True)]
    has_test = any((root / "test" / name).is_dir() for name in names)
    folder = root / (test or ("test" if has_test else "val"))
    if os.path.lexists(folder / ANNOTATIONS):
        return Listing(train, _annotated(folder, number), names)
    test_names = _folders(folder)
    for name in test_names:
        if name not in number:
            raise DataError(f"{folder / name}: {root / 'train'} has no class of this name")
    held_out = [(path, number[name]) for name in test_names for path in _images(folder / name)]
    if not held_out:
        put = f"put them in {folder}/CLASS/, or choose another folder with the option test"
        raise DataError(f"{folder}: no test image; {put}")
    return Listing(train, held_out, names)


def list_files(root: Path, train_list: str, test_list: str) -> Listing:
    """List the images in two list files in `root`, each line a path below it and a label.

    A class is named after the folder of its training images if each class has its own, else by its number.
    """
    train, test = _read_list(root, root / train_list), _read_list(root, root / test_list)
    classes = max(label for _, label in train) + 1
    if classes > MOST_CLASSES:
        raise DataError(f"{root / train_list}: expected labels below {MOST_CLASSES}, got {classes - 1}")
    for number, (_, label) in enumerate(test, 1):
        if label >= classes:
            where = f"{root / test_list}: image {number}"
            raise DataError(f"{where}: label {label}, but the largest training label is {classes - 1}")
    absent = set(range(classes)) - {label for _, label in train}
    if absent:
        what = f"class {min(absent)} has no image, but class {classes - 1} has"
        raise DataError(f"{root / train_list}: {what}; labels must be 0 to C - 1")
    return Listing(train, test, _names_of(train, classes))


def _lines(path: Path, kind: str, form: str) -> Iterator[tuple[str, str]]:
    """Yield position and text of every line that is not blank; there must be one."""
    lines = [(f"{path}:{i}", line) for i, line in enumerate(read_text(path, kind).splitlines(), 1) if line.strip()]
    if not lines:
        raise DataError(f"{path}: names no image; expected {form} per line")
    yield from lines


def _check_list(root: Path, path: Path) -> None:
    """Refuse a pipe, a device, and a link, also as one of its folders, that leads out of `root`."""
    named_below = Path(os.path.abspath(path)).is_relative_to(os.path.abspath(root))
    is_below = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    if (named_below or path.is_symlink()) and not is_below:
        raise DataError(f"{path}: a link leads out of {root}; put the list itself there")
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: expected a list, found a folder, a pipe or a device")


def _read_list(root: Path, path: Path) -> list[tuple[Path, int]]:
    _check_list(root, path)
    if not path.is_file():
        raise DataError(f"{path} is missing; put the list there, a path and a label per line")
    samples = []
    for where, line in _lines(path, "list of images", "a path and a label"):
        fields = line.rsplit(maxsplit=1)
        if len(fields) != 2 or not (fields[1].isascii() and fields[1].isdigit() and len(fields[1]) < 7):
            raise DataError(f"{where}: expected a path and a label, got {line.strip()[:80]!r}")
        samples.append((inside(root, fields[0].strip(), where), int(fields[1])))
    return samples


def _names_of(samples: Sequence[tuple[Path, int]], classes: int) -> tuple[str, ...]:
    folders: list[set[str]] = [set() for _ in range(classes)]
    for path, label in samples:
        folders[label].add(path.parent.name)
    single = [min(names) for names in folders if len(names) == 1]
    usable = len(single) == classes == len(set(single)) and all(name.isprintable() for name in single)
    return tuple(single) if usable else tuple(str(c) for c in range(classes))


def _annotated(folder: Path, number: dict[str, int]) -> list[tuple[Path, int]]:
    samples = []
    _check_list(folder.parent, folder / ANNOTATIONS)
    for where, line in _lines(folder / ANNOTATIONS, "list of names and classes", "a file name and a class"):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) < 2 or fields[1] not in number:
            raise DataError(f"{where}: expected a file name, a tab and a class of the training set, got {line[:80]!r}")
        samples.append((inside(folder / "images", fields[0], where), number[fields[1]]))
    return samples


def _names(folder: Path, kind: str) -> list[str]:
    with reading(folder, kind):
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def _folders(folder: Path) -> list[str]:
    return [name for name in _names(folder, "folder of class folders") if (folder / name).is_dir()]


def _images(folder: Path, required: bool = False) -> list[Path]:
    """Return the images of a class folder, or of ``images`` in it; raise if others would be left out."""
    names = _names(folder, "folder of images")
    images = [name for name in names if _suffix(name) in SUFFIXES]
    if "images" in names and not images and (folder / "images").is_dir():
        return _images(folder / "images", required)
    for name in names:
        if _suffix(name) in UNREAD_SUFFIXES or (folder / name).is_dir():
            what = f"expected images as {', '.join(sorted(SUFFIXES))}, none in subfolders; convert, move or remove it"
            raise DataError(f"{folder / name}: {what}")
    if required and not images:
        put = f"remove the folder or put {', '.join(sorted(SUFFIXES))} files in it"
        raise DataError(f"{folder}: no image of this class; {put}")
    return [folder / name for name in images]


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def decode_images(paths: Sequence[Path], out: NDArray[np.uint8], progress: Progress | None, what: str) -> None:
    """Decode `paths` into `out`, ``(n, channels, size, size)``, on every core: Pillow releases the GIL."""
    _, channels, size, _ = out.shape

    def decode(i: int) -> None:
        out[i] = decode_image(paths[i], size, channels)

    with quiet_about_size(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(paths), BLOCK_IMAGES):  # in blocks, so that a broken image stops the work soon
            stop = min(start + BLOCK_IMAGES, len(paths))
            for _ in pool.map(decode, range(start, stop)):
                pass
            if progress:
                progress(stop, len(paths), what)


@contextlib.contextmanager
def quiet_about_size() -> Iterator[None]:
    """Silence Pillow's warning about large images: `decode_image` refuses them."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


def decode_image(path: Path, size: int, channels: int) -> NDArray[np.uint8]:
    """Return an image file as `square` does; a JPEG over twice as large as necessary is decoded at a fraction of it."""
    from PIL import Image

    try:
        with Image.open(path, formats=FORMATS) as image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise DataError(f"{path}: expected at most {MAX_PIXELS} pixels, got {width}x{height}")
            image.draft(None, (2 * size, 2 * size))
            return square(image, size, channels, path)
    except DataError:
        raise
    except Exception as error:  # Pillow raises many kinds of exception for broken files
        raise DataError(f"{path}: not a readable image: {one_line(error, 120)}") from error


def square(image: Any, size: int, channels: int, where: object) -> NDArray[np.uint8]:
    """Return the centre square of an image, resized to `size`, as ``(channels, size, size)``.

    This is the usual "resize the shorter side, crop the centre" in one step, bilinear with antialiasing. An image of
    this size keeps its pixels; transparency is dropped.
    """
    from PIL.Image import Resampling
    from PIL.ImageOps import fit

    if image.mode in DEEP_MODES:
        raise DataError(f"{where}: expected 8 bits per channel, got mode {image.mode}; convert it first")
    opaque = image.convert("RGBA") if "transparency" in image.info else image
    fitted = fit(opaque.convert(MODES[channels]), (size, size), Resampling.BILINEAR)
    return np.asarray(fitted).reshape(size, size, channels).transpose(2, 0, 1)


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a picture, ``(height, width)`` in grey or ``(height, width, 3)`` in colour, as a PNG file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


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
    size=DataSize(115_846, 50_000, 1000, (3, 224, 224)),
)
# The course that published it gives no checksum. Size and SHA-256 of the archive, from a mirror:
# https://huggingface.co/datasets/cnak47/cv-datasets/commit/6931f66584bf3a507711a644f6803fa5f419faf1
TINY_IMAGENET_SPEC = SourceSpec(
    load_tiny_imagenet,
    "Tiny-ImageNet-200",
    "120,000 colour images of 64x64, 200 classes",
    "ROOT/tiny-imagenet-200, ROOT",
    archive(
        "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
        248_100_043,
        "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
        folder="tiny-imagenet-200",
    ),
    find=_find_tiny,
)
