"""CIFAR-10 and CIFAR-100 (fine labels) from the binary edition, as a folder or straight from its tar.gz."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from fedrela.data.cache import NewArray, PathOrNone, Progress, cached_arrays
from fedrela.data.checks import first
from fedrela.data.sources.base import DataSize, Source, SourceSpec, archive
from fedrela.data.sources.file_readers import read_exactly, reading, root_folder
from fedrela.data.sources.labels import class_names_from_lines
from fedrela.errors import DataError
from fedrela.files import digest_file
from fedrela.files.reading import BLOCK

PIXELS = 3 * 32 * 32
LONGEST_NAMES = 1 << 16
ARRAYS = ("x_train", "y_train", "x_test", "y_test", "names")


@dataclass(frozen=True)
class Edition:
    """The files of the binary edition of one CIFAR: `train` and `test` map file names to their number of records."""

    name: str
    folder: str
    archive: str
    pickled: tuple[str, ...]  # files of the Python edition, which is refused
    train: dict[str, int]
    test: dict[str, int]
    names: str
    label_bytes: int
    classes: int
    sha256: str  # of the archive, as published

    @property
    def record_bytes(self) -> int:
        """Size of one record: the labels (the one we use is the last), then the pixels, channels first."""
        return self.label_bytes + PIXELS


# The CIFAR page links the binary editions: https://www.cs.toronto.edu/~kriz/cifar.html (it gives MD5 sums).
# Sizes and SHA-256 of the same files: cifar10.txt and cifar100.txt in
# https://github.com/tensorflow/datasets/tree/333639b/tensorflow_datasets/url_checksums
CIFAR10 = Edition(
    "cifar10", "cifar-10-batches-bin", "cifar-10-binary.tar.gz", ("cifar-10-batches-py", "cifar-10-python.tar.gz"),
    {f"data_batch_{i}.bin": 10_000 for i in range(1, 6)}, {"test_batch.bin": 10_000}, "batches.meta.txt", 1, 10,
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)  # fmt: skip
CIFAR100 = Edition(
    "cifar100", "cifar-100-binary", "cifar-100-binary.tar.gz", ("cifar-100-python", "cifar-100-python.tar.gz"),
    {"train.bin": 50_000}, {"test.bin": 10_000}, "fine_label_names.txt", 2, 100,
    "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
)  # fmt: skip


def load_edition(
    edition: Edition, root: PathOrNone, cache: PathOrNone = None, progress: Progress | None = None
) -> Source:
    """Return an edition from its folder or archive in `root`, or from `root` itself, decoded once into the cache."""
    path = _find(edition, root_folder(root))
    names = [*edition.train, *edition.test, edition.names]
    files = [path / name for name in names] if path.is_dir() else [path]
    for file in files:
        if not file.is_file():
            get = f"`fedrela data fetch {edition.name}` downloads the whole data set"
            raise DataError(f"{edition.name}: {file} is missing; {get}")
    counts = [*edition.train.values(), *edition.test.values()]
    options = {"reader": "cifar", "packed": path.is_file(), "records": counts}

    def decode(new: NewArray) -> None:
        _decode(edition, path, new, progress)

    arrays = cached_arrays(edition.name, files, options, ARRAYS, decode, folder=cache, progress=progress)
    classes = class_names_from_lines(arrays["names"].tobytes(), edition.classes, f"{path}: {edition.names}")
    return Source(edition.name, arrays["x_train"], arrays["y_train"], arrays["x_test"], arrays["y_test"], classes)


def _find(edition: Edition, root: Path) -> Path:
    for path in (root / edition.folder, root / edition.archive):
        if path.exists():
            return path
    if root.is_file() or any((root / name).is_file() for name in edition.train):
        return root
    get = f"put {edition.archive} or its folder {edition.folder} there, or run `fedrela data fetch {edition.name}`"
    for name in edition.pickled:
        if (root / name).exists():
            why = "is the pickled Python edition, and pickles are never read"
            raise DataError(f"{edition.name}: {root / name} {why}; use the binary edition: {get}")
    raise DataError(f"{edition.name}: no binary edition in {root}; {get}")


def _decode(edition: Edition, path: Path, new: NewArray, progress: Progress | None) -> None:
    targets = {}
    for part, counts in (("train", edition.train), ("test", edition.test)):
        size = sum(counts.values())
        x, y = new(f"x_{part}", (size, 3, 32, 32), np.uint8), new(f"y_{part}", (size,), np.int64)
        for name, end in zip(counts, accumulate(counts.values()), strict=True):
            records = slice(end - counts[name], end)
            targets[name] = (x[records], y[records])
    done, total = 0, sum(len(y) for _, y in targets.values())
    with reading(path, f"binary edition of {edition.name}"):
        for name, size, stream in _open_members(edition, path):
            where = f"{path}: {name}"
            if name == edition.names:
                text = read_exactly(stream, min(size, LONGEST_NAMES), where)
                class_names_from_lines(text, edition.classes, where)
                new("names", (len(text),), np.uint8)[:] = np.frombuffer(text, np.uint8)
                continue
            _decode_records(edition, stream, size, *targets[name], where)
            done += len(targets[name][1])
            if progress:
                progress(done, total, f"decoding {edition.name}")


def _decode_records(
    edition: Edition, stream: IO[bytes], size: int, x: NDArray[np.uint8], y: NDArray[np.int64], where: str
) -> None:
    expected = len(y) * edition.record_bytes
    if size != expected:
        raise DataError(f"{where}: expected {expected} bytes, got {size}; download it again")
    rows = np.frombuffer(read_exactly(stream, size, where), np.uint8).reshape(len(y), edition.record_bytes)
    y[:] = rows[:, edition.label_bytes - 1]
    if (i := first(y >= edition.classes)) is not None:
        raise DataError(f"{where}: record {i}: expected a label from 0 to {edition.classes - 1}, got {y[i]}")
    x[:] = rows[:, edition.label_bytes :].reshape(x.shape)


def _open_members(edition: Edition, path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yield name, size and stream of every file of the edition; read a stream before you request the next."""
    files = [*edition.train, *edition.test, edition.names]
    if path.is_dir():
        for name in files:
            with (path / name).open("rb") as file:
                yield name, (path / name).stat().st_size, file
        return
    if (actual := digest_file(path)) != edition.sha256:
        what = f"expected the published SHA-256 {edition.sha256}, got {actual}"
        raise DataError(f"{path}: {what}; remove it and run `fedrela data fetch {edition.name}`")
    names = {f"{edition.folder}/{name}": name for name in files}
    with tarfile.open(path, "r|gz", bufsize=BLOCK) as tar:
        for member in tar:
            if member.name in names and (stream := tar.extractfile(member)):
                yield names[member.name], member.size, stream


def _spec(edition: Edition, label: str, size: int) -> SourceSpec:
    def load(root: PathOrNone = None, *, cache: PathOrNone = None, progress: Progress | None = None) -> Source:
        return load_edition(edition, root, cache, progress)

    return SourceSpec(
        load,
        label,
        f"60,000 colour images of 32x32, {edition.classes} classes; the binary edition",
        f"ROOT/{edition.folder}, ROOT/{edition.archive}",
        archive(f"https://www.cs.toronto.edu/~kriz/{edition.archive}", size, edition.sha256, edition.folder),
        DataSize(50_000, 10_000, edition.classes, (3, 32, 32)),
        lambda root: _find(edition, root_folder(root)),
    )


CIFAR10_SPEC = _spec(CIFAR10, "CIFAR-10", 170_052_171)
CIFAR100_SPEC = _spec(CIFAR100, "CIFAR-100", 168_513_733)
