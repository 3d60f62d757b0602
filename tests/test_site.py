"""The documentation as readers see it: built without a warning, and every page opened in a real browser."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from helpers.browser import Browser
from helpers.environments import run_in

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from sphinx.cmd.build import main; sys.exit(main(['-W', '-q', *sys.argv[1:]]))"


@pytest.fixture(scope="module")
def site(tmp_path_factory, request) -> Path:
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery, in an environment of its own")
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    place = tmp_path_factory.mktemp("site")
    run_in("docs", extra, BUILD, "-d", place / "doctrees", ROOT / "docs", place / "html")
    return place / "html"


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, False), (1280, True)])
def test_every_page_fits_the_window_and_shows_its_pictures(site, width, dark):
    pages = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    assert len(pages) > 50
    wrong = []
    with Browser() as browser:
        for page in pages:
            seen = browser.look(page, width, dark=dark)
            foreign = [url for url in seen.requests if not url.startswith(("file:", "blob:"))]
            if seen.scroll_width > width or seen.images_not_shown or seen.images_without_words or foreign:
                wrong.append((page.name, seen.scroll_width, seen.images_not_shown, seen.images_without_words, foreign))
    assert wrong == []
