"""A page as one HTML file: style and pictures inside, no script, nothing fetched.

Text is escaped by Jinja2 and made printable, so that no name can write markup, drive a terminal or turn the writing
round. The page also forbids the browser every script and every request, should anything of that kind ever get in.
"""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fedrela.report.figures.drawing import FONTS, draw_svg
from fedrela.report.figures.palette import DARK, LIGHT
from fedrela.report.figures.shapes import Drawing
from fedrela.report.figures.text import printable
from fedrela.report.page.parts import Page

if TYPE_CHECKING:
    from jinja2 import Environment


def render(page: Page) -> str:
    """Return the text of an HTML file; the same page gives the same text.

    Examples
    --------
    >>> from fedrela.report.page import Section, Text
    >>> html = render(Page("R&D", "What was run.", [Section("cost", "Cost", [Text("<b> is no markup")])]))
    >>> "<title>R&amp;D</title>" in html, "&lt;b&gt; is no markup" in html, "<script" in html
    (True, True, False)
    """
    template = _environment().get_template("page.html.j2")
    return template.render(page=page, light=LIGHT, dark=DARK, fonts=FONTS)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here, for those who only want a picture

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    made.filters.update(svg=_svg, data_uri=_data_uri, lines=_lines)
    return made


def _shown(value: object) -> object:
    """Return what an expression of the template writes: markup of ours as it is, all else as one printable line."""
    return value if hasattr(value, "__html__") else printable(value)


def _svg(drawing: Drawing) -> str:
    return draw_svg(drawing).rstrip()


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _lines(text: str) -> list[str]:
    return [line.expandtabs() for line in text.rstrip().split("\n")]
