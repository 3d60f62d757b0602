"""A file that grows over several attempts, such as a download."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from fedrela.errors import BusyError
from fedrela.files.atomic import make_folders, remove_if_there
from fedrela.files.lock import take
from fedrela.files.verbs import append, open_no_link, overwrite, rename, sync, sync_folder


class Part:
    """An unfinished file that grows beside its target, outlives a failure, and is renamed at the end.

    Used in a ``with`` statement, by one process at a time. An empty part is removed on the way out.
    """

    def __init__(self, target: str | Path) -> None:
        target = Path(target)
        self.path = target.with_name(f".{target.name}.part")

    def __enter__(self) -> Part:
        make_folders(self.path.parent)
        append(self.path, b"")
        self._file = open(self.path, "ab", opener=open_no_link)
        try:
            _lock(self._file, self.path)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.size == 0:
                remove_if_there(self.path)
        finally:
            self._file.close()

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self._file.tell()

    def restart(self) -> None:
        """Drop all bytes."""
        self._file.seek(0)
        overwrite(self.path, b"")

    def append(self, chunk: bytes) -> None:
        """Add `chunk` at the end."""
        append(self.path, chunk, self._file)

    def finish(self, target: Path) -> None:
        """Sync the part and rename it to `target`, in the same folder."""
        self._file.flush()
        sync(self.path)
        rename(self.path, target)
        sync_folder(target.parent)


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
