"""A real HTTP server on loopback whose answers can be good, cut, slow or hostile."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answers a GET request with what the site has for its path."""

    server: Site

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Range"), self.headers.get("If-Range")))
        answers = self.server.answers[self.path]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        with contextlib.suppress(ConnectionError):  # a client that has seen enough hangs up
            answer(self)

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""

    def head(self, status: int, **headers: object) -> None:
        """Send the status line and the headers."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()


Answer = Callable[[Handler], None]


class Site(ThreadingHTTPServer):
    """Paths with one or more answers each, given in order; the last one stays. `asked` lists the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[tuple[str, str | None, str | None]] = []
        self.closing = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def put(self, path: str, *answers: Answer) -> None:
        """Set the answers for a path."""
        self.answers[path] = list(answers)


@contextlib.contextmanager
def running_site() -> Iterator[Site]:
    """Run a site until the end of the ``with`` statement."""
    site = Site()
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        site.closing.set()
        site.shutdown()
        site.server_close()
        thread.join()


def whole(data: bytes, tag: str | None = '"one"') -> Answer:
    """The file, from where the client asks if it still has the same edition."""

    def answer(handler: Handler) -> None:
        tags = {} if tag is None else {"ETag": tag}
        asked, condition = handler.headers.get("Range"), handler.headers.get("If-Range")
        if asked is None or (condition is not None and condition != tag):
            handler.head(200, Content_Length=len(data), **tags)
            handler.wfile.write(data)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(data):
            handler.head(416, Content_Length=0, Content_Range=f"bytes */{len(data)}")
            return
        span = f"bytes {start}-{len(data) - 1}/{len(data)}"
        handler.head(206, Content_Length=len(data) - start, Content_Range=span, **tags)
        handler.wfile.write(data[start:])

    return answer


def always_whole(data: bytes) -> Answer:
    """The file from a server that does not know ranges."""

    def answer(handler: Handler) -> None:
        handler.head(200, Content_Length=len(data), ETag='"one"')
        handler.wfile.write(data)

    return answer


def cut(data: bytes, after: int, **headers: object) -> Answer:
    """The beginning of the file, and then the end of the connection."""

    def answer(handler: Handler) -> None:
        handler.head(200, Content_Length=len(data), **headers)
        handler.wfile.write(data[:after])

    return answer


def without_length(data: bytes) -> Answer:
    """The file, of a length that only the end of the connection tells."""

    def answer(handler: Handler) -> None:
        handler.head(200)
        handler.wfile.write(data)

    return answer


def silent(before: bytes = b"", length: int = 1000) -> Answer:
    """Headers, some bytes, and then nothing."""

    def answer(handler: Handler) -> None:
        handler.head(200, Content_Length=length, ETag='"one"')
        handler.wfile.write(before)
        handler.server.closing.wait(5)

    return answer


def steady(data: bytes, pieces: int = 8) -> Answer:
    """The file in pieces, slow but sure."""

    def answer(handler: Handler) -> None:
        handler.head(200, Content_Length=len(data))
        step = -(-len(data) // pieces)
        for start in range(0, len(data), step):
            handler.wfile.write(data[start : start + step])
            handler.server.closing.wait(0.06)

    return answer


def status(code: int, **headers: object) -> Answer:
    """A status without a body."""
    return lambda handler: handler.head(code, Content_Length=0, **headers)
