"""CIFAR-10 and CIFAR-100 (fine labels) from the binary edition, as a folder or straight from its tar.gz."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from fedrela.data.cache import BLOCK, NewArray, PathOrNone, Progress, cached_arrays
from fedrela.data.checks import first
from fedrela.data.sources.base import DataSize, Source, SourceSpec, archive
from fedrela.data.sources.labels import class_names_from_lines
from fedrela.data.sources.reading import read_exactly, reading, root_folder
from fedrela.errors import DataError

PIXELS = 3 * 32 * 32
LONGEST_NAMES = 1 << 16
SLACK = 1 << 20  # bytes of an archive besides its records
ARRAYS = ("x_train", "y_train", "x_test", "y_test", "names")


@dataclass(frozen=True)
class Edition:
    """What the binary edition of one CIFAR looks like: `train` and `test` map file names to their records."""

    name: str
    folder: str
    archive: str
    pickled: tuple[str, ...]
    train: dict[str, int]
    test: dict[str, int]
    names: str
    label_bytes: int
    classes: int

    @property
    def record_bytes(self) -> int:
        """Size of one record: the labels (the one we use is the last), then the pixels, channels first."""
        return self.label_bytes + PIXELS


CIFAR10 = Edition(
    "cifar10", "cifar-10-batches-bin", "cifar-10-binary.tar.gz", ("cifar-10-batches-py", "cifar-10-python.tar.gz"),
    {f"data_batch_{i}.bin": 10_000 for i in range(1, 6)}, {"test_batch.bin": 10_000}, "batches.meta.txt", 1, 10,
)  # fmt: skip
CIFAR100 = Edition(
    "cifar100", "cifar-100-binary", "cifar-100-binary.tar.gz", ("cifar-100-python", "cifar-100-python.tar.gz"),
    {"train.bin": 50_000}, {"test.bin": 10_000}, "fine_label_names.txt", 2, 100,
)  # fmt: skip


def load_cifar10(root: PathOrNone = None, *, cache: PathOrNone = None, progress: Progress | None = None) -> Source:
    """Return CIFAR-10 from ``cifar-10-batches-bin`` or ``cifar-10-binary.tar.gz`` in `root`, or from `root` itself."""
    return load_edition(CIFAR10, root, cache, progress)


def load_cifar100(root: PathOrNone = None, *, cache: PathOrNone = None, progress: Progress | None = None) -> Source:
    """Return CIFAR-100 from ``cifar-100-binary`` or ``cifar-100-binary.tar.gz`` in `root`, or from `root` itself."""
    return load_edition(CIFAR100, root, cache, progress)


def load_edition(
    edition: Edition, root: PathOrNone, cache: PathOrNone = None, progress: Progress | None = None
) -> Source:
    """Decode an edition once into the cache, and return it from there."""
    place = _find(edition, root_folder(root))
    wanted = [*edition.train, *edition.test, edition.names]
    files = [place / name for name in wanted] if place.is_dir() else [place]
    for file in files:
        if not file.is_file():
            get = f"`fedrela data fetch {edition.name}` gets the whole set"
            raise DataError(f"{edition.name}: {file} is missing; {get}")
    counts = [*edition.train.values(), *edition.test.values()]
    options = {"reader": "cifar", "packed": place.is_file(), "records": counts}

    def decode(new: NewArray) -> None:
        _decode(edition, place, new, progress)

    arrays = cached_arrays(edition.name, files, options, ARRAYS, decode, folder=cache, progress=progress)
    names = class_names_from_lines(arrays["names"].tobytes(), edition.classes, f"{place}: {edition.names}")
    return Source(edition.name, arrays["x_train"], arrays["y_train"], arrays["x_test"], arrays["y_test"], names)


def _find(edition: Edition, root: Path) -> Path:
    for place in (root / edition.folder, root / edition.archive):
        if place.exists():
            return place
    if root.is_file() or any((root / name).is_file() for name in edition.train):
        return root
    get = f"put {edition.archive} or its folder {edition.folder} there, or run `fedrela data fetch {edition.name}`"
    for name in edition.pickled:
        if (root / name).exists():
            why = "is the pickled Python edition, and pickles are never read"
            raise DataError(f"{edition.name}: {root / name} {why}; use the binary edition: {get}")
    raise DataError(f"{edition.name}: no binary edition in {root}; {get}")


def _decode(edition: Edition, place: Path, new: NewArray, progress: Progress | None) -> None:
    targets = {}
    for part, counts in (("train", edition.train), ("test", edition.test)):
        total = sum(counts.values())
        x, y = new(f"x_{part}", (total, 3, 32, 32), np.uint8), new(f"y_{part}", (total,), np.int64)
        for name, end in zip(counts, accumulate(counts.values()), strict=True):
            own = slice(end - counts[name], end)
            targets[name] = (x[own], y[own])
    done, every = 0, sum(len(y) for _, y in targets.values())
    with reading(place, f"binary edition of {edition.name}"):
        for name, size, stream in _open_members(edition, place):
            where = f"{place}: {name}"
            if name == edition.names:
                text = read_exactly(stream, min(size, LONGEST_NAMES), where)
                class_names_from_lines(text, edition.classes, where)
                new("names", (len(text),), np.uint8)[:] = np.frombuffer(text, np.uint8)
                continue
            _decode_records(edition, stream, size, *targets[name], where)
            done += len(targets[name][1])
            if progress:
                progress(done, every, f"decoding {edition.name}")


def _decode_records(
    edition: Edition, stream: IO[bytes], size: int, x: NDArray[np.uint8], y: NDArray[np.int64], where: str
) -> None:
    expected = len(y) * edition.record_bytes
    if size != expected:
        raise DataError(f"{where}: expected {expected} bytes, got {size}; get it again")
    rows = np.frombuffer(read_exactly(stream, size, where), np.uint8).reshape(len(y), edition.record_bytes)
    y[:] = rows[:, edition.label_bytes - 1]
    if (i := first(y >= edition.classes)) is not None:
        raise DataError(f"{where}: record {i}: expected a label from 0 to {edition.classes - 1}, got {y[i]}")
    x[:] = rows[:, edition.label_bytes :].reshape(x.shape)


class LimitedGzip(gzip.GzipFile):
    """An archive of which a limited number of bytes is unpacked: a small one may expand without end."""

    def __init__(self, path: Path, limit: int) -> None:
        super().__init__(path, "rb")
        self._path, self._left = path, limit

    def read(self, size: int | None = -1) -> bytes:
        """Return up to `size` bytes."""
        data = super().read(size)
        self._left -= len(data)
        if self._left < 0:
            raise DataError(f"{self._path}: unpacks to far more than the data set; get the archive again")
        return data


def _open_members(edition: Edition, place: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yield name, size and stream of every file of the edition; a stream must be read before the next is asked for."""
    wanted = [*edition.train, *edition.test, edition.names]
    if place.is_dir():
        for name in wanted:
            with (place / name).open("rb") as file:
                yield name, (place / name).stat().st_size, file
        return
    names = {f"{edition.folder}/{name}": name for name in wanted}
    missing = set(names)
    records = sum(edition.train.values()) + sum(edition.test.values())
    limit = 2 * records * edition.record_bytes + SLACK
    with LimitedGzip(place, limit) as unpacked, tarfile.open(fileobj=unpacked, mode="r|", bufsize=BLOCK) as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.name in names and member.isreg() else None
            if stream is None:
                continue
            if member.name not in missing:
                raise DataError(f"{place}: {member.name} occurs twice; get the archive again")
            missing.remove(member.name)
            yield names[member.name], member.size, stream
            if not missing:
                return
    raise DataError(f"{place}: {min(missing)} is not in it; get the archive again")


