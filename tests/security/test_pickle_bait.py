"""B16: twenty files with a pickle in them, given to every reader: each ends in one error line and nothing runs.

The readers run in a process of their own whose audit hook notes every look-up of a class by a pickle, every import,
execution and compilation of code and every new process. Before the hook is armed, each reader gets the same twenty
containers around a harmless pickle, so that whatever it needs is imported. A control shows that each bait bites: read
the careless way, it is noticed.
"""

from __future__ import annotations

import ast
import contextlib
import gzip
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedrela.core.ledger import Ledger
from fedrela.data.sources import load
from fedrela.errors import FedrelaError
from helpers.pickle_baits import BAITS, PYTHON_EDITION, careless, payload

FORBIDDEN = {
    "code.__new__", "compile", "ctypes.dlopen", "exec", "function.__new__", "import", "marshal.load", "marshal.loads",
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system",
    "pickle.find_class", "pty.spawn", "socket.connect", "subprocess.Popen",
}  # fmt: skip


def _put(folder: Path, data: bytes, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return path


def _fashion(suffix: str) -> Callable[[Path, bytes], object]:
    kinds = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    names = [f"FashionMNIST/raw/{kind}-ubyte{suffix}" for kind in kinds]
    return lambda folder, data: (_put(folder, data, *names), load("fashion_mnist", folder))


def _cifar(name: str, *files: str) -> Callable[[Path, bytes], object]:
    return lambda folder, data: (_put(folder, data, *files), load(name, folder))


def _one_file(source: str, name: str, **options: Any) -> Callable[[Path, bytes], object]:
    return lambda folder, data: load(source, _put(folder, data, name), **options)


def _pictures(folder: Path, data: bytes) -> object:
    _put(folder, data, "train/a/0.jpg", "train/b/0.png", "val/a/0.JPEG")
    return load("image_folder", folder)


def _lists(folder: Path, data: bytes) -> object:
    _put(folder, data, "ImageNet_LT_train.txt", "ImageNet_LT_test.txt")
    return load("imagenet_lt", folder)


def _annotations(folder: Path, data: bytes) -> object:
    _put(folder, data, "train/a/images/0.JPEG", "val/val_annotations.txt")
    return load("tiny_imagenet", folder)


def _posteriors(name: str) -> Callable[[Path, bytes], object]:
    def read(folder: Path, data: bytes) -> object:
        from fedrela.data.posteriors import read_posteriors

        return read_posteriors(_put(folder, data, name))

    return read


def _read_through_a_poisoned_cache(folder: Path, data: bytes) -> None:
    """Load a good set whose decoded arrays were replaced by a bait: they must be built again."""
    for part in ("train", "t10k"):
        images = b"\0\0\x08\x03" + bytes((0, 0, 0, 10, 0, 0, 0, 28, 0, 0, 0, 28)) + bytes(range(196)) * 40
        labels = b"\0\0\x08\x01" + bytes((0, 0, 0, 10)) + bytes(range(10))
        _put(folder, gzip.compress(images), f"{part}-images-idx3-ubyte.gz")
        _put(folder, gzip.compress(labels), f"{part}-labels-idx1-ubyte.gz")
    load("fashion_mnist", folder, cache=folder / "cache")
    entries = list((folder / "cache").glob("*.npy"))
    for entry in entries:
        entry.write_bytes(data)
    source = load("fashion_mnist", folder, cache=folder / "cache")
    assert entries
    assert source.x_train[0].ravel().tolist() == list(range(196)) * 4


CIFAR10_FILES = [f"cifar-10-batches-bin/data_batch_{i}.bin" for i in range(1, 6)]
READERS: dict[str, Callable[[Path, bytes], object]] = {
    "fashion_mnist": _fashion(""),
    "fashion_mnist gzip": _fashion(".gz"),
    "cifar10 folder": _cifar(
        "cifar10", *CIFAR10_FILES, "cifar-10-batches-bin/test_batch.bin", "cifar-10-batches-bin/batches.meta.txt"
    ),
    "cifar10 archive": _cifar("cifar10", "cifar-10-binary.tar.gz"),
    "cifar10 python edition": _cifar("cifar10", PYTHON_EDITION),
    "cifar100 folder": _cifar(
        "cifar100", *(f"cifar-100-binary/{n}" for n in ("train.bin", "test.bin", "fine_label_names.txt"))
    ),
    "cifar100 archive": _cifar("cifar100", "cifar-100-binary.tar.gz"),
    "image_folder": _pictures,
    "imagenet_lt": _lists,
    "tiny_imagenet": _annotations,
    "npz": _one_file("npz", "set.npz"),
    "npz of another name": _one_file("npz", "set.pkl"),
    "csv": _one_file("csv", "set.csv"),
    "csv by position": _one_file("csv", "set.csv", label=-1, header=False),
    "table npy": _one_file("csv", "set.npy", label=-1),
    "table npz": _one_file("csv", "set.npz", label="y_train"),
    "table of another name": _one_file("csv", "set.pkl"),
    "ledger json": lambda folder, data: Ledger.load(_put(folder, data, "ledger.json")),
    "ledger npz": lambda folder, data: Ledger.load(_put(folder, data, "ledger.npz")),
}
if importlib.util.find_spec("fedrela.data.posteriors"):
    READERS |= {f"posteriors {suffix}": _posteriors(f"p.{suffix}") for suffix in ("npz", "csv")}


class Watch:
    """Notes what must not happen, and stops it."""

    def __init__(self) -> None:
        self.armed, self.seen = False, []
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.armed or event not in FORBIDDEN:
            return
        # NumPy parses the dictionary in an .npy header; parsing to a tree runs nothing.
        if event == "compile" and sys._getframe(1).f_code is ast.parse.__code__:
            return
        self.seen.append(f"{event} {str(arguments)[:80]}")
        raise PermissionError(event)

    def run(self, action: Callable[[], object]) -> tuple[str, list[str]]:
        """Return how `action` ended, and what was noted."""
        self.seen, self.armed = [], True
        try:
            action()
            ended = "no error"
        except FedrelaError as error:
            ended = "FedrelaError" if "\n" not in str(error) else f"several lines: {error}"
        except Exception as error:
            ended = f"{type(error).__name__}: {error}"[:200]
        finally:
            self.armed = False
        return ended, self.seen


def main(folder: Path) -> None:
    mark = folder / "executed"
    warnings.simplefilter("ignore")
    places = (folder / f"case{i}" for i in itertools.count())
    for harmless, reader in itertools.product(BAITS.values(), READERS.values()):
        with contextlib.suppress(Exception):  # the armed pass says how a reader ends
            reader(next(places), harmless({"harmless": 1}))
    _read_through_a_poisoned_cache(folder / "idx", b"harmless")
    watch = Watch()
    baits = {name: make(payload(i, str(mark))) for i, (name, make) in enumerate(BAITS.items())}
    report: dict[str, Any] = {"readers": {}, "cache": {}, "control": {}}
    for (bait, data), (name, reader) in itertools.product(baits.items(), READERS.items()):
        place = next(places)
        report["readers"][f"{bait} | {name}"] = watch.run(
            lambda place=place, data=data, reader=reader: reader(place, data)
        )
    for bait, data in baits.items():
        report["cache"][bait] = watch.run(lambda data=data: _read_through_a_poisoned_cache(folder / "idx", data))
    report["marked"] = mark.exists()
    for bait, data in baits.items():
        report["control"][bait] = watch.run(lambda bait=bait, data=data: careless(bait, data))[1]
    print(json.dumps(report))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bait")
    tests = str(Path(__file__).parents[1])
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": tests}
    done = subprocess.run(
        [sys.executable, __file__, str(folder)], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_there_are_twenty_baits():
    assert len(BAITS) == 20


@pytest.mark.parametrize("bait", BAITS)
def test_every_bait_bites(report, bait):
    assert any(event.startswith("pickle.find_class") for event in report["control"][bait])


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("bait", BAITS)
def test_no_reader_takes_the_bait(report, bait, reader):
    ended, seen = report["readers"][f"{bait} | {reader}"]
    assert seen == []
    assert ended == "FedrelaError"


@pytest.mark.parametrize("bait", BAITS)
def test_a_poisoned_cache_is_built_again(report, bait):
    assert report["cache"][bait] == ["no error", []]


def test_nothing_was_executed(report):
    assert report["marked"] is False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
