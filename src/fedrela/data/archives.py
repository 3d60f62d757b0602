"""Unpacking an archive: regular files and folders with plain names, inside one new folder, or nothing at all.

The digest of every archive that we fetch is published and was checked before. Names that could leave the folder, links,
devices and permissions of the archive are refused or dropped all the same, partly by the standard library's filter.
"""

from __future__ import annotations

import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from fedrela.errors import ArgumentError, DataError, FedrelaError
from fedrela.files import new_folder, safe_path
from fedrela.text import one_line

Progress = Callable[[int, int | None], None]


def unpack(
    archive: str | Path, target: str | Path, *, top: str | None = None, progress: Progress | None = None
) -> Path:
    """Unpack a ``.tar``, ``.tar.gz``, ``.tgz`` or ``.zip`` file into the new folder `target` and return it.

    After an error there is no `target`. With `top`, all entries have to lie in the folder of that name, and its content
    becomes the content of `target`. `progress` is called with the bytes of the archive read so far, and its size.
    """
    archive, name = Path(archive), str(archive).lower()
    if not name.endswith((".tar", ".tar.gz", ".tgz", ".zip")):
        raise ArgumentError(f"{archive}: expected a .tar, .tar.gz, .tgz or .zip file")
    extract = _extract_zip if name.endswith(".zip") else _extract_tar
    try:
        size = archive.stat().st_size
        with new_folder(target) as folder:
            extract(archive, folder, top, lambda done: progress(done, size) if progress else None)
        if progress:
            progress(size, size)
    except FedrelaError as error:
        raise type(error)(f"{archive}: {error}") from None
    except OSError as error:
        raise DataError(f"{archive}: cannot be unpacked into {target}: {error.strerror or error}") from None
    except Exception as error:  # both readers have many kinds
        raise DataError(f"{archive}: damaged, or not an archive: {one_line(error, 200)}") from None
    return Path(target)


def _extract_tar(archive: Path, folder: Path, top: str | None, report: Callable[[int], None]) -> None:
    with open(archive, "rb") as raw, tarfile.open(fileobj=raw, mode="r:*", encoding="utf-8") as tar:

        def accept(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
            report(raw.tell())
            is_file = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse() and member.size >= 0
            if not member.isdir() and not is_file:
                raise DataError(f"{member.name[:80]!r}: neither a regular file nor a folder")
            name = _inner_name(folder, member.name, top, member.isdir())
            return tarfile.data_filter(member.replace(name=name, mode=0o644), path) if name else None

        tar.extractall(folder, filter=accept)


def _extract_zip(archive: Path, folder: Path, top: str | None, report: Callable[[int], None]) -> None:
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            report(info.header_offset)
            original = info.orig_filename  # zipfile cuts `filename` at a NUL
            is_folder, kind = original.endswith("/"), stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG) or (is_folder and info.file_size):
                raise DataError(f"{original[:80]!r}: neither a regular file nor a folder")
            if name := _inner_name(folder, original.removesuffix("/"), top, is_folder):
                info.filename = name + "/" * is_folder
                packed.extract(info, folder)


def _inner_name(folder: Path, name: str, top: str | None, is_folder: bool) -> str:
    """Return the name of an entry below `top`, empty for `top` itself; raise where it is not a plain path in there."""
    safe_path(folder, name)
    if top is None:
        return name
    first, _, rest = name.partition("/")
    if first != top or not (rest or is_folder):
        raise DataError(f"{name!r}: lies outside the folder {top!r}")
    return rest
