"""Pages opened in headless Chromium, which is asked over its DevTools pipe what it thinks of them.

`look` opens one page once; `Browser` serves several looks. Where there is no Chromium the tests skip and say so.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 60  # seconds for any answer, on a machine that is busy with other tests
COMMAND = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
# Chromium reads commands from descriptor 3 and answers on descriptor 4.
TRAMPOLINE = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
QUESTIONS = """(() => {
  const all = selector => [...document.querySelectorAll(selector)];
  const named = svg => ['title', 'desc'].every(tag => svg.querySelector(':scope > ' + tag)?.textContent.trim());
  return {
    title: document.title,
    text: document.body.innerText,
    scroll_width: document.documentElement.scrollWidth,
    svgs: all('svg').length,
    svgs_without_words: all('svg').filter(svg => !named(svg)).length,
    images: all('img').length,
    images_without_words: all('img').filter(img => !img.alt.trim()).length,
    images_not_shown: all('img').filter(img => !img.naturalWidth).length,
    scripts: all('script').length,
    same_ids: all('[id]').length - new Set(all('[id]').map(element => element.id)).size,
    dead_links: all('a[href]').filter(link => !document.getElementById(link.getAttribute('href').slice(1))).length,
    paper: getComputedStyle(document.body).backgroundColor,
    least_contrast: Math.min(...all('body *:not(svg):not(svg *)').filter(element =>
      [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())).map(contrast)),
  };
  function contrast(element) {
    let behind = element;
    const clear = () => /, 0\\)$|transparent/.test(getComputedStyle(behind).backgroundColor);
    while (behind !== document.body && clear()) behind = behind.parentElement;
    const ends = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
    const [dark, light] = ends.map(luminance).sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  }
  function luminance(colour) {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map(value => value / 255);
    const linear = parts.map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  }
})()"""


@dataclass(frozen=True)
class Look:
    """What a browser found: `errors` from its console, `requests` beside that for the page itself, and counts."""

    width: int
    errors: list[str]
    requests: list[str]
    title: str
    text: str
    scroll_width: int
    svgs: int
    svgs_without_words: int
    images: int
    images_without_words: int
    images_not_shown: int
    scripts: int
    same_ids: int
    dead_links: int
    paper: str
    least_contrast: float

    def check(self) -> None:
        """What every page of ours has to be."""
        assert self.errors == []
        assert self.requests == []
        assert self.scroll_width <= self.width
        assert self.scripts == self.svgs_without_words == self.images_without_words == self.images_not_shown == 0
        assert self.same_ids == self.dead_links == 0
        assert self.least_contrast >= 4.5


class Browser:
    """A browser of its own, with nothing of the user's; use it in a ``with``."""

    def __init__(self) -> None:
        if COMMAND is None:
            pytest.skip("Chromium is not installed, so no page was opened in a browser (Debian: apt install chromium)")
        self._held = contextlib.ExitStack()
        self._number, self._rest, self._events = 0, b"", []

    def __enter__(self) -> Browser:
        profile = self._held.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        orders, answers = os.pipe(), os.pipe()
        inner = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (orders[0], answers[1])]
        call = [
            sys.executable,
            "-c",
            TRAMPOLINE,
            *map(str, inner),
            str(COMMAND),
            *OPTIONS,
            f"--user-data-dir={profile}",
        ]
        self._process = subprocess.Popen(
            call, pass_fds=inner, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for end in (orders[0], answers[1], *inner):
            os.close(end)
        self._to, self._from = orders[1], answers[0]
        self._held.callback(self._end)
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _end(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._to, b'{"id": 0, "method": "Browser.close"}\0')
        os.close(self._to)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._from)

    def look(self, path: str | Path, width: int, *, dark: bool = False, screenshot: Path | None = None) -> Look:
        """Open a page in a window of that width, and put a picture of all of it into `screenshot` where given."""
        address = Path(path).absolute().as_uri()
        with self._tab() as tab:
            self._ask(
                "Emulation.setDeviceMetricsOverride", tab, width=width, height=844, deviceScaleFactor=1, mobile=False
            )
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            self._ask("Emulation.setEmulatedMedia", tab, features=[scheme])
            for part in ("Page", "Runtime", "Log", "Network"):
                self._ask(f"{part}.enable", tab)
            self._events.clear()
            self._ask("Page.navigate", tab, url=address)
            self._wait("Page.loadEventFired")
            asked = self._ask("Runtime.evaluate", tab, expression=QUESTIONS, returnByValue=True)
            if screenshot is not None:
                taken = self._ask("Page.captureScreenshot", tab, captureBeyondViewport=True)
                screenshot.write_bytes(base64.b64decode(taken["data"]))
            events = list(self._events)
        return Look(width, list(_errors(events)), list(_requests(events, address)), **asked["result"]["value"])

    @contextlib.contextmanager
    def _tab(self) -> Iterator[str]:
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        yield self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._ask("Target.closeTarget", targetId=target)

    def _ask(self, method: str, tab: str | None = None, **params: Any) -> dict[str, Any]:
        self._number += 1
        order = {"id": self._number, "method": method, "params": params} | ({"sessionId": tab} if tab else {})
        os.write(self._to, json.dumps(order).encode() + b"\0")
        while (message := self._next()).get("id") != self._number:
            self._events.append(message)
        assert "error" not in message, message["error"]
        return dict(message["result"])

    def _wait(self, event: str) -> None:
        while not any(message.get("method") == event for message in self._events):
            self._events.append(self._next())

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            assert select.select([self._from], [], [], max(end - time.monotonic(), 0))[0], "the browser does not answer"
            found = os.read(self._from, 1 << 20)
            assert found, "the browser has gone"
            self._rest += found
        message, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(message))


def _errors(events: list[dict[str, Any]]) -> Iterator[str]:
    for event in events:
        params = event.get("params", {})
        if event["method"] == "Log.entryAdded":
            yield params["entry"]["text"]
        elif event["method"] == "Runtime.consoleAPICalled":
            yield str(params["args"])
        elif event["method"] == "Runtime.exceptionThrown":
            yield str(params["exceptionDetails"])


def _requests(events: list[dict[str, Any]], address: str) -> Iterator[str]:
    for event in events:
        if event["method"] == "Network.requestWillBeSent":
            url = event["params"]["request"]["url"]
            if url != address and not url.startswith("data:"):
                yield url


def look(path: str | Path, width: int, *, dark: bool = False, screenshot: Path | None = None) -> Look:
    """Open a page in a browser of its own; skips the test where there is none."""
    with Browser() as browser:
        return browser.look(path, width, dark=dark, screenshot=screenshot)
