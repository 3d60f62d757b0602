"""Reading files that somebody else may have put there, and digests."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from fedrela.files.verbs import open_no_link

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
    """Open a file for reading; a link, a device or a pipe is an `OSError`."""
    handle = open_no_link(str(path), os.O_RDONLY | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return os.fdopen(handle, "rb")


def read_plain(path: Path, limit: int) -> bytes:
    """Return the content of a plain file; one of more than `limit` bytes is an `OSError`."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= limit:
            return file.read(size)
    raise OSError(errno.EFBIG, f"more than {limit} bytes", str(path))


def measure(path: Path, first: int | None = None) -> tuple[int, str]:
    """Return size and SHA-256 of a plain file, or of its `first` bytes where it has as many."""
    sha, size = hashlib.sha256(), 0
    with open_plain(path) as file:
        while block := file.read(BLOCK if first is None else min(BLOCK, first - size)):
            sha.update(block)
            size += len(block)
    return size, sha.hexdigest()
