"""Shapes as SVG elements, and a drawing as a whole SVG figure for light and dark pages."""

from __future__ import annotations

from fedrela.report.figures.paints import Paint, paints
from fedrela.report.figures.palette import DARK, FONT_SIZE, HEADING_SIZE, LIGHT, STRONG_SIZE, Palette
from fedrela.report.figures.shapes import Boxes, Disc, Drawing, Lines, Shape, Trace, Word
from fedrela.report.figures.svg import Node, Style, figure, node, number

FONTS = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"


def draw_svg(drawing: Drawing) -> str:
    """Return the text of an SVG file."""
    used = {shape.style for shape in drawing.shapes} | {"paper"}
    light, dark = (_rules(palette, drawing.groups, used) for palette in (LIGHT, DARK))
    lettering = {
        "text": f"font-family: {FONTS}; font-size: {number(FONT_SIZE)}px",
        "text.heading": f"font-size: {number(HEADING_SIZE)}px; font-weight: 600",
        "text.strong": f"font-size: {number(STRONG_SIZE)}px; font-weight: 600",
        "path": "shape-rendering: crispEdges",  # neighbouring boxes leave no gap
        "path.trace": "shape-rendering: auto; stroke-linejoin: round",
    }
    return figure(
        drawing.width,
        drawing.height,
        [element(shape) for shape in drawing.shapes],
        title=drawing.title,
        description=drawing.description,
        light={**lettering, **light},
        dark=dark,
    )


def _rules(palette: Palette, groups: int, used: set[str]) -> Style:
    rules = {}
    for name, paint in paints(palette, groups).items():
        if name in used:
            rules[f".{name}"] = _declarations(paint)
    return rules


def _declarations(paint: Paint) -> str:
    said = [f"fill: {paint.fill or 'none'}"]
    if paint.opacity < 1:
        said.append(f"fill-opacity: {number(paint.opacity)}")
    if paint.line:
        said.append(f"stroke: {paint.line}; stroke-width: {number(paint.width)}")
    if paint.dash:
        said.append(f"stroke-dasharray: {' '.join(map(number, paint.dash))}")
    return "; ".join(said)


def element(shape: Shape) -> Node:
    """Return the SVG element of a shape."""
    tip = (node("title", shape.tip),) if isinstance(shape, Disc | Boxes | Trace) and shape.tip else ()
    if isinstance(shape, Disc):
        return node("circle", *tip, cx=shape.x, cy=shape.y, r=shape.radius, class_=shape.style)
    if isinstance(shape, Boxes):
        outlines = (
            f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"
            for x, y, width, height in shape.places
        )
        return node("path", *tip, d="".join(outlines), class_=shape.style)
    if isinstance(shape, Lines):
        strokes = (f"M{number(x)} {number(y)}L{number(to)} {number(down)}" for x, y, to, down in shape.segments)
        return node("path", d="".join(strokes), class_=f"{shape.style} trace")
    if isinstance(shape, Trace):
        line = "L".join(f"{number(x)} {number(y)}" for x, y in shape.points)
        return node("path", *tip, d=f"M{line}{'z' if shape.closed else ''}", class_=f"{shape.style} trace")
    return _text(shape)


def _text(word: Word) -> Node:
    return node(
        "text",
        word.text,
        x=word.x,
        y=word.y,
        text_anchor=None if word.anchor == "start" else word.anchor,
        transform=f"rotate(-90 {number(word.x)} {number(word.y)})" if word.upright else None,
        class_=word.style,
    )
