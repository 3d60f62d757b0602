"""What every plot inside a page has to be, whatever it shows; and matrices to draw."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {SVG + name for name in ("svg", "title", "desc", "g", "defs", "clipPath", "rect", "path", "use", "text")}
ATTRIBUTES = {
    "viewBox", "role", "aria-labelledby", "id", "class", "x", "y", "width", "height", "d", "transform", "style",
    "href", "clip-path",
}  # fmt: skip
INSIDE = re.compile(r"url\(#[A-Za-z0-9-]+\)")
PROPERTY = re.compile(r"(fill|stroke|font|opacity|text-anchor|text-align)[a-z-]*: [^:;()#@\\]*(\(--[a-z0-9-]+\))?")


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(SVG + "text")]


def tips(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(SVG + "title")][1:]


def check_safe(picture: str) -> ET.Element:
    """Well-formed, nothing but known elements and attributes, nothing from outside, no colour but the page's."""
    root = ET.fromstring(picture)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(set(ids)) == len(ids)
    for element in root.iter():
        assert element.tag in ELEMENTS
        assert set(element.attrib) <= ATTRIBUTES
        assert INSIDE.fullmatch(element.get("clip-path", "url(#x)"))
        assert element.get("href", f"#{ids[0]}").removeprefix("#") in ids
        for part in filter(None, element.get("style", "").split(";")):
            assert PROPERTY.fullmatch(part.strip()), part
    assert root.get("role") == "img"
    assert all(line.isprintable() for line in picture.split("\n"))
    return root


def matrix(clients: int, classes: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scale = 400 * 0.01 ** (np.arange(classes) / max(classes - 1, 1))
    return rng.poisson(scale * rng.gamma(0.3, 1, (clients, classes)))
