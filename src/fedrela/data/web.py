"""How a request is sent: https only (http on this very machine), redirects that keep the scheme, nothing else."""

from __future__ import annotations

import ipaddress
import string
from http import HTTPStatus
from http.client import HTTPResponse
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urljoin, urlsplit

REDIRECTS = (301, 302, 303, 307, 308)
MOST_REDIRECTS = 10


def is_allowed(url: str) -> bool:
    """Whether a file may be fetched from `url`.

    >>> is_allowed("https://example.org/a"), is_allowed("http://127.0.0.1/a")
    (True, True)
    >>> is_allowed("http://example.org/a"), is_allowed("file:///a"), is_allowed("ftp://example.org/a")
    (False, False, False)
    """
    scheme = urlsplit(url).scheme
    return scheme == "https" or (scheme == "http" and _is_loopback(url))


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_url(url: str, headers: dict[str, str], timeout: float) -> HTTPResponse:
    """Send a request and return the answer, or raise what `reason` can put into words."""
    headers = {"User-Agent": "fedrela", "Accept-Encoding": "identity"} | headers
    for _ in range(MOST_REDIRECTS):
        try:
            answer: HTTPResponse = _opener(url).open(request.Request(url, headers=headers), timeout=timeout)
            return answer
        except HTTPError as error:
            error.close()
            if error.code not in REDIRECTS or "Location" not in error.headers:
                raise
            url = _redirected(url, error.headers["Location"])
    raise ValueError(f"redirected more than {MOST_REDIRECTS} times")


def _opener(url: str) -> request.OpenerDirector:
    """Return an opener without the handlers of file, ftp and data, and without one that follows redirects."""
    opener = request.OpenerDirector()
    opener.add_handler(request.HTTPHandler())
    opener.add_handler(request.HTTPSHandler())
    opener.add_handler(request.HTTPErrorProcessor())
    opener.add_handler(request.HTTPDefaultErrorHandler())
    if not _is_loopback(url):
        opener.add_handler(request.ProxyHandler())
    return opener


def _redirected(url: str, location: str) -> str:
    new = urljoin(url, quote(location, safe=string.punctuation))
    if urlsplit(new).scheme != urlsplit(url).scheme or not is_allowed(new):
        raise ValueError(f"redirected to {new[:200]}, where this package does not follow")
    return new


def reason(error: Exception, timeout: float) -> str:
    """Put what the network library raised into a few words on one line."""
    if isinstance(error, HTTPError):  # the server's own words are not repeated: they may hold anything
        known = error.code in set(HTTPStatus)
        return f"HTTP {error.code}" + (f" {HTTPStatus(error.code).phrase}" if known else "")
    if isinstance(error, URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} seconds"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return "".join(ch if ch.isprintable() else " " for ch in text)[:300]
