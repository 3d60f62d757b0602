"""Fashion-MNIST from its four IDX files, gzip or not."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedrela.data.cache import NewArray, PathOrNone, Progress, cached_arrays
from fedrela.data.sources.base import DataSize, Download, RemoteFile, Source, SourceSpec
from fedrela.data.sources.file_readers import DEFLATE_LIMIT, Readable, read_exactly, reading, root_folder
from fedrela.errors import DataError

PARTS = ("train", "t10k")
KINDS = [f"{part}-{kind}" for part in PARTS for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
CLASS_NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
UNSIGNED_BYTE = 8


def load(root: PathOrNone = None, *, cache: PathOrNone = None, progress: Progress | None = None) -> Source:
    """Return Fashion-MNIST, images mapped into memory.

    Files are looked for in ``root/FashionMNIST/raw`` (torchvision's layout) and ``root``; without `root`, in ``data``
    and then where Debian's package dataset-fashion-mnist installs them. A plain file is mapped in place; a gzip file
    is decoded once into the cache.
    """
    folder = _find(root)
    paths = {kind: _file(folder, kind) for kind in KINDS}
    x_train, x_test = (_images(paths[f"{part}-images-idx3-ubyte"], cache, progress) for part in PARTS)
    y_train = _labels(paths["train-labels-idx1-ubyte"], len(x_train))
    y_test = _labels(paths["t10k-labels-idx1-ubyte"], len(x_test))
    return Source("fashion_mnist", x_train, y_train, x_test, y_test, CLASS_NAMES)


def _find(root: PathOrNone) -> Path:
    base = root_folder(root)
    folders = [base / "FashionMNIST" / "raw", base] + ([DEBIAN] if root is None else [])
    for folder in folders:
        if any((folder / f"{name}{packed}").is_file() for name in KINDS for packed in ("", ".gz")):
            return folder
    ways = "run `fedrela data fetch fashion_mnist` or install Debian's package dataset-fashion-mnist"
    put = f"put the four files train-images-idx3-ubyte.gz ... in {folders[0]}"
    raise DataError(f"fashion_mnist: no IDX file in {' or '.join(map(str, folders))}; {put}, {ways}")


def _file(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    get = "`fedrela data fetch fashion_mnist` downloads it"
    raise DataError(f"fashion_mnist: {folder / name} or {name}.gz is missing; {get}")


def _images(path: Path, cache: PathOrNone, progress: Progress | None) -> NDArray[np.uint8]:
    def decode(new: NewArray) -> None:
        images = _unzip_idx(path, 3)
        new("images", images.shape, np.uint8)[:] = images
        if progress:
            progress(images.size, images.size, f"decoding {path.name}")

    if path.suffix == ".gz":
        options = {"reader": "idx"}
        arrays = cached_arrays("fashion_mnist", [path], options, ["images"], decode, folder=cache, progress=progress)
        images = arrays["images"]
    else:
        images = _map_idx(path, 3)
    if images.shape[1:] != (28, 28):
        raise DataError(f"{path}: expected images of 28x28, got {images.shape[1:]}")
    return images[:, np.newaxis]


def _labels(path: Path, number: int) -> NDArray[np.int64]:
    raw = _unzip_idx(path, 1) if path.suffix == ".gz" else _map_idx(path, 1)
    if len(raw) != number:
        raise DataError(f"{path}: expected {number} labels, one per image, got {len(raw)}")
    if raw.max() >= len(CLASS_NAMES):
        what = f"expected labels from 0 to {len(CLASS_NAMES) - 1}, got {raw.max()} at position {raw.argmax()}"
        raise DataError(f"{path}: {what}")
    return raw.astype(np.int64)


def _map_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Map a plain IDX file into memory, read-only."""
    with reading(path, "IDX file"):
        with path.open("rb") as file:
            shape = _read_header(file, dimensions, path)
            offset = file.tell()
        expected, size = offset + math.prod(shape), path.stat().st_size
        if size != expected:
            raise DataError(f"{path}: expected {expected} bytes by its header {shape}, got {size}")
        return np.memmap(path, np.uint8, "r", offset, shape)


def _unzip_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Decode a gzip IDX file."""
    with reading(path, "gzip IDX file"), gzip.open(path, "rb") as file:
        shape = _read_header(file, dimensions, path)
        total, most = math.prod(shape), path.stat().st_size * DEFLATE_LIMIT
        if total > most:
            raise DataError(f"{path}: its header claims {total} bytes, but a file of this size holds {most} at most")
        values = np.frombuffer(read_exactly(file, total, path), np.uint8).reshape(shape)
        if file.read(1):
            raise DataError(f"{path}: continues after the {total} bytes that its header {shape} announces")
    return values


def _read_header(file: Readable, dimensions: int, path: Path) -> tuple[int, ...]:
    magic = read_exactly(file, 4, path)
    expected = bytes((0, 0, UNSIGNED_BYTE, dimensions))
    if magic != expected:
        what = f"not an IDX file of {dimensions} dimensions"
        raise DataError(f"{path}: {what}: starts with {magic.hex()}, not {expected.hex()}")
    sizes = np.frombuffer(read_exactly(file, 4 * dimensions, path), ">u4")
    shape = tuple(int(size) for size in sizes)
    if 0 in shape:
        raise DataError(f"{path}: is empty: its header says {shape}")
    return shape


# The authors' README links the files at a URL without https and says that they are also in its repository,
# under data/fashion: https://github.com/zalandoresearch/fashion-mnist#get-the-data (it gives MD5 sums).
# Sizes and SHA-256 of the same files:
# https://github.com/tensorflow/datasets/blob/333639b/tensorflow_datasets/url_checksums/fashion_mnist.txt
BASE_URL = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"

FILES = (
    ("train-images-idx3-ubyte.gz", 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
    ("train-labels-idx1-ubyte.gz", 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
    ("t10k-images-idx3-ubyte.gz", 4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
    ("t10k-labels-idx1-ubyte.gz", 5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
)
SPEC = SourceSpec(
    load,
    "Fashion-MNIST",
    "70,000 grey images of 28x28, 10 classes",
    "ROOT/FashionMNIST/raw, ROOT, Debian's package dataset-fashion-mnist",
    Download(tuple(RemoteFile(BASE_URL + name, size, sha256) for name, size, sha256 in FILES), path="FashionMNIST/raw"),
    DataSize(60_000, 10_000, 10, (1, 28, 28)),
    _find,
)
