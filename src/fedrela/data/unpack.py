"""Safe unpacking: plain files with plain names within limits, or nothing at all.

An archive is a stranger's program for our disk. Only regular files and folders are made, each under a name that
`files.safe_path` accepts; owners, permissions and times are not taken over. Everything goes into a folder aside that
gets its name at the end, so that a refusal leaves no trace. An archive inside the archive stays a file.
"""

from __future__ import annotations

import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fedrela.data.archives import CHUNK, Entry, Limits, tar_entries, zip_entries
from fedrela.errors import ArgumentError, DataError, FedrelaError
from fedrela.files import new_folder, safe_path, write_new

DAMAGED = (
    EOFError, ValueError, LookupError, TypeError, ArithmeticError, MemoryError, RuntimeError, struct.error,
    tarfile.TarError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
MAY_MEET = {("implied", "implied"), ("implied", "folder"), ("folder", "implied")}


def unpack(
    archive: str | Path,
    target: str | Path,
    *,
    top: str | None = None,
    limits: Limits | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Path:
    """Unpack a ``.tar``, ``.tar.gz``, ``.tgz`` or ``.zip`` file into the new folder `target` and return it.

    Parameters
    ----------
    archive
        The archive.
    target
        A folder that does not exist yet.
    top
        The one folder in which all entries have to lie; its content becomes the content of `target`.
    limits
        What is too much.
    progress
        Called with the number of bytes of the archive read so far, and its size.
    """
    archive, limits = Path(archive), limits or Limits()
    read = _reader(archive)
    try:
        size = archive.stat().st_size
        with new_folder(target) as folder:
            tree = _Tree(folder, top, limits, most=min(limits.total_bytes, limits.unpacked(size)))
            for entry in read(archive, limits):
                tree.add(entry)
                if progress is not None:
                    progress(entry.position, size)
        if progress is not None:
            progress(size, size)
    except FedrelaError as error:
        raise type(error)(f"{archive}: {error}") from None
    except OSError as error:
        raise DataError(f"{archive}: cannot be unpacked into {target}: {error.strerror or error}") from None
    except DAMAGED as error:
        what = "".join(ch if ch.isprintable() else " " for ch in str(error))[:200]
        raise DataError(f"{archive}: damaged, or not an archive: {type(error).__name__}: {what}") from None
    return Path(target)


def _reader(archive: Path) -> Callable[[Path, Limits], Iterable[Entry]]:
    name = archive.name.lower()
    if name.endswith((".tar", ".tar.gz", ".tgz")):
        return tar_entries
    if name.endswith(".zip"):
        return zip_entries
    raise ArgumentError(f"{archive}: .tar, .tar.gz, .tgz and .zip files can be unpacked")


@dataclass
class _Tree:
    """The folder that is being filled, and what is in it so far."""

    folder: Path
    top: str | None
    limits: Limits
    most: int
    written: int = 0
    seen: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """Make the file or the folder of `entry`, or refuse."""
        place = self._place(entry)
        if entry.content is None:
            place.mkdir(parents=True, exist_ok=True)
            return
        if entry.size > self.limits.file_bytes or self.written + entry.size > self.most:
            raise DataError(f"{entry.name!r}: {entry.size} bytes, more than is accepted")
        place.parent.mkdir(parents=True, exist_ok=True)
        write_new(place, self._counted(entry))

    def _place(self, entry: Entry) -> Path:
        """Return where `entry` goes, once its name is plain, its own, and in the top folder."""
        safe_path(self.folder, entry.name)
        parts = entry.name.split("/")
        for depth in range(1, len(parts)):
            self._claim("/".join(parts[:depth]), "implied")
        self._claim(entry.name, "folder" if entry.content is None else "file")
        if len(self.seen) > self.limits.entries:
            raise DataError(f"more than {self.limits.entries} files and folders")
        if self.top is None:
            return self.folder.joinpath(*parts)
        if parts[0] != self.top or (len(parts) == 1 and entry.content is not None):
            raise DataError(f"{entry.name!r}: lies outside the folder {self.top!r}")
        return self.folder.joinpath(*parts[1:])

    def _claim(self, name: str, kind: str) -> None:
        """Take `name` for one entry; a name that another system would take for the same one is taken as well."""
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
        earlier, earlier_kind = self.seen.get(folded, (name, "implied"))
        if folded in self.seen and (earlier != name or (earlier_kind, kind) not in MAY_MEET):
            raise DataError(f"{name!r}: there is an entry {earlier!r} already")
        self.seen[folded] = (name, "folder" if earlier_kind == "folder" else kind)

    def _counted(self, entry: Entry) -> Iterator[bytes]:
        """Give the bytes of a file, as many as it declares."""
        assert entry.content is not None
        left = entry.size
        while chunk := entry.content.read(CHUNK):
            left -= len(chunk)
            if left < 0:
                break
            self.written += len(chunk)
            yield chunk
        if left:
            raise DataError(f"{entry.name!r}: its size is not the {entry.size} bytes that it declares")
