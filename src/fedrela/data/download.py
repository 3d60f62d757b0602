"""``fedrela data fetch``: download the files of a source, check them, unpack the archive.

pooch retries, checks the digest, and renames a file once it is complete. This module decides where files go and
which URLs are allowed (https, or http on this machine, also after a redirect), resumes downloads, and says what to do
without a network.

An archive becomes regular files and folders with plain names inside one new folder, or nothing at all. Names that could
leave the folder, links, devices and permissions are refused or dropped, even though its published digest was checked.
"""

from __future__ import annotations

import ipaddress
import stat
import tarfile
import zipfile
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from fedrela.data.sources import SOURCES, RemoteFile
from fedrela.errors import ArgumentError, DataError, FedrelaError, IntegrityError
from fedrela.files import PartialFile, digest_file, new_folder, safe_path
from fedrela.text import not_one_of, one_line, printable

Progress = Callable[[int, int | None], None]

CHUNK = 1 << 12  # bytes; the most that a lost connection costs
TIMEOUT = 30.0  # seconds without data that end an attempt
RETRIES = 2


def fetch(name: str, root: str | Path, *, progress: Progress | None = None, base_url: str | None = None) -> Path:
    """Download the files of a source below `root`, where it looks for them, and return their folder.

    A file that exists already, for example one copied there by hand, is checked and not downloaded; an archive is
    unpacked beside itself and kept. `base_url` is another URL with the same files under the same names, such as a local
    mirror. `progress` is called with (done, total) in bytes; every stage, the download of a file or the unpacking,
    restarts from 0.
    """
    downloads = {key: spec.download for key, spec in SOURCES.items() if spec.download}
    if name not in downloads:
        raise ArgumentError(not_one_of(name, downloads), argument="name")
    download = downloads[name]
    folder = Path(root) / download.path
    try:
        if download.folder is not None and (folder / download.folder).is_dir():
            return folder / download.folder
        for file in download.files:
            url = file.url if base_url is None else f"{base_url.rstrip('/')}/{file.name}"
            _obtain(_Transfer(file, url, folder / file.name, progress))
    except OSError as error:
        raise DataError(f"{error.filename or folder}: cannot be written: {error.strerror or error}") from None
    if download.folder is None:
        return folder
    return unpack(folder / download.files[0].name, folder / download.folder, top=download.folder, progress=progress)


def _obtain(transfer: _Transfer) -> None:
    """Download a file unless it exists, and check its digest."""
    path, expected = transfer.path, transfer.file.sha256
    if path.exists():
        if (actual := digest_file(path)) != expected:
            what = f"expected the published SHA-256 {expected}, got {actual}"
            raise IntegrityError(f"{path}: {what}; remove it and fetch again")
        return
    if not is_allowed(transfer.url):
        raise ArgumentError(f"{transfer.url}: expected an https URL (http only on this machine)")
    import pooch

    pooch.get_logger().setLevel("WARNING")  # the progress callback reports the rest
    names = {"registry": {path.name: expected}, "urls": {path.name: transfer.url}}
    try:
        pooch.create(path.parent, base_url="", retry_if_failed=RETRIES, **names).fetch(path.name, downloader=transfer)
    except FedrelaError:
        raise
    except ValueError:  # raised by pooch if the digest differs
        raise transfer.mismatch(f"the download does not have the published SHA-256 {expected}") from None


