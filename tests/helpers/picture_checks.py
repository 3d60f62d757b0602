"""What every client-by-class picture has to be, whatever it shows."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from fedrela.report.figures.shapes import Boxes, Disc, Drawing, Word
from fedrela.report.figures.text import width

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {SVG + name for name in ("svg", "title", "desc", "style", "g", "rect", "path", "circle", "text")}
ATTRIBUTES = {
    "viewBox", "role", "aria-labelledby", "id", "class", "x", "y", "width", "height", "cx", "cy", "r", "d",
    "text-anchor", "transform",
}  # fmt: skip


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(SVG + "text")]


def check_safe(picture: str) -> ET.Element:
    """Well-formed, nothing but known elements and attributes, nothing from outside."""
    root = ET.fromstring(picture)
    for element in root.iter():
        assert element.tag in ELEMENTS
        assert set(element.attrib) <= ATTRIBUTES
        assert not any("url(" in value or ":" in value for value in element.attrib.values())
    style = root.find(SVG + "style").text
    assert all(word not in style for word in ("url", "@import", "http", "expression"))
    assert len(root.findall(f".//{SVG}style")) == 1
    assert all(line.isprintable() for line in picture.splitlines())
    return root


def matrix(clients: int, classes: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scale = 400 * 0.01 ** (np.arange(classes) / max(classes - 1, 1))
    return rng.poisson(scale * rng.gamma(0.3, 1, (clients, classes)))


def stays_on_page(drawing: Drawing) -> None:
    """No shape leaves the page."""
    for shape in drawing.shapes:
        if isinstance(shape, Disc):
            assert shape.radius <= shape.x <= drawing.width - shape.radius
            assert shape.radius <= shape.y <= drawing.height - shape.radius
        elif isinstance(shape, Boxes):
            for x, y, wide, high in shape.places:
                assert min(x, y, wide, high) >= 0
                assert x + wide <= drawing.width
                assert y + high <= drawing.height
        elif isinstance(shape, Word) and not shape.upright:
            long = width(shape.text, 16 if shape.style == "heading" else 11)
            left = shape.x - {"start": 0, "middle": 0.5, "end": 1}[shape.anchor] * long
            assert left >= -0.01
            assert left + long <= drawing.width
            assert 0 < shape.y < drawing.height
