"""One file from the network: resumable, checked before it gets its name, and every failure a line that helps."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError

from fedrela.data.web import is_allowed, open_url, reason
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.files import Part

Progress = Callable[[int, int | None], None]

CHUNK = 1 << 16
SLOWEST = 1024  # fewer bytes than this within one time-out count as no answer


@dataclass(frozen=True)
class Wanted:
    """What to download, and what it has to be.

    Attributes
    ----------
    url
        Where it lies: https, or http on this very machine.
    path
        The file to make.
    size, sha256
        What is known about it; None where nothing is.
    limit
        Number of bytes above which an answer is refused where the size is not known.
    """

    url: str
    path: Path
    size: int | None
    sha256: str | None
    limit: int

    def failure(self, what: str) -> DataError:
        """Return the one line for somebody whose download did not work."""
        by_hand = f"try again, or get the file by other means and put it at {self.path}"
        return DataError(f"{self.url}: {what}; {by_hand}")

    def mismatch(self, what: str) -> IntegrityError:
        """Return the one line for somebody to whom the wrong bytes were sent."""
        by_hand = f"nothing was kept; try again, or put the right file at {self.path}"
        return IntegrityError(f"{self.url}: {what}; {by_hand}")


def download(wanted: Wanted, *, timeout: float = 30.0, progress: Progress | None = None) -> str:
    """Get a file and return its SHA-256; an earlier attempt that was cut off is continued.

    Parameters
    ----------
    wanted
        The file. It appears under its name only when size and digest are right.
    timeout
        Seconds without (nearly) any byte after which the server counts as silent.
    progress
        Called with the number of bytes so far and the total, or None where the server does not tell it.
    """
    if not is_allowed(wanted.url):
        raise ArgumentError(f"{wanted.url}: an https address is needed (http only on this machine)")
    try:
        with Part(wanted.path) as part:
            if wanted.size is None or part.size != wanted.size:
                _receive(wanted, part, timeout, progress)
            return _check_and_finish(wanted, part)
    except OSError as error:
        raise DataError(f"{error.filename or wanted.path}: cannot be written: {error.strerror}") from None


def _receive(wanted: Wanted, part: Part, timeout: float, progress: Progress | None) -> None:
    """Append the missing bytes to the part; after a failure it stays if it can be continued."""
    try:
        with _answer(wanted, part, timeout) as answer:
            if answer.status == 200:
                part.restart(_tag(answer))
            total = None if answer.length is None else part.size + answer.length
            _check_total(wanted, part, total)
            for chunk in _chunks(wanted, answer, timeout):
                part.append(chunk)
                if total is None:
                    _check_growth(wanted, part)
                if progress is not None:
                    progress(part.size, total)
        expected = total if wanted.size is None else wanted.size
        if expected is not None and part.size < expected:
            raise wanted.failure(f"the answer ended after {part.size} of {expected} bytes")
    except BaseException:
        if not _can_continue(wanted, part):
            part.discard()
        raise


def _can_continue(wanted: Wanted, part: Part) -> bool:
    """Whether something will tell that the bytes so far and the bytes to come are of one file."""
    return part.size > 0 and bool(wanted.sha256 or part.tag)


def _check_total(wanted: Wanted, part: Part, total: int | None) -> None:
    if total is None:
        return
    if wanted.size is not None and total != wanted.size:
        part.discard()
        raise wanted.mismatch(f"{total} bytes are offered where {wanted.size} were published")
    if wanted.size is None and total > wanted.limit:
        part.discard()
        raise wanted.failure(f"{total} bytes are offered, at most {wanted.limit} are accepted")


def _check_growth(wanted: Wanted, part: Part) -> None:
    if wanted.size is not None and part.size > wanted.size:
        part.discard()
        raise wanted.mismatch(f"more bytes came than the {wanted.size} that were published")
    if wanted.size is None and part.size > wanted.limit:
        part.discard()
        raise wanted.failure(f"more bytes came than the {wanted.limit} that are accepted")


def _check_and_finish(wanted: Wanted, part: Part) -> str:
    digest = part.digest()
    if wanted.sha256 is not None and digest != wanted.sha256:
        part.discard()
        raise wanted.mismatch(f"SHA-256 {wanted.sha256} was expected, {digest} came")
    part.finish()
    return digest


def _answer(wanted: Wanted, part: Part, timeout: float) -> HTTPResponse:
    """Ask for what is missing (status 206), or for everything (status 200)."""
    with _as_failure(wanted, timeout):
        rest = _ask_for_rest(wanted, part, timeout) if _can_continue(wanted, part) else None
        if rest is not None:
            return rest
        answer = open_url(wanted.url, {}, timeout)
        if answer.status != 200:
            answer.close()
            raise ValueError(f"HTTP {answer.status} is not the answer to the request")
        return answer


def _ask_for_rest(wanted: Wanted, part: Part, timeout: float) -> HTTPResponse | None:
    """Return the rest, or the whole file from a server that only sends whole files, or None."""
    headers = {"Range": f"bytes={part.size}-"} | ({"If-Range": part.tag} if part.tag else {})
    try:
        answer = open_url(wanted.url, headers, timeout)
    except HTTPError as error:
        if error.code != 416:
            raise
        return None
    starts_there = answer.headers.get("Content-Range", "").startswith(f"bytes {part.size}-")
    if answer.status == 200 or (answer.status == 206 and starts_there):
        return answer
    answer.close()
    return None


def _tag(answer: HTTPResponse) -> str:
    """Return what the server will accept as proof that its file has not changed; empty where it gives none."""
    tag = answer.headers.get("ETag") or ""
    if not tag or tag.startswith("W/"):
        tag = answer.headers.get("Last-Modified") or ""
    return tag if tag.isascii() and tag.isprintable() and len(tag) <= 200 else ""


def _chunks(wanted: Wanted, answer: HTTPResponse, timeout: float) -> Iterator[bytes]:
    since, received = time.monotonic(), 0
    while True:
        with _as_failure(wanted, timeout):
            chunk = answer.read1(CHUNK)
            received += len(chunk)
            if chunk and time.monotonic() - since > timeout:
                if received < SLOWEST:
                    raise TimeoutError
                since, received = time.monotonic(), 0
        if not chunk:
            return
        yield chunk


@contextlib.contextmanager
def _as_failure(wanted: Wanted, timeout: float) -> Iterator[None]:
    """Turn what the network library raises into our one line."""
    try:
        yield
    except (OSError, HTTPException, ValueError) as error:
        raise wanted.failure(reason(error, timeout)) from None
