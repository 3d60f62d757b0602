"""Files: atomic write, digest, safe join. The only module that opens a file for writing.

A write goes aside, is synced, renamed over the target, and the folder is synced: at every instant the target is
the old file or the new one, whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from fedrela.errors import DataError


def write_bytes(path: str | Path, data: bytes, *, overwrite: bool = True) -> None:
    """Write `data` to `path` atomically.

    Parameters
    ----------
    path
        The target; its folder is made where it is missing.
    data
        The whole content.
    overwrite
        With False an existing target is an error, also when it appears during the write.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        _write_aside(aside, data)
        _put_in_place(aside, path, overwrite)
    finally:
        aside.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _write_aside(aside: Path, data: bytes) -> None:
    with open(aside, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _put_in_place(aside: Path, path: Path, overwrite: bool) -> None:
    if overwrite:
        os.replace(aside, path)
        return
    try:
        os.link(aside, path)  # unlike rename, link fails where the target exists
    except FileExistsError:
        raise DataError(f"{path}: exists already; choose another place or allow overwriting") from None


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(PermissionError):  # a folder we may write to but not read
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def digest(data: bytes | memoryview) -> str:
    """SHA-256 of `data` in hexadecimal.

    >>> digest(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(data).hexdigest()


def safe_join(folder: str | Path, name: str) -> Path:
    """Join a folder of ours with a name from outside; anything that is not one plain component is an error.

    >>> safe_join("ledgers", "client-3.json").as_posix()
    'ledgers/client-3.json'
    >>> safe_join("ledgers", "../labels")
    Traceback (most recent call last):
    ...
    fedrela.errors.DataError: '../labels': not a plain file name
    """
    plain = name not in ("", ".", "..") and all(ch.isprintable() and ch not in '/\\:*?"<>|' for ch in name)
    if not plain or name != name.strip(" .") or len(name.encode()) > 200:
        raise DataError(f"{name[:80]!r}: not a plain file name")
    return Path(folder) / name