def is_allowed(url: str) -> bool:
    """Whether a file may be fetched from `url`.

    >>> is_allowed("https://example.org/a"), is_allowed("http://127.0.0.1/a")
    (True, True)
    >>> is_allowed("http://example.org/a"), is_allowed("file:///a"), is_allowed("ftp://example.org/a")
    (False, False, False)
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or ""))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Transfer:
    """The download of one file: pooch calls it, and pooch's HTTP downloader writes to it.

    The bytes go to a `PartialFile`, which survives a failure, so that the next attempt requests only the rest.
    """

    def __init__(self, file: RemoteFile, url: str, path: Path, progress: Progress | None) -> None:
        self.file, self.url, self.path = file, url, path
        self._progress = progress or (lambda done, total: None)

    def failure(self, what: str) -> DataError:
        """Return the error for a download that did not work."""
        return DataError(f"{self.url}: {what}; try again, or copy the file to {self.path} by other means")

    def mismatch(self, what: str) -> IntegrityError:
        """Return the error for a server that sent the wrong bytes."""
        return IntegrityError(f"{self.url}: {what}; discarded; try again, or copy the right file to {self.path}")

    def __call__(self, url: str, output_file: str, _: Any) -> None:
        """Complete the part and rename it to `output_file`, whose digest pooch checks."""
        with PartialFile(self.path) as self._part:
            if self._part.size != self.file.size:
                self._receive()
            if self._part.size < self.file.size:
                raise self.failure(f"the response ended after {self._part.size} of {self.file.size} bytes")
            self._part.finish(Path(output_file))

    def _receive(self) -> None:
        import pooch
        import requests

        headers = {"User-Agent": "fedrela", "Accept-Encoding": "identity"}
        if self._part.size:
            headers["Range"] = f"bytes={self._part.size}-"
        local = _is_loopback(urlsplit(self.url).hostname or "")
        settings = {"headers": headers, "timeout": TIMEOUT, "hooks": {"response": self._check}}
        settings["proxies"] = {"http": "", "https": ""} if local else None
        self._response = None
        try:
            pooch.HTTPDownloader(chunk_size=CHUNK, **settings)(self.url, self, None)
        except requests.RequestException as error:
            raise self.failure(_reason(error)) from None
        finally:
            if self._response is not None:
                self._response.close()

    def _check(self, response: Any, **_: object) -> None:
        """Check a response before its redirect is followed or its content is read."""
        self._response, status = response, response.status_code
        if response.is_redirect:
            location = response.headers["Location"]
            if not _same_scheme(response.url, location):
                raise self.failure(f"redirected to {printable(location, 200)}, which is not followed")
        elif status in (200, 206):
            start = f"bytes {self._part.size}-"
            if status == 206 and not response.headers.get("Content-Range", "").startswith(start):
                self._part.restart()
                raise self.failure("the server sent a range other than the one requested")
            if status == 200:
                self._part.restart()
            self._check_length(response.headers.get("Content-Length"))
        elif status == 416:
            self._part.restart()
        elif status < 400:
            raise self.failure(f"unexpected HTTP status {status}")

    def _check_length(self, length: str | None) -> None:
        if length is None:
            return
        offered = self._part.size + int(length) if length.isascii() and length.isdigit() else 0
        if offered != self.file.size:
            self._part.restart()
            raise self.mismatch(f"expected {self.file.size} bytes, but the server offers {offered}")

    def write(self, chunk: bytes) -> None:
        """Add bytes to the part; called by pooch's downloader."""
        if self._part.size + len(chunk) > self.file.size:
            self._part.restart()
            raise self.mismatch(f"the server sent more than the published {self.file.size} bytes")
        self._part.append(chunk)
        self._progress(self._part.size, self.file.size)

    def flush(self) -> None:
        """Do nothing: the part is flushed when it is finished."""


def _same_scheme(url: str, location: str) -> bool:
    try:
        target = urljoin(url, location)
    except ValueError:
        return False
    return is_allowed(target) and urlsplit(target).scheme == urlsplit(url).scheme


def _reason(error: Exception) -> str:
    """Describe an error of the network library in one short line."""
    response = getattr(error, "response", None)
    if response is not None and response.status_code >= 400:  # the server's own message is not repeated
        code = response.status_code
        return f"HTTP {code}" + (f" {HTTPStatus(code).phrase}" if code in set(HTTPStatus) else "")
    cause: BaseException | None = error
    while cause is not None:  # from the library's errors down to the system's
        if isinstance(cause, TimeoutError):
            return f"no response within {TIMEOUT:g} seconds"
        if isinstance(cause, OSError) and cause.strerror:
            return printable(cause.strerror, 200)
        error_text, cause = str(cause) or type(cause).__name__, cause.__cause__ or cause.__context__
    return printable(error_text, 200)


def unpack(
    archive: str | Path, target: str | Path, *, top: str | None = None, progress: Progress | None = None
) -> Path:
    """Unpack a ``.tar``, ``.tar.gz``, ``.tgz`` or ``.zip`` file into the new folder `target` and return it.

    After an error there is no `target`. With `top`, all entries must be in the folder of that name, and its content
    becomes the content of `target`. `progress` is called with the number of bytes read from the archive, and its size.
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
        raise error.prefixed(str(archive)) from None
    except OSError as error:
        raise DataError(f"{archive}: cannot be unpacked into {target}: {error.strerror or error}") from None
    except Exception as error:  # tarfile and zipfile raise many kinds for damaged bytes
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
    """Return the name of an entry below `top`, empty for `top` itself; raise if it is not a plain path below `top`."""
    safe_path(folder, name)
    if top is None:
        return name
    first, _, rest = name.partition("/")
    if first != top or not (rest or is_folder):
        raise DataError(f"{name!r}: outside the folder {top!r}")
    return rest
