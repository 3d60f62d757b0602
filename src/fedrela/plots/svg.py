"""Figures as files and as SVG inside a page: same figure, same bytes.

Inside a page a figure has a title and a description for readers who cannot see it, tooltips, and CSS variables in place
of the style's colours, so that the page can be light or dark. It runs nothing and fetches nothing.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrela.plots.style import LIGHT, styled
from fedrela.text import percent, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
NUMBER = re.compile(r"-?\d+\.\d{3,}")
COLOUR = re.compile(r"#[0-9a-f]{6}\b")
FONT = re.compile(r"font: (?:(\d+|bold) )?([\d.]+)px [^;]*")  # as matplotlib 3.10 writes it
FAMILY = re.compile(r"font-family: [^;]*(; )?")
VARIABLES = {colour: f"var(--{name})" for name, colour in reversed(LIGHT.items())}
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


def save(figure: Figure, format: str, salt: str = "fedrela") -> bytes:
    """Return the bytes of an SVG, PNG or PDF file; `salt` goes into the ids of an SVG."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with styled(), rc_context({"svg.hashsalt": salt}):
        figure.savefig(buffer, format=format, metadata=METADATA[format])
    return buffer.getvalue()


def page_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Return a figure as an ``svg`` element for a page, with a title and a description for readers who cannot see it.

    `name` consists of letters, digits and hyphens, and is unique in the page.
    """
    found: list[Any] = figure.findobj(lambda artist: hasattr(artist, "fedrela_tooltips"))
    for number, artist in enumerate(found):
        artist.set_gid(f"tooltips-{number}")
    root = ET.fromstring(save(figure, "svg", name))
    for element in root.iter():
        element.tag = str(element.tag).removeprefix(f"{{{SVG}}}")
    for number, artist in enumerate(found):
        _add_tooltips(root, f"tooltips-{number}", artist.fedrela_tooltips)
    _clean(root)
    _drop_ids(root)
    words, box = f"{name}-title {name}-desc", root.get("viewBox", "")
    root.attrib = {"viewBox": box, "role": "img", "aria-labelledby": words, "class": "plot", "xmlns": SVG}
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        root.insert(place, ET.Element(tag, {"id": f"{name}-{tag}"}))
        root[place].text = printable(text)
    return ET.tostring(root, encoding="unicode")


def _add_tooltips(root: ET.Element, gid: str, texts: tuple[str, ...]) -> None:
    """Give each mark of an artist its text; markers differ from the line that joins them by their element."""
    group = root.find(f".//*[@id='{gid}']")
    if group is None:
        return
    defined = {id(inner) for defs in group.iter("defs") for inner in defs.iter()}
    marks = [element for element in group.iter() if element.tag in ("path", "use") and id(element) not in defined]
    used = [element for element in marks if element.tag == "use"]
    for element, text in zip(used if len(used) == len(texts) else marks, texts, strict=False):
        if text:
            ET.SubElement(element, "title").text = printable(text)


def _clean(root: ET.Element) -> None:
    """Remove what a page does not need: metadata, the global style sheet, cells that cannot be seen, fonts."""
    for parent in list(root.iter()):
        for child in list(parent):
            hidden = child.tag == "path" and "fill-opacity: 0;" in child.get("style", "") + ";"
            if child.tag in ("metadata", "style") or hidden:
                parent.remove(child)
    for element in root.iter():
        if element.tag not in ("title", "text"):
            element.text = None
        element.tail = "\n" if element.tag in ("g", "defs") else None
        if "style" in element.attrib:
            element.attrib["style"] = _style(element.attrib["style"])
        for key in {"d", "x", "y", "transform", "width", "height"} & set(element.attrib):
            element.attrib[key] = NUMBER.sub(_rounded, " ".join(element.attrib[key].split()))


def _style(text: str) -> str:
    text = FONT.sub(lambda found: f"font-size: {found[2]}px" + (f"; font-weight: {found[1]}" if found[1] else ""), text)
    text = COLOUR.sub(lambda found: VARIABLES.get(found[0], found[0]), FAMILY.sub("", text))
    return NUMBER.sub(_rounded, text)


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _drop_ids(root: ET.Element) -> None:
    """Keep only the ids that something refers to: those are hashes that differ between figures."""
    used = {element.attrib[LINK].removeprefix("#") for element in root.iter() if LINK in element.attrib}
    used |= {element.attrib["clip-path"][5:-1] for element in root.iter() if "clip-path" in element.attrib}
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
        if LINK in element.attrib:
            element.set("href", element.attrib.pop(LINK))


def describe_lines(figure: Figure) -> str:
    """Describe where each named line of a figure starts and ends, for readers who cannot see it."""
    said = []
    for line in [line for ax in figure.axes for line in ax.get_lines()]:
        label, places = str(line.get_label()).replace(r"\$", "$"), np.asarray(line.get_xydata(), np.float64)
        if label.startswith("_") or len(places) < 2:
            continue
        assert line.axes is not None
        x, y = places.T
        shares = type(line.axes.yaxis.get_major_formatter()).__name__ == "PercentFormatter"
        first, last, most = (percent(value) if shares else f"{value:,.4g}" for value in (y[0], y[-1], y.max()))
        said.append(f"{label}: from {first} at {x[0]:g} to {last} at {x[-1]:g}, at most {most}.")
    return " ".join(said)
