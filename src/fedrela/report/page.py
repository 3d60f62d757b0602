"""The parts of a page, and the page as one HTML file: style and plots inside, no script, nothing fetched.

Every string of a part is text, whatever it contains: it is escaped by Jinja2 and made printable, so that no name can
inject markup, control a terminal or reverse the text. The page also forbids scripts and requests in the browser.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fedrela.arms import ARMS, arm_label, is_matched
from fedrela.plots.style import DARK, LIGHT, WIDTH, new_figure
from fedrela.plots.svg import describe_lines, page_svg
from fedrela.text import limited, listed, percent, plural, points, printable

if TYPE_CHECKING:
    from jinja2 import Environment

LINE_BREAK = re.compile(r"\s*\n\s*")


@dataclass(frozen=True)
class Text:
    """A paragraph; `warning` is for what a reader must not miss, and `code` preserves whitespace."""

    text: str
    tone: Literal["plain", "muted", "warning", "code"] = "plain"


@dataclass(frozen=True)
class Figure:
    """A plot with a title above it and a caption below; its `name` is that of its file, and its address in the page."""

    name: str  # letters, digits and hyphens
    title: str
    draw: Callable[..., object]  # a plot that needs only its keyword `ax`
    description: str = ""  # for readers who cannot see it; derived from its lines if empty
    caption: str = ""
    width: float = WIDTH  # on a page, in inches

    def svg(self) -> str:
        """Return the plot as an element of a page."""
        figure = new_figure(self.draw, self.width)
        said = self.description or describe_lines(figure) or self.title
        return page_svg(figure, f"plot-{self.name}", self.title, said)


@dataclass(frozen=True)
class Table:
    """Rows of text under `columns`; the columns in `left` are left-aligned, all others right-aligned."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[str] = ()
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A sample: a title, pairs of name and value, and a PNG with its text alternative if there is something to see."""

    title: str
    facts: Sequence[tuple[str, str]] = ()
    png: bytes | None = None
    alt: str = ""


@dataclass(frozen=True)
class Pictures:
    """Samples side by side."""

    items: Sequence[Picture]
    caption: str = ""


@dataclass(frozen=True)
class Facts:
    """Pairs of name and value; `large` for the few at the top of a page."""

    pairs: Sequence[tuple[str, str]]
    large: bool = False


Block = Text | Figure | Table | Pictures | Facts


@dataclass(frozen=True)
class Section:
    """A part of a page, shown if it has blocks; without a title it comes first and is not in the table of contents."""

    key: str  # its address: letters, digits and hyphens
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A page: its title, what it is about in a sentence or two, its sections, and a line at its end."""

    title: str
    lead: str
    sections: Sequence[Section]
    foot: str = ""

    @property
    def figures(self) -> list[Figure]:
        """All figures, from top to bottom."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Figure)]


def render(page: Page) -> str:
    """Return the text of an HTML file; the same page gives the same text.

    >>> html = render(Page("R&D", "What was run.", [Section("cost", "Cost", [Text("<b> is no markup")])]))
    >>> "<title>R&amp;D</title>" in html, "&lt;b&gt; is no markup" in html, "<script" in html
    (True, True, False)
    """
    return environment(printable).get_template("page.html.j2").render(page=page, light=LIGHT, dark=DARK)


@cache
def environment(inert: Callable[[object], str], *, html: bool = True) -> Environment:
    """Return the templates, in which `inert` is applied to every value that is not markup already."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here, so that plots alone do not load it

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=html, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        finalize=lambda value: value if hasattr(value, "__html__") else inert(value),
    )  # fmt: skip
    made.filters |= {function.__name__: function for function in (limited, listed, percent, plural)}
    made.filters["thousands"] = "{:,}".format
    made.filters["kind"] = lambda block: type(block).__name__.lower()
    made.filters["data_uri"] = lambda png: f"data:image/png;base64,{base64.b64encode(png).decode()}"
    made.filters["lines"] = lambda text: [line.expandtabs() for line in text.rstrip().split("\n")]
    made.globals |= {function.__name__: function for function in (arm_label, change, is_matched, say)} | {"ARMS": ARMS}
    return made


def change(before: float | None, after: float | None) -> str:
    """Return by how many percentage points a share changed, a hyphen if one of the two is missing."""
    return points(None if before is None or after is None else after - before)


def say(name: str, *values: object) -> str:
    """Return a sentence of ``sentences.j2`` about some values, on one line."""
    words = getattr(environment(printable, html=False).get_template("sentences.j2").module, name)
    return LINE_BREAK.sub(" ", words(*values)).strip()
