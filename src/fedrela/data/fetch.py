"""Get a data set of the catalogue: download, check, unpack. Everything that is there already is used as it is."""

from __future__ import annotations

from pathlib import Path

from fedrela.data.download import Progress, Wanted, download
from fedrela.data.sources import SOURCES, Download, RemoteFile
from fedrela.data.unpack import unpack
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import digest_file


def fetch(
    name: str,
    root: str | Path,
    *,
    progress: Progress | None = None,
    base_url: str | None = None,
    timeout: float = 30.0,
) -> Path:
    """Put a data set of the catalogue under `root` and return the folder with its files.

    They go where the data set's source looks for them. A file that lies there already, put by hand for instance, is
    checked and not downloaded; an archive is unpacked beside itself and kept.

    Parameters
    ----------
    name
        A source of `fedrela.data.sources.SOURCES` that can be downloaded.
    root
        The folder that holds data sets.
    progress
        Called with (done, total) in bytes. Every stage, a file's download or the unpacking, counts from 0 again;
        the total is None where it is not known.
    base_url
        Another place that has the same files under the same names, such as a local mirror.
    timeout
        Seconds of silence after which the download is given up.
    """
    dataset = _find(name)
    place = Path(root) / dataset.path
    try:
        if dataset.folder is not None and (place / dataset.folder).is_dir():
            return place / dataset.folder
        for file in dataset.files:
            _obtain(file, place, progress, base_url, timeout)
        if dataset.folder is None:
            return place
        return unpack(place / dataset.files[0].name, place / dataset.folder, top=dataset.folder, progress=progress)
    except OSError as error:
        raise DataError(f"{error.filename or place}: {error.strerror or error}") from None


def _find(name: str) -> Download:
    known = {key: spec.download for key, spec in SOURCES.items() if spec.download}
    if name not in known:
        raise ArgumentError(f"expected one of {', '.join(known)}, got {name[:80]!r}", argument="name")
    return known[name]


def _obtain(file: RemoteFile, folder: Path, progress: Progress | None, base_url: str | None, timeout: float) -> None:
    """Make sure that ``folder/file`` is there and right."""
    path = folder / file.name
    if not path.exists():
        url = file.url if base_url is None else f"{base_url.rstrip('/')}/{file.name}"
        download(Wanted(url, path, file.size, file.sha256, file.size), timeout=timeout, progress=progress)
    elif (found := digest_file(path)) != file.sha256:
        raise IntegrityError(
            f"{path}: SHA-256 {file.sha256} is published, the file has {found}; remove it and fetch again"
        )
