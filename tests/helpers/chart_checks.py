"""What every chart has to be, whatever it shows: safe, on its page, legible, with a text alternative."""

from __future__ import annotations

import numpy as np

from fedrela.report.figures.drawing import draw_svg
from fedrela.report.figures.palette import FONT_SIZE, STRONG_SIZE
from fedrela.report.figures.shapes import Boxes, Disc, Drawing, Lines, Shape, Word
from fedrela.report.figures.text import width
from helpers.picture_checks import check_safe

Box = tuple[float, float, float, float]  # left, top, right, bottom


def word_box(word: Word) -> Box:
    """Return the place of a word: its letters reach about 8 units above and 2 below the base line."""
    long = width(word.text, STRONG_SIZE if word.style == "strong" else FONT_SIZE)
    before = {"start": 0.0, "middle": 0.5, "end": 1.0}[word.anchor] * long
    if word.upright:
        return word.x - 8, word.y - long + before, word.x + 2, word.y + before
    return word.x - before, word.y - 8, word.x - before + long, word.y + 2


def boxes(shape: Shape) -> list[Box]:
    if isinstance(shape, Word):
        return [word_box(shape)]
    if isinstance(shape, Disc):
        r = shape.radius
        return [(shape.x - r, shape.y - r, shape.x + r, shape.y + r)]
    if isinstance(shape, Boxes):
        assert all(wide >= 0 and high >= 0 for _, _, wide, high in shape.places)
        return [(x, y, x + wide, y + high) for x, y, wide, high in shape.places]
    if isinstance(shape, Lines):
        return [(min(x, to), min(y, down), max(x, to), max(y, down)) for x, y, to, down in shape.segments]
    across, down = zip(*shape.points, strict=True)
    return [(min(across), min(down), max(across), max(down))]


def check_chart(chart: Drawing) -> Drawing:
    """Check a chart and return it."""
    assert chart.width <= 720
    assert chart.height <= 2_000
    assert chart.title
    assert chart.description
    for shape in chart.shapes:
        for left, top, right, bottom in boxes(shape):
            assert -0.01 <= left <= right <= chart.width + 0.01, shape
            assert -0.01 <= top <= bottom <= chart.height + 0.01, shape
    words = [shape for shape in chart.shapes if isinstance(shape, Word) and shape.text.strip()]
    left, top, right, bottom = np.array([word_box(word) for word in words]).T
    across = (left[:, None] < right) & (left < right[:, None])
    down = (top[:, None] < bottom) & (top < bottom[:, None])
    touching = np.argwhere(np.triu(across & down, 1))
    assert not touching.size, [words[k] for k in touching[0]]
    svg = draw_svg(chart)
    check_safe(svg)
    assert len(svg) < 200_000
    return chart


def texts(chart: Drawing) -> list[str]:
    return [shape.text for shape in chart.shapes if isinstance(shape, Word)]


def tips(chart: Drawing) -> dict[str, Shape]:
    return {shape.tip: shape for shape in chart.shapes if getattr(shape, "tip", "")}
