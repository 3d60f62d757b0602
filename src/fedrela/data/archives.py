"""Reading tar and zip entry by entry. What is neither a regular file nor a folder is refused here."""

from __future__ import annotations

import gzip
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fedrela.errors import DataError

CHUNK = 1 << 16
LARGEST_READ = 1 << 20
DIRECTORY_RECORD = 160  # bytes that a zip file may spend on one entry in its directory, on average


@dataclass(frozen=True)
class Limits:
    """What is too much for an archive.

    Attributes
    ----------
    entries
        Files and folders.
    file_bytes, total_bytes
        Size of one file and of all, unpacked.
    ratio
        Unpacked over packed size, of the archive and of each zip entry.
    floor
        Bytes up to which the ratio is not looked at.
    """

    entries: int = 200_000
    file_bytes: int = 1 << 30
    total_bytes: int = 4 << 30
    ratio: int = 100
    floor: int = 1 << 20

    def unpacked(self, packed: int) -> int:
        """Return the largest unpacked size that is credible for `packed` bytes."""
        return max(self.floor, self.ratio * packed)


@dataclass(frozen=True)
class Entry:
    """A regular file or a folder of an archive.

    Attributes
    ----------
    name
        As the archive has it, not yet checked.
    size
        The declared number of bytes.
    content
        The bytes, None for a folder. To be read before the next entry.
    position
        How many bytes of the archive have been read.
    """

    name: str
    size: int
    content: IO[bytes] | None
    position: int


class _Guard:
    """A file that refuses single giant reads, and more bytes in total than are credible."""

    def __init__(self, file: IO[bytes], largest: int, most: int | None = None) -> None:
        self.file, self.largest, self.most = file, largest, most
        self.passed = 0
        self.last = b""
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        self.last = b"" if size > self.largest else self.file.read(self.largest + 1 if size < 0 else size)
        self.passed += len(self.last)
        if max(size, len(self.last)) > self.largest:
            raise DataError(f"a header of more than {self.largest} bytes")
        if self.most is not None and self.passed > self.most:
            raise DataError(f"the unpacked size is beyond all reason ({self.most} bytes)")
        return self.last


def tar_entries(archive: Path, limits: Limits) -> Iterator[Entry]:
    """Give the entries of a tar file, gzip or not, and check that it is whole."""
    with open(archive, "rb") as raw, _unzipped(raw, archive) as stream:
        guard: Any = _Guard(stream, LARGEST_READ, limits.unpacked(os.fstat(raw.fileno()).st_size))
        with tarfile.open(fileobj=guard, mode="r:", encoding="utf-8") as tar:
            for info in tar:
                if info.isdir():
                    yield Entry(info.name, 0, None, raw.tell())
                elif info.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not info.issparse() and info.size >= 0:
                    with tar.extractfile(info) as content:  # type: ignore[union-attr]  # never None: info is a regular file
                        yield Entry(info.name, info.size, content, raw.tell())
                else:
                    raise DataError(f"{info.name[:80]!r}: neither a regular file nor a folder")
        if guard.last != bytes(tarfile.BLOCKSIZE):  # tarfile takes a broken header for the end
            raise DataError("cut off or damaged: the mark of its end is missing")
        while rest := guard.read(CHUNK):  # to the end, where gzip has its checksum
            if rest.strip(b"\0"):
                raise DataError("something follows the mark of its end")


def _unzipped(raw: IO[bytes], archive: Path) -> IO[bytes]:
    if archive.suffix.lower() == ".tar":
        return raw
    return gzip.GzipFile(fileobj=raw, mode="rb")  # type: ignore[return-value]  # reads like any binary file


def zip_entries(archive: Path, limits: Limits) -> Iterator[Entry]:
    """Give the entries of a zip file."""
    with open(archive, "rb") as raw:
        guard: Any = _Guard(raw, max(LARGEST_READ, limits.entries * DIRECTORY_RECORD))
        with zipfile.ZipFile(guard) as packed:
            for info in packed.infolist():
                # zipfile cuts `filename` at a NUL; the original name is the one to judge
                name, is_folder = info.orig_filename.removesuffix("/"), info.orig_filename.endswith("/")
                _check_zip_kind(info, is_folder, limits)
                if is_folder:
                    yield Entry(name, 0, None, info.header_offset)
                else:
                    with packed.open(info) as content:
                        yield Entry(name, info.file_size, content, info.header_offset)


def _check_zip_kind(info: zipfile.ZipInfo, is_folder: bool, limits: Limits) -> None:
    shown = repr(info.orig_filename[:80])
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG) or (is_folder and info.file_size):
        raise DataError(f"{shown}: neither a regular file nor a folder")
    if info.flag_bits & 0x1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{shown}: encrypted, or compressed in another way than deflate")
    if info.file_size > limits.unpacked(info.compress_size):
        raise DataError(f"{shown}: {info.file_size} bytes from {info.compress_size} are beyond all reason")
