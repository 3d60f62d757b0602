"""How a run folder begins.

The manifest comes last: a folder without it is not a run yet. What an interrupted creation left can be told from other
people's files, because ``machine.json`` is on disk before any name that could be somebody's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import alone, digest, make_folders, read_plain, sweep, write_bytes
from fedrela.files.atomic import ASIDE
from fedrela.runfolder.names import CHECKPOINT, CONFIG, LEDGERS, LIMIT, LOCK, MACHINE, MANIFEST
from fedrela.runfolder.text import Record, page
from fedrela.runfolder.vouched import check_files, read_vouching, vouching


def first_files(manifest: Mapping[str, Any], config: str, machine: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files a run begins with, in the order in which they are written."""
    toml = config.encode()
    return {MACHINE: page(machine), CONFIG: toml, MANIFEST: vouching(manifest, {CONFIG: digest(toml)})}


def begin(path: Path, files: Mapping[str, bytes]) -> None:
    """Write the first files to a place that is free."""
    _check_free(path, files)
    make_folders(path)
    with alone(path / LOCK):
        _check_free(path, files)
        sweep(path)
        for name, data in files.items():
            write_bytes(path / name, data)


def read_start(path: Path) -> tuple[Record, bytes]:
    """Return the manifest of the run at `path`, as a record and as it lies there, after checking the folder."""
    try:
        data = read_plain(path / MANIFEST, LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{path}: no run is here; name a folder that has a {MANIFEST}") from None
    except OSError as error:
        raise DataError(f"{path / MANIFEST}: cannot be read: {error.strerror}") from None
    record = read_vouching(path / MANIFEST, data)
    for name in (CHECKPOINT, LEDGERS):
        if (path / name).is_symlink():
            raise IntegrityError(f"{path / name}: a folder is needed, a link is there; put the folder back")
    check_files(path, record)
    return record, data


def is_begun(path: Path, files: Mapping[str, bytes]) -> bool:
    """Whether the very run that begins with `files` is at `path`, whatever its machine."""
    return (path / MANIFEST).exists() and read_start(path)[1] == files[MANIFEST]


def _check_free(path: Path, files: Mapping[str, bytes]) -> None:
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise ArgumentError(f"{path}: a folder is needed, something else is there; choose another place")
    if is_begun(path, files):
        raise ArgumentError(f"{path}: this run exists already; `fedrela resume` goes on with it")
    names = set(os.listdir(path))
    if MANIFEST in names:
        raise ArgumentError(f"{path}: another run is here; choose a new or an empty folder")
    asides = {name for name in names if (found := ASIDE.fullmatch(name)) and found[1] in files}
    if names - asides - {LOCK, MACHINE} - ({CONFIG} if MACHINE in names else set()):
        raise ArgumentError(f"{path}: other files are here; choose a new or an empty folder")
