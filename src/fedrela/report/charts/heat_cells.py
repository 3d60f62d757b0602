"""The cells of a heat map: where they lie, their colours and numbers, and the names round them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedrela.report.charts.canvas import HALF, LINE, MARGIN, WIDTH, labels
from fedrela.report.charts.heat_scale import Scale
from fedrela.report.charts.numbers import Floats, bands, figure, percentage
from fedrela.report.charts.ticks import inner_axis
from fedrela.report.figures.palette import FONT_SIZE
from fedrela.report.figures.shapes import Boxes, Lines, Shape, Word
from fedrela.report.figures.text import width

MOST = 64  # rows or columns; more are drawn as blocks
MOST_NAMED = 30
MOST_TIPS = 20
LARGEST_CELL, LARGEST_WIDTH = 38.0, 90.0
LONGEST_NAME = 90.0


@dataclass(frozen=True)
class Grid:
    """Where cells lie, and what stands beside them; many rows or columns have numbers in place of names."""

    left: float
    top: float
    wide: float
    high: float
    rows: int
    columns: int
    row_signs: tuple[tuple[float, str], ...]  # place in cells from the top, text
    column_signs: tuple[tuple[float, str], ...]

    @property
    def right(self) -> float:
        """Right end of the cells."""
        return self.left + self.columns * self.wide

    @property
    def bottom(self) -> float:
        """Lower end of the cells."""
        return self.top + self.rows * self.high

    def place(self, row: int, column: int) -> tuple[float, float, float, float]:
        """Return the box of a cell."""
        return self.left + column * self.wide, self.top + row * self.high, self.wide, self.high


def grid(
    shape: tuple[int, ...], real: tuple[int, int], rows: Sequence[str], columns: Sequence[str], top: float
) -> Grid:
    """Lay out cells as large as the page allows, square where rows and columns are alike."""
    signs = [_signs(*one) for one in zip(real, (rows, columns), strict=True)]
    left = MARGIN + max(width(text, FONT_SIZE) for _, text in signs[0]) + 6
    wide = min((WIDTH - MARGIN - left) / shape[1], LARGEST_CELL if shape[0] == shape[1] else LARGEST_WIDTH)
    high = min(wide, LARGEST_CELL) if shape[0] == shape[1] else min(max(wide, 14.0), 24.0, max(420 / shape[0], 5.0))
    return Grid(left, top + 2, wide, high, shape[0], shape[1], signs[0], signs[1])


def _signs(real: int, names: Sequence[str]) -> tuple[tuple[float, str], ...]:
    if real <= MOST_NAMED:
        return tuple((k + 0.5, name) for k, name in enumerate(labels(names, LONGEST_NAME)))
    height = bands(real, MOST)[0][1]
    ticks = inner_axis(np.arange(1.0, real + 1.0)).ticks
    return tuple(((value - 0.5) / height, text) for value, text in ticks)


def names(at: Grid) -> tuple[list[Shape], float]:
    """Write the names of rows and columns, upright below where they are wide; also return where that ends."""
    words: list[Shape] = [
        Word(at.left - 6, at.top + place * at.high + HALF, text, "ink", "end") for place, text in at.row_signs
    ]
    widest = max(width(text, FONT_SIZE) for _, text in at.column_signs)
    gap = at.wide if at.columns == len(at.column_signs) else at.wide * at.columns / len(at.column_signs)
    upright = widest > gap - 3
    for place, text in at.column_signs:
        long = width(text, FONT_SIZE)
        x = min(at.left + place * at.wide, WIDTH - (HALF if upright else long / 2))
        across, down = (x + HALF, at.bottom + 5) if upright else (x, at.bottom + LINE - 1)
        words.append(Word(across, down, text, "ink", "end" if upright else "middle", upright))
    return words, at.bottom + 5 + (widest + 4 if upright else LINE)


def cells(at: Grid, values: Floats, chosen: Scale, *, percent: bool, diverging: bool) -> list[Shape]:
    """Colour the cells, and write their numbers where all of them have room."""
    shapes: list[Shape] = []
    step = chosen.of(values)
    texts = _texts(values, chosen, percent, diverging)
    written = max(width(text, FONT_SIZE) for row in texts for text in row) <= at.wide - 2 and at.high >= 12
    if max(at.rows, at.columns) <= MOST_TIPS:
        shapes += [
            Boxes((at.place(r, c),), chosen.styles[step[r, c]], _tip(at, r, c, texts[r][c]))
            for r, c in np.argwhere(step >= 0).tolist()
        ]
    else:
        for k, style in enumerate(chosen.styles):
            places = tuple(at.place(r, c) for r, c in np.argwhere(step == k).tolist())
            shapes += [Boxes(places, style)] if places else []
    shapes.append(Boxes(((at.left, at.top, at.right - at.left, at.bottom - at.top),), "border"))
    return [*shapes, *(_written(at, texts, step, chosen) if written else _minus(at, step, chosen))]


def _tip(at: Grid, row: int, column: int, text: str) -> str:
    return f"{at.row_signs[row][1]}, {at.column_signs[column][1]}: {text}"


def _texts(values: Floats, chosen: Scale, percent: bool, diverging: bool) -> list[list[str]]:
    fine = not chosen.blank and percent  # numbers that lie near each other need a decimal
    return [[_text(value, percent, diverging, int(fine)) for value in row] for row in values.tolist()]


def _text(value: float, percent: bool, diverging: bool, decimals: int) -> str:
    if np.isnan(value) or value == 0:
        return "–" if value else ""
    if percent:
        return percentage(value, signed=diverging, unit="", decimals=decimals)
    return ("+" if diverging and value > 0 else "") + figure(value).replace("-", "−")


def _written(at: Grid, texts: list[list[str]], step: np.ndarray, chosen: Scale) -> list[Shape]:
    shapes: list[Shape] = []
    for r, row in enumerate(texts):
        for c, text in enumerate(row):
            x, y, wide, high = at.place(r, c)
            style = f"on-{chosen.styles[step[r, c]]}" if step[r, c] >= 0 else "muted"
            if text:
                shapes.append(Word(x + wide / 2, y + high / 2 + HALF, text, style, "middle"))
    return shapes


def _minus(at: Grid, step: np.ndarray, chosen: Scale) -> list[Shape]:
    """Mark falls with a minus, so that colour is not all that tells them from rises."""
    shapes: list[Shape] = []
    for k, style in enumerate(chosen.styles):
        if style.startswith("n") and at.wide >= 5:
            boxes = [at.place(r, c) for r, c in np.argwhere(step == k).tolist()]
            segments = tuple((x + 0.25 * w, y + h / 2, x + 0.75 * w, y + h / 2) for x, y, w, h in boxes)
            shapes += [Lines(segments, f"on-{style}-line")] if segments else []
    return shapes


def diagonal(at: Grid) -> list[Shape]:
    """Draw a border round cells whose row and column are the same."""
    return [Boxes(tuple(at.place(k, k) for k in range(at.rows)), "border")] if at.wide >= 5 else []
