"""A file that grows over several attempts, such as a download."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import BinaryIO

from fedrela.errors import BusyError
from fedrela.files.atomic import make_folders, remove_if_there, write_bytes
from fedrela.files.lock import take
from fedrela.files.reading import digest_file
from fedrela.files.verbs import append, open_no_link, overwrite, rename, sync, sync_folder


class Part:
    """An unfinished file that grows beside its target, outlives a failure, and becomes the target at the end.

    Used in a ``with`` statement, by one process at a time. An empty part is removed on the way out.

    Attributes
    ----------
    tag
        What the writer noted at the last `restart`, to know at the next attempt whether the part still fits.
    """

    def __init__(self, target: str | Path) -> None:
        self.target = Path(target)
        self.path = self.target.with_name(f".{self.target.name}.part")
        self._tag_path = self.target.with_name(f".{self.target.name}.part.tag")
        self.tag = ""

    def __enter__(self) -> Part:
        make_folders(self.target.parent)
        append(self.path, b"")
        self._file = open(self.path, "ab", opener=open_no_link)
        try:
            _lock(self._file, self.path)
            with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
                self.tag = self._tag_path.read_text("utf-8")
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.size == 0:
                self.discard()
        finally:
            self._file.close()

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self._file.tell()

    def restart(self, tag: str) -> None:
        """Drop all bytes and note `tag`."""
        self._file.seek(0)
        overwrite(self.path, b"")
        write_bytes(self._tag_path, tag.encode())
        self.tag = tag

    def append(self, chunk: bytes) -> None:
        """Add `chunk` at the end."""
        append(self.path, chunk, self._file)

    def digest(self) -> str:
        """SHA-256 of the bytes so far."""
        self._file.flush()
        return digest_file(self.path)

    def finish(self) -> None:
        """Sync the part and rename it to its target."""
        self._file.flush()
        sync(self.path)
        rename(self.path, self.target)
        remove_if_there(self._tag_path)
        sync_folder(self.target.parent)

    def discard(self) -> None:
        """Remove the part, so that the next attempt starts afresh."""
        remove_if_there(self.path)
        remove_if_there(self._tag_path)


def _lock(file: BinaryIO, path: Path) -> None:
    """Hold `file` alone until it is closed."""
    ours = take(file.fileno())
    try:
        # The former holder may have renamed the file between our open and our lock.
        ours = ours and os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        ours = False
    if not ours:
        raise BusyError(f"{path}: another process writes it; wait until it has finished")
