"""Get a data set of the catalogue: download, check, unpack. Everything that is there already is used as it is."""

from __future__ import annotations

import difflib
import json
import logging
from collections.abc import Callable
from pathlib import Path

from fedrela.data.catalogue import CATALOGUE, Dataset, RemoteFile
from fedrela.data.download import Progress, Wanted, download
from fedrela.data.unpack import unpack
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import digest_file, write_bytes

RECORD = "digests.json"


def fetch(
    name: str,
    root: str | Path,
    *,
    progress: Progress | None = None,
    base_url: str | None = None,
    notice: Callable[[str], None] | None = None,
    timeout: float = 30.0,
) -> Path:
    """Put a data set of the catalogue under `root` and return the folder with its files.

    They go where the data set's source looks for them. A file that lies there already, put by hand for instance, is
    checked and not downloaded; an archive is unpacked beside itself and kept.

    Parameters
    ----------
    name
        A key of `fedrela.data.catalogue.CATALOGUE`.
    root
        The folder that holds data sets.
    progress
        Called with (done, total) in bytes. Every stage, a file's download or the unpacking, counts from 0 again;
        the total is None where it is not known.
    base_url
        Another place that has the same files under the same names, such as a mirror in the house.
    notice
        Called with a line that the user should read: a digest was recorded because none is published. Without it
        the line is logged as a warning.
    timeout
        Seconds of silence after which the download is given up.
    """
    dataset = _find(name)
    place = Path(root) / dataset.place
    try:
        if dataset.folder is not None and (place / dataset.folder).is_dir():
            return place / dataset.folder
        for file in dataset.files:
            _obtain(file, place, progress, base_url, notice or logging.getLogger(__name__).warning, timeout)
        if dataset.folder is None:
            return place
        return unpack(place / dataset.files[0].name, place / dataset.folder, top=dataset.folder, progress=progress)
    except OSError as error:
        raise DataError(f"{error.filename or place}: {error.strerror or error}") from None


def _find(name: str) -> Dataset:
    if name in CATALOGUE:
        return CATALOGUE[name]
    nearest = difflib.get_close_matches(name, CATALOGUE, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise ArgumentError(f"{name[:80]!r}: no such data set to fetch; there are {', '.join(sorted(CATALOGUE))}{hint}")


def _obtain(
    file: RemoteFile,
    place: Path,
    progress: Progress | None,
    base_url: str | None,
    notice: Callable[[str], None],
    timeout: float,
) -> None:
    """See to it that ``place/file`` is there and right."""
    path = place / file.name
    recorded = None if file.sha256 else _recorded(place).get(file.name)
    expected = file.sha256 or recorded
    if path.exists():
        found = digest_file(path)
        if expected is not None and found != expected:
            known_from = "published" if file.sha256 else f"recorded in {place / RECORD}"
            raise IntegrityError(
                f"{path}: SHA-256 {expected} is {known_from}, the file has {found}; remove it and fetch again"
            )
    else:
        url = file.url if base_url is None else f"{base_url.rstrip('/')}/{file.name}"
        wanted = Wanted(url, path, file.size, expected, file.limit)
        found = download(wanted, timeout=timeout, progress=progress)
    if expected is None:
        _record(place, file.name, found)
        notice(
            f"{path}: no public source states a digest; SHA-256 {found} of this copy was recorded in "
            f"{place / RECORD}, and later copies are compared with it"
        )


def _recorded(place: Path) -> dict[str, str]:
    """Return the digests of earlier copies, by file name."""
    path = place / RECORD
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not all(isinstance(value, str) for value in record.values()):
        raise IntegrityError(f"{path}: not a list of digests; remove it to record them afresh")
    return record


def _record(place: Path, name: str, digest: str) -> None:
    record = _recorded(place) | {name: digest}
    write_bytes(place / RECORD, (json.dumps(record, indent=2, sort_keys=True) + "\n").encode())
