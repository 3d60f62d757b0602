"""Records that vouch for files: sealed themselves, with the digest of each file by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError, IntegrityError
from fedrela.files import measure, safe_path
from fedrela.runfolder.text import Record, page, parse, sealed, unsealed


def vouching(record: Mapping[str, Any], files: Mapping[str, str]) -> bytes:
    """Return a record that vouches for `files`, a digest by name, as a page."""
    if "files" in record:
        raise ArgumentError("record: the key 'files' is kept for digests; choose another")
    return page(sealed({**record, "files": dict(files)}))


def read_vouching(path: Path, data: bytes) -> Record:
    """Return the record in `data`, the content of `path`, without its seal."""
    try:
        record = unsealed(parse(data, page))
    except ValueError:
        raise IntegrityError(f"{path}: does not match its digest; it was changed or damaged") from None
    if not isinstance(record.get("files"), dict):
        raise IntegrityError(f"{path}: names no files; it is of another format")
    return record


def check_files(folder: Path, record: Record) -> None:
    """Compare the files of `folder` with what `record` says of them."""
    for name, sha256 in record["files"].items():
        path = safe_path(folder, name)
        try:
            same = measure(path)[1] == sha256
        except OSError:
            same = False
        if not same:
            raise IntegrityError(f"{path}: does not match its digest; it was changed or damaged")