# The CIFAR page links the binary editions: https://www.cs.toronto.edu/~kriz/cifar.html (it gives MD5 sums).
# Sizes and SHA-256 of the same files: cifar10.txt and cifar100.txt in
# https://github.com/tensorflow/datasets/tree/333639b/tensorflow_datasets/url_checksums
CIFAR10_SPEC = SourceSpec(
    load_cifar10,
    "CIFAR-10",
    "60,000 colour images of 32x32, 10 classes; the binary edition",
    "ROOT/cifar-10-batches-bin, ROOT/cifar-10-binary.tar.gz",
    archive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        170_052_171,
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        folder="cifar-10-batches-bin",
    ),
    DataSize(50_000, 10_000, 10, (3, 32, 32)),
    lambda root: _find(CIFAR10, root_folder(root)),
)
CIFAR100_SPEC = SourceSpec(
    load_cifar100,
    "CIFAR-100",
    "60,000 colour images of 32x32, 100 classes; the binary edition",
    "ROOT/cifar-100-binary, ROOT/cifar-100-binary.tar.gz",
    archive(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        168_513_733,
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        folder="cifar-100-binary",
    ),
    DataSize(50_000, 10_000, 100, (3, 32, 32)),
    lambda root: _find(CIFAR100, root_folder(root)),
)
