"""A page is text and pictures, whatever is in its strings: no script, no markup from outside, nothing fetched."""

from __future__ import annotations

import re
from functools import partial
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrela.plots import client_classes, confusion
from fedrela.plots.style import DARK, LIGHT
from fedrela.report.page import Facts, Figure, Page, Picture, Pictures, Section, Table, Text, render
from fedrela.text import printable
from helpers.batteries import examples
from plots.test_hostile_names import HOSTILE
from plots.test_style import contrast

TAGS = {
    "html", "head", "meta", "link", "title", "style", "body", "header", "h1", "p", "nav", "ol", "li", "a", "main",
    "section", "h2", "div", "figure", "figcaption", "svg", "desc", "rect", "g", "path", "use", "defs", "clippath",
    "text", "table", "caption", "thead", "tbody", "tr", "th", "td", "pre", "code", "dl", "dt", "dd", "ul", "img",
    "strong", "footer",
}  # fmt: skip
PLOT = ("text", "path", "use", "g", "defs")
LINK = re.compile(r"#[a-z0-9-]+|data:,|data:image/png;base64,[A-Za-z0-9+/=]*|http://www\.w3\.org/2000/svg")


INSIDE = re.compile(r"url\(#[a-z0-9-]+\)")


class Reader(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.links, self.attributes, self.words = [], [], set(), []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name in ("href", "src", "xmlns", "action", "data", "poster")]

    def handle_data(self, data):
        self.words.append(data)


def whole_page(text: str) -> Page:
    draw = partial(client_classes, [[3, 5], [1, 0]], names=[text, "b"])
    blocks = [
        Text(text), Text(text, "warning"), Figure("figure", text or "x", draw, text or "x", text),
        Table((text, "n"), [(text, "1")], (text,), text),
        Pictures([Picture(text, [(text, text)], b"png", text or "x"), Picture(text)], text),
        Text(f"a\n{text}\n", "code"), Facts([(text, text)]), Facts([(text, text)], large=True),
    ]  # fmt: skip
    return Page(text, text, [Section("top", "", [Text(text)]), Section("part", text or "x", blocks)], text)


def check_page(html: str) -> Reader:
    read = Reader(html)
    assert set(read.tags) <= TAGS
    assert all(LINK.fullmatch(link) for link in read.links)
    assert not any(name.startswith("on") for name in read.attributes)
    assert all(line.isprintable() for line in html.splitlines())
    assert html.count("<style>") == 1
    assert all(INSIDE.fullmatch(clip) for clip in re.findall(r'clip-path="([^"]*)"', html))
    for sheet in re.findall(r"<style>(.*?)</style>", html, re.S):
        assert not any(word in sheet for word in ("url(", "@import", "http", "expression"))
    return read


def outside_figures(read: Reader) -> list[str]:
    """The elements but those of plots, whose number depends on the room that names leave."""
    return [tag for tag in read.tags if tag not in PLOT]


@pytest.mark.parametrize("text", HOSTILE, ids=[printable(text)[:20] or "empty" for text in HOSTILE])
def test_hostile_text_stays_text(text):
    plain, read = check_page(render(whole_page("plain"))), check_page(render(whole_page(text)))
    assert outside_figures(read) == outside_figures(plain) or not text  # without words there is no caption
    assert printable(text) in "".join(read.words)


@examples(60, 2_000)
@given(st.text(st.characters(codec=None), max_size=80))
def test_any_text_stays_text(text):
    page = Page(text, text, [Section("part", "x", [Text(text), Text(text, "code"), Facts([(text, text)])])], text)
    read = check_page(render(page))
    expected = Reader(
        render(Page("p", "p", [Section("part", "x", [Text("p"), Text("p", "code"), Facts([("p", "p")])])], "p"))
    )
    assert read.tags == (expected.tags if text else [tag for tag in expected.tags if tag != "footer"][:-1])


def test_a_page_forbids_scripts_and_requests_and_has_a_place_for_every_link():
    html = render(whole_page("plain"))
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"" in html
    assert re.findall(r'href="#([a-z]+)"', html) == ["part"]
    assert '<section id="part">' in html
    assert html == render(whole_page("plain"))


def test_columns_of_text_are_left_aligned_and_neighbouring_figures_side_by_side():
    draws = [partial(confusion, [[n, 1], [1, 2]]) for n in (1, 2, 3)]
    first, second, third = (Figure(f"f{n}", "F", draw, "f") for n, draw in enumerate(draws))
    table = Table(("name", "n"), [("a", "1")], ("name",))
    html = render(Page("p", "", [Section("s", "S", [first, second, table, third])]))
    assert html.count('<div class="figures">') == 2
    assert '<th scope="col" class="left">name</th><th scope="col">n</th>' in html
    assert '<td class="left">a</td><td>1</td>' in html


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_the_colours_of_the_page_are_those_of_the_style_and_can_be_read(palette):
    sheet = render(Page("p", "", []))
    for name, colour in palette.items():
        assert f"--{name}: {colour};" in sheet
    used = set(re.findall(r"(?<!-)color: ([^;}]+)", sheet)) - {"inherit"}
    assert used == {"var(--ink)", "var(--muted)", "var(--group-0)"}
    for name in used:
        assert contrast(palette[name[6:-1]], palette["paper"]) >= 4.5
