"""Twenty files with a pickle in them, and how a careless program would read each."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

NPZ_NAMES = ("x_train", "y_train", "x_test", "y_test", "class_names", "posterior", "labels", "record", "index")


class Payload:
    """What a hostile pickle calls when it is read."""

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


def payload(kind: int, mark: str) -> Any:
    code = f"open({mark!r}, 'w').close()"
    calls = [
        Payload(os.system, f"touch '{mark}'"),
        Payload(exec, code),
        Payload(eval, code),
        Payload(subprocess.Popen, ["touch", mark]),
        Payload(__import__, "antigravity_of_a_bait"),
    ]
    return calls[kind % len(calls)]


def _zip(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _tar(members: dict[str, bytes], mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _objects(item: Any, save: Callable[..., None]) -> bytes:
    buffer = io.BytesIO()
    array = np.empty(3, object)
    array[:] = [item, item, item]
    save(buffer, array)
    return buffer.getvalue()


def _npy_with_pickle_behind_a_plain_header(item: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3, np.uint8))
    return buffer.getvalue()[:-3] + pickle.dumps(item)


def _cifar_batch(item: Any) -> bytes:
    return pickle.dumps({b"labels": [0, 1], b"data": np.zeros((2, 3072), np.uint8), b"batch_label": item}, 2)


def _save_all(buffer: io.BytesIO, array: np.ndarray) -> None:
    np.savez(buffer, **dict.fromkeys(NPZ_NAMES, array))


PYTHON_EDITION = "cifar-10-batches-py/data_batch_1"
BINARY_EDITION = "cifar-10-batches-bin/data_batch_1.bin"
BAITS: dict[str, Callable[[Any], bytes]] = {
    **{f"pickle protocol {p}": lambda item, p=p: pickle.dumps(item, p) for p in range(6)},  # type: ignore[misc]
    "torch zip": lambda item: _zip({"archive/data.pkl": pickle.dumps(item, 2), "archive/version": b"3\n"}),
    "torch legacy": lambda item: b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, item)),
    "npy of objects": lambda item: _objects(item, np.save),
    "npz of objects": lambda item: _objects(item, _save_all),
    "npz of pickles": lambda item: _zip({f"{name}.npy": pickle.dumps(item) for name in NPZ_NAMES}),
    "npy with a pickle behind": _npy_with_pickle_behind_a_plain_header,
    "joblib": lambda item: (
        pickle.dumps(("NumpyArrayWrapper", {"shape": (3,), "allow_mmap": True}, item), 4) + bytes(16)
    ),
    "joblib zlib": lambda item: zlib.compress(pickle.dumps(item)),
    "gzip": lambda item: gzip.compress(pickle.dumps(item)),
    "bzip2": lambda item: bz2.compress(pickle.dumps(item)),
    "xz": lambda item: lzma.compress(pickle.dumps(item)),
    "tar": lambda item: _tar({"data.pkl": pickle.dumps(item), PYTHON_EDITION: _cifar_batch(item)}, "w"),
    "cifar tar.gz": lambda item: _tar(dict.fromkeys((PYTHON_EDITION, BINARY_EDITION), _cifar_batch(item)), "w:gz"),
    "csv named pickle": lambda item: b"x,label\n" + pickle.dumps(item, 0),
}


def careless(name: str, data: bytes) -> None:
    """Read a bait as its format asks for, without any care."""
    if name == "torch zip":
        data = zipfile.ZipFile(io.BytesIO(data)).read("archive/data.pkl")
    elif name == "npz of pickles":
        data = zipfile.ZipFile(io.BytesIO(data)).read("x_train.npy")
    elif name == "npy of objects":
        np.load(io.BytesIO(data), allow_pickle=True)
    elif name == "npz of objects":
        np.load(io.BytesIO(data), allow_pickle=True)["x_train"]
    elif name == "npy with a pickle behind":
        data = data[128:]
    elif name in ("tar", "cifar tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            data = archive.extractfile(PYTHON_EDITION).read()  # type: ignore[union-attr]
    elif name == "csv named pickle":
        data = data[8:]
    unpack = {"joblib zlib": zlib.decompress, "gzip": gzip.decompress, "bzip2": bz2.decompress, "xz": lzma.decompress}
    stream = io.BytesIO(unpack.get(name, bytes)(data))
    for _ in range(3 if name == "torch legacy" else 1):
        pickle.load(stream)
