"""A file that grows over several attempts, such as a download."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import BinaryIO

from fedrela.errors import BusyError
from fedrela.files.atomic import digest_file, sync, write_bytes


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
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "ab", opener=_open_no_link)
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
        self._file.truncate(0)
        self._file.seek(0)
        write_bytes(self._tag_path, tag.encode())
        self.tag = tag

    def append(self, chunk: bytes) -> None:
        """Add `chunk` at the end."""
        self._file.write(chunk)

    def digest(self) -> str:
        """SHA-256 of the bytes so far."""
        self._file.flush()
        return digest_file(self.path)

    def finish(self) -> None:
        """Sync the part and rename it to its target."""
        self._file.flush()
        os.fsync(self._file.fileno())
        os.replace(self.path, self.target)
        self._tag_path.unlink(missing_ok=True)
        sync(self.target.parent)

    def discard(self) -> None:
        """Remove the part, so that the next attempt starts afresh."""
        self.path.unlink(missing_ok=True)
        self._tag_path.unlink(missing_ok=True)


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _lock(file: BinaryIO, path: Path) -> None:
    """Hold `file` alone until it is closed; where the system has no such lock, go on without."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The former holder may have renamed the file between our open and our lock.
        ours = os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        ours = False
    if not ours:
        raise BusyError(f"{path}: another process writes it; wait until it has finished")
