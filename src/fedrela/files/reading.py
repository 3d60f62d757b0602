"""Reading untrusted files: regular files only, safe names, digests; arrays as the bytes of a file."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import stat
import unicodedata
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from fedrela.errors import DataError
from fedrela.files.operations import open_no_link


def safe_join(folder: str | Path, name: str) -> Path:
    """Join a folder with an untrusted name; anything other than one plain component is an error.

    >>> safe_join("ledgers", "client-3.json").as_posix()
    'ledgers/client-3.json'
    >>> safe_join("ledgers", "../labels")
    Traceback (most recent call last):
    ...
    fedrela.errors.DataError: '../labels': not a plain file name
    """
    if not _is_plain(name):
        raise DataError(f"{name[:80]!r}: not a plain file name")
    return Path(folder) / name


def safe_path(folder: str | Path, name: str) -> Path:
    """Join a folder with an untrusted relative path, every component of which must be plain.

    >>> safe_path("cache", "train/cat/1.png").as_posix()
    'cache/train/cat/1.png'
    >>> safe_path("cache", "train/../../labels")
    Traceback (most recent call last):
    ...
    fedrela.errors.DataError: 'train/../../labels': not a plain relative path
    """
    parts = name.split("/")
    if len(parts) > 32 or len(name) > 1000 or not all(map(_is_plain, parts)):
        raise DataError(f"{name[:80]!r}: not a plain relative path")
    return Path(folder, *parts)


_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$|clock\$) *(\..*)?", re.IGNORECASE)
_LOOK_ALIKE = str.maketrans({"⁄": "/", "∕": "/", "⧸": "/", "∖": "\\", "⧵": "\\", "꞉": ":"})


def _is_plain(name: str) -> bool:
    """Whether `name`, also when read by a program that decodes percents or look-alikes, is one file name."""
    while _is_plain_as_written(name):
        decoded = unquote(unicodedata.normalize("NFKC", name).translate(_LOOK_ALIKE))
        if decoded == name:
            return True
        name = decoded
    return False


def _is_plain_as_written(name: str) -> bool:
    printable = bool(name) and all(ch.isprintable() and ch not in '/\\:*?"<>|' for ch in name)
    if not printable or name != name.strip(" .") or len(name.encode()) > 200:
        return False
    return not _DEVICE.fullmatch(name)


BLOCK = 1 << 20


def digest(data: bytes | memoryview) -> str:
    """SHA-256 of `data` in hexadecimal.

    >>> digest(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(data).hexdigest()


def digest_file(path: str | Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading; raise an `OSError` for a link, a device or a pipe."""
    handle = open_no_link(str(path), os.O_RDONLY | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return os.fdopen(handle, "rb")


def read_plain(path: Path, limit: int) -> bytes:
    """Return the content of a plain file; raise an `OSError` if it has more than `limit` bytes."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= limit:
            return file.read(size)
    raise OSError(errno.EFBIG, f"more than {limit} bytes", str(path))


def read_arrays(data: bytes, limit: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file; raise a `ValueError` if it is not one or unpacks to over `limit` bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if size > limit:
            raise ValueError(f"unpacks to {size} bytes, more than {limit}")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds for damaged bytes
        raise ValueError(f"not an .npz file: {type(error).__name__}: {error}") from None


def array_bytes(arrays: Mapping[str, Any], *, compressed: bool = False) -> bytes:
    """Return arrays as the bytes of an .npz file, without pickle, as `read_arrays` reads them."""
    buffer, save = io.BytesIO(), np.savez_compressed if compressed else np.savez
    save(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def size_and_digest(path: Path, first: int | None = None) -> tuple[int, str]:
    """Return size and SHA-256 of a plain file, or of its `first` bytes if it has as many."""
    sha, size = hashlib.sha256(), 0
    with open_plain(path) as file:
        while block := file.read(BLOCK if first is None else min(BLOCK, first - size)):
            sha.update(block)
            size += len(block)
    return size, sha.hexdigest()
