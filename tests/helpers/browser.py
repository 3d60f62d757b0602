"""Pages opened in headless Chromium through Selenium, and what the browser thinks of them.

`Browser` serves several looks. Where there is no Chromium or no chromedriver the tests skip and say so.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

COMMAND = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
)  # fmt: skip
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
        if COMMAND is None or DRIVER is None:
            pytest.skip("no page was opened in a browser (Debian: apt install chromium chromium-driver)")
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Browser:
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service

        options = ChromeOptions()
        options.binary_location = str(COMMAND)
        for option in OPTIONS:
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self._driver = Chrome(options, Service(DRIVER))
        self._held.callback(self._driver.quit)
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def look(self, path: str | Path, width: int, *, dark: bool = False, screenshot: Path | None = None) -> Look:
        """Open a page in a window of that width, and put a picture of all of it into `screenshot` where given."""
        address, ask = Path(path).absolute().as_uri(), self._driver.execute_cdp_cmd
        ask(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        ask("Emulation.setEmulatedMedia", {"features": [scheme]})
        for kind in ("browser", "performance"):
            self._driver.get_log(kind)  # forget what was before
        self._driver.get(address)
        found = self._driver.execute_script(f"return {QUESTIONS}")
        if screenshot is not None:
            taken = ask("Page.captureScreenshot", {"captureBeyondViewport": True})
            screenshot.write_bytes(base64.b64decode(taken["data"]))
        errors = [entry["message"] for entry in self._driver.get_log("browser")]
        return Look(width, errors, list(_requests(self._driver.get_log("performance"), address)), **found)


def _requests(log: list[dict[str, Any]], address: str) -> Iterator[str]:
    for entry in log:
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            url = event["params"]["request"]["url"]
            if url != address and not url.startswith("data:"):
                yield url
