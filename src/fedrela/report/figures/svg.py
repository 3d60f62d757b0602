"""SVG by hand: elements, escaping, and the outer shape of every figure of ours.

Text given as a string is always text: only a `Node` becomes an element. A figure needs nothing from outside, runs
nothing, and has the same bytes for the same content.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from fedrela.files import digest
from fedrela.report.figures.text import printable

ELEMENTS = {"circle", "desc", "g", "line", "path", "rect", "style", "svg", "text", "title", "tspan"}
CONTAINERS = {"g", "svg"}  # white space between their children means nothing, so each gets a line
QUOTED = {'"': "&quot;"}
ATTRIBUTE = re.compile(r"(?!on)[a-z][A-Za-z-]*")

Style = Mapping[str, str]  # selector -> declarations


@dataclass(frozen=True)
class Node:
    """An element with its attributes, already text, and its children."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple[Node | str, ...]


def node(name: str, *children: Node | str, **attributes: object) -> Node:
    """Make an element.

    Parameters
    ----------
    name
        One of `ELEMENTS`; links, scripts and images are not among them.
    children
        Elements, or text to be escaped.
    attributes
        ``class_`` stands for class and ``text_anchor`` for text-anchor; numbers are written short, None is left out.

    Examples
    --------
    >>> render(node("text", "R&D <b>", x=1.50, text_anchor="end", class_="ink"))
    '<text x="1.5" text-anchor="end" class="ink">R&amp;D &lt;b&gt;</text>'
    """
    if name not in ELEMENTS:
        raise ValueError(f"no element of our figures: {name!r}")
    pairs = [(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None]
    for key, _ in pairs:
        if not ATTRIBUTE.fullmatch(key) or key == "href":
            raise ValueError(f"no attribute of our figures: {key!r}")
    return Node(name, tuple((key, _value(value)) for key, value in pairs), children)


def number(value: float) -> str:
    """Write a number with at most three decimals.

    >>> number(2.0), number(1 / 3), number(-0.0001)
    ('2', '0.333', '0')
    """
    if not math.isfinite(value):
        raise ValueError(f"a figure needs finite numbers, got {value}")
    short = f"{float(value):.3f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def _value(value: object) -> str:
    return printable(value) if isinstance(value, str) else number(float(value))  # type: ignore[arg-type]


def render(item: Node | str) -> str:
    """Return the markup of an element and all that is in it."""
    if isinstance(item, str):
        return escape(printable(item))
    attributes = "".join(f' {key}="{escape(value, QUOTED)}"' for key, value in item.attributes)
    if not item.children:
        return f"<{item.name}{attributes}/>"
    gap = "\n" if item.name in CONTAINERS else ""
    inner = gap.join(map(_lines if item.name == "style" else render, item.children))
    return f"<{item.name}{attributes}>{gap}{inner}{gap}</{item.name}>"


def _lines(rules: Node | str) -> str:
    """Escape a style sheet, which is ours and may have several lines."""
    return escape(str(rules))


def figure(
    width: float, height: float, body: Sequence[Node], *, title: str, description: str, light: Style, dark: Style
) -> str:
    """Return a whole figure, for a file or inside a page.

    Parameters
    ----------
    width, height
        Size of the drawing in its own units; the figure scales to whatever place it gets.
    body
        What is drawn, on a background of the class ``paper``.
    title, description
        What a reader hears who does not see the figure.
    light, dark
        Style rules, and what changes in them where the reader prefers a dark page.
    """
    drawing, title, description = node("g", *body), printable(title), printable(description)
    name = f"figure-{digest(f'{title}|{description}|{render(drawing)}'.encode())[:10]}"  # keeps styles to this figure
    root = node(
        "svg",
        node("title", title, id=f"{name}-title"),
        node("desc", description, id=f"{name}-desc"),
        node("style", _style_sheet(name, light, dark)),
        node("rect", width=width, height=height, class_="paper"),
        drawing,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        id=name,
    )
    return render(root) + "\n"


def _style_sheet(name: str, light: Style, dark: Style) -> str:
    day, night = (
        "\n".join(f"#{name} {selector} {{ {declarations} }}" for selector, declarations in style.items())
        for style in (light, dark)
    )
    return f"\n{day}\n@media screen and (prefers-color-scheme: dark) {{\n{night}\n}}\n"
