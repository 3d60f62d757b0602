"""A cache of decoded arrays on disk, addressed by content, written atomically, read back memory-mapped.

An entry's address is the SHA-256 of the source files, the decoding options and a format version, so an entry is never
stale: different bytes or options have a different address. Each array is filled under a temporary name and renamed
when it is complete. Two processes that build the same entry at once write the same bytes, and the last rename wins; a
reader keeps the file it has mapped. Beside each array is a digest of its name and its bytes, which is checked at every
read: an entry that is damaged, or that belongs to another address, is rebuilt, with a warning. Only the user who made
an entry may read it: the arrays may be private.

Hashing a large data set at every start would cost as much as decoding it, so the digest of a list of files is cached
under their names, sizes, inodes and modification times, with a digest of both that is checked as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fedrela.errors import DataError
from fedrela.files import (
    NewArrayFile,
    digest,
    digest_file,
    open_plain,
    read_plain,
    remove_temporary,
    size_and_digest,
    write_bytes,
)

PathOrNone = str | Path | None
Progress = Callable[[int, int, str], None]
NewArray = Callable[[str, tuple[int, ...], DTypeLike], NDArray[Any]]

FORMAT = 2
SETTLED_SECONDS = 2.0  # a file modified less than this ago could change again without a new modification time
ABANDONED_SECONDS = 86_400.0


def cache_folder(folder: PathOrNone = None) -> Path:
    """Return the folder of decoded arrays: `folder`, or ``fedrela`` in the user's cache directory."""
    if folder is not None:
        return Path(folder).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(shared) if os.path.isabs(shared) else Path.home() / ".cache"  # a relative value must be ignored
    return base / "fedrela"


def cached_arrays(
    label: str,
    files: Sequence[Path],
    options: Mapping[str, Any],
    names: Sequence[str],
    make: Callable[[NewArray], None],
    *,
    folder: PathOrNone = None,
    progress: Progress | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the arrays `names` decoded from `files`, read-only and memory-mapped, from the cache if it has them.

    `files` are the files to decode, in a fixed order; `options` is all else that the result depends on, as plain
    JSON values. File names in the cache begin with `label`. `make` is called with ``new(name, shape, dtype)``, which
    returns an array on disk, and fills one for every name. `progress` is called with (done, total, what).
    """
    root = cache_folder(folder)
    record = {"format": FORMAT, "files": files_digest(files, folder=root, progress=progress), "options": dict(options)}
    address = digest(json.dumps(record, sort_keys=True).encode())
    paths = {name: root / f"{label}-{address}-{name}.npy" for name in names}
    arrays = _read_entry(paths)
    if arrays is None:
        for path in paths.values():
            if os.path.lexists(path) and os.path.lexists(digest_path(path)) and not _matches(path):
                warnings.warn(f"{path}: does not match its digest; decoded again", stacklevel=2)
        _write_entry(paths, make)
        arrays = _read_entry(paths)
    if arrays is None:
        raise DataError(f"{root}: decoded arrays cannot be read back; choose another cache folder")
    return arrays


def _read_entry(paths: Mapping[str, Path]) -> dict[str, NDArray[Any]] | None:
    arrays: dict[str, NDArray[Any]] = {}
    for name, path in paths.items():
        try:
            with open_plain(path) as file:
                np.lib.format.read_magic(file)  # numpy.load would open a .zip file too
            arrays[name] = array = np.load(path, "r", allow_pickle=False)
            is_valid = path.stat().st_size == array.offset + array.nbytes and _matches(path)
        except Exception:  # NumPy raises many kinds of exception for a damaged header; all mean: rebuild
            return None
        if not is_valid:
            return None
    return arrays


def digest_path(path: Path) -> Path:
    """Return the path of the digest of a cached array."""
    return path.with_name(f"{path.name}.sha256")


def _matches(path: Path) -> bool:
    try:
        return read_plain(digest_path(path), 64) == _seal(path, size_and_digest(path)[1])
    except OSError:  # a pipe or a device, too
        return False


def _seal(path: Path, content: str) -> bytes:
    """Return the digest that binds what a file of the cache holds to the file's name."""
    return digest(f"{path.name} {content}".encode()).encode()


def _write_entry(paths: Mapping[str, Path], make: Callable[[NewArray], None]) -> None:
    folder = next(iter(paths.values())).parent
    new_files: dict[str, NewArrayFile] = {}

    def new(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        with _writing(folder):
            new_files[name] = NewArrayFile(paths[name], shape, dtype)
        return new_files[name].array

    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        remove_temporary(folder, older=ABANDONED_SECONDS)
    try:
        make(new)
        with _writing(folder):
            for name in paths:
                new_files[name].finish()
                write_bytes(digest_path(paths[name]), _seal(paths[name], digest_file(paths[name])), private=True)
    finally:
        for new_file in new_files.values():
            new_file.discard()


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "free space, or choose another folder with the option cache or XDG_CACHE_HOME"
        raise DataError(f"{folder}: cannot store decoded arrays: {error.strerror}; {advice}") from None


def files_digest(files: Sequence[Path], *, folder: PathOrNone = None, progress: Progress | None = None) -> str:
    """SHA-256 over the contents of `files` in their order, cached in the cache folder."""
    try:
        stats = [(path, path.stat()) for path in files]
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from None
    latest = max((stat.st_mtime for _, stat in stats), default=0.0)
    settled = latest < time.time() - SETTLED_SECONDS
    stamp = [(os.path.abspath(path), f.st_size, f.st_mtime_ns, f.st_ctime_ns, f.st_ino) for path, f in stats]
    memo = cache_folder(folder) / f"digest-{digest(json.dumps(stamp).encode())}"
    if settled and (known := _known_digest(memo)):
        return known
    total, done = sum(stat.st_size for _, stat in stats), 0
    overall = hashlib.sha256()
    for path, stat in stats:
        try:
            overall.update(bytes.fromhex(digest_file(path)))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None
        done += stat.st_size
        if progress:
            progress(done, total, "hashing")
    if settled:
        with contextlib.suppress(OSError):  # without a writable cache this is slower, not wrong
            write_bytes(memo, overall.hexdigest().encode() + _seal(memo, overall.hexdigest()), private=True)
    return overall.hexdigest()


def _known_digest(memo: Path) -> str:
    """Return the digest that a file of the cache holds; empty, with a warning, if it is not what was written there."""
    try:
        content = read_plain(memo, 128)
    except FileNotFoundError:
        return ""
    except OSError:  # a pipe or a device, or too long
        content = b""
    known = content[:64].decode("ascii", "replace")
    if content[64:] == _seal(memo, known):
        return known
    warnings.warn(f"{memo}: does not match its digest; the files are read again", stacklevel=2)
    return ""
