"""Where the files of a source lie, and one way for reading them to fail."""

from __future__ import annotations

import contextlib
import csv
import functools
import lzma
import struct
import tarfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from fedrela.errors import ArgumentError, DataError
from fedrela.files import safe_join, safe_path

DEFAULT_ROOT = Path("data")
UNREADABLE = (
    EOFError, ValueError, KeyError, IndexError, TypeError, MemoryError, OverflowError, RecursionError, RuntimeError,
    SyntaxError, struct.error, tokenize.TokenError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError,
    csv.Error,
)  # fmt: skip


class Readable(Protocol):
    """Whatever bytes are read from: a file, a member of an archive, an unpacked stream."""

    def read(self, size: int = ..., /) -> bytes:
        """Read at most `size` bytes."""


def root_folder(root: str | Path | None) -> Path:
    """Return the folder to look in: `root`, or ``data`` in the current folder."""
    return DEFAULT_ROOT if root is None else Path(root).expanduser()


def inside(root: Path, relative: str, where: str) -> Path:
    """Join `root` with a path from a file of somebody else's; a path that could leave `root` is an error.

    >>> inside(Path("set"), "train/n01440764/1.JPEG", "list.txt:1").as_posix()
    'set/train/n01440764/1.JPEG'
    >>> inside(Path("set"), "train/../../1.JPEG", "list.txt:2")
    Traceback (most recent call last):
    ...
    fedrela.errors.DataError: list.txt:2: 'train/../../1.JPEG' is not a plain path below set
    """
    folder, slash, name = relative.rpartition("/")
    try:
        return safe_join(_below(root, folder) if slash else root, name)
    except DataError:
        raise DataError(f"{where}: {relative[:80]!r} is not a plain path below {root}") from None


@functools.lru_cache(4096)  # a list names few folders and many files
def _below(root: Path, folder: str) -> Path:
    return safe_path(root, folder)


@contextlib.contextmanager
def reading(path: Path | str, kind: str) -> Iterator[None]:
    """Turn whatever a damaged file makes a reader raise into one line that names the file."""
    try:
        yield
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be read as {kind}: {error.strerror or error}") from error
    except UNREADABLE as error:
        raise DataError(f"{path}: damaged, or no {kind}: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """Return kind and first line of an exception, printable and short."""
    text = str(error).strip().splitlines()
    detail = "".join(ch if ch.isprintable() else "?" for ch in text[0])[:120] if text else ""
    return f"{type(error).__name__}: {detail}" if detail else type(error).__name__


def read_exactly(stream: Readable, size: int, where: object) -> bytes:
    """Read `size` bytes or say how many were there."""
    data = stream.read(size)
    if len(data) != size:
        raise DataError(f"{where}: ends early: {size} bytes were expected, {len(data)} are there")
    return data


def read_text(path: Path, kind: str, limit: int = 1 << 28) -> str:
    """Read a text file in UTF-8 of at most `limit` bytes."""
    with reading(path, kind):
        if path.stat().st_size > limit:
            raise DataError(f"{path}: larger than {limit} bytes, which no {kind} is")
        return path.read_bytes().decode("utf-8-sig")


def named_file(source: str, root: str | Path | None, file: str | None, holding: str) -> Path:
    """Return the one file a source reads: `root` itself, or `file` in it."""
    if root is None and file is None:
        raise ArgumentError(f"{source}: root: the file with {holding} is needed, or its folder and the option file")
    path = root_folder(root) if file is None else root_folder(root) / file
    if path.is_dir():
        raise ArgumentError(f"{source}: {path} is a folder; name the file with {holding} in it with the option file")
    if not path.is_file():
        raise DataError(f"{source}: {path} is missing; put the file with {holding} there")
    return path
