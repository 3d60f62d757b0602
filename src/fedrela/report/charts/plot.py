"""The area in which values are drawn: two axes, guiding lines, signs, and marks at some places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedrela.report.charts.canvas import HALF, LINE, MARGIN, WIDTH, label
from fedrela.report.charts.ticks import Axis
from fedrela.report.figures.palette import FONT_SIZE
from fedrela.report.figures.shapes import Lines, Shape, Word
from fedrela.report.figures.text import width

MOST_ROWS = 6  # of words above a plot

Mark = tuple[float, str]
MarkRow = tuple[float, int, str, bool]


@dataclass(frozen=True)
class Plot:
    """Where an axis across and an axis upwards lie on the page."""

    left: float
    top: float
    right: float
    bottom: float
    across: Axis
    up: Axis

    def x(self, value: float) -> float:
        """Return where a value of the axis across lies."""
        return self.left + self.across.share(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return where a value of the axis upwards lies."""
        return self.bottom - self.up.share(value) * (self.bottom - self.top)


def left_of(up: Axis) -> float:
    """Return where a plot begins that has room for the signs of its axis upwards."""
    return MARGIN + max(width(text, FONT_SIZE) for _, text in up.ticks) + 8


def y_axis(at: Plot) -> list[Shape]:
    """Draw guiding lines across, with their numbers."""
    lines = tuple((at.left, at.y(value), at.right, at.y(value)) for value, _ in at.up.ticks)
    words = [Word(at.left - 6, at.y(value) + HALF, text, "muted", "end") for value, text in at.up.ticks]
    return [Lines(lines, "grid"), *words]


def x_axis(at: Plot, x_label: str = "", *, guides: bool = False, ticks: bool = True) -> tuple[list[Shape], float]:
    """Draw the axis across with its numbers and what it is; also return where that ends.

    Numbers that would touch the one before are left out.
    """
    words: list[Shape] = []
    short: list[tuple[float, float, float, float]] = []
    free = 0.0
    for value, text in at.across.ticks:
        long = width(text, FONT_SIZE)
        middle = min(max(at.x(value), long / 2), WIDTH - long / 2)
        if middle - long / 2 >= free:
            words.append(Word(middle, at.bottom + LINE + 1, text, "muted", "middle"))
            short.append((at.x(value), at.top if guides else at.bottom, at.x(value), at.bottom + 4))
            free = middle + long / 2 + 6
    base = Lines(((at.left, at.bottom, at.right, at.bottom),), "axis")
    shapes: list[Shape] = [base, *words]
    if ticks and short:
        shapes.insert(0, Lines(tuple(short), "grid" if guides else "border"))
    end = at.bottom + LINE + 4
    if x_label:
        end += LINE
        shapes.append(Word(at.right, end - 2, label(x_label), "muted", "end"))
    return shapes, end


def mark_rows(marks: Sequence[Mark], axis: Axis, left: float, right: float) -> list[MarkRow]:
    """Return for each mark where it lies across, the row of its words above the plot, the words, and their side.

    Words stand right of their lines, or left where there is no room there; each mark begins above those that its words
    would touch. Of very many marks some have no words.
    """
    inside = sorted(mark for mark in marks if axis.low <= mark[0] <= axis.high)
    found: list[tuple[float, float, MarkRow]] = []  # how far a mark reaches to both sides
    for value, text in reversed(inside):
        x, said = left + axis.share(value) * (right - left), label(text, (right - left) / 2)
        long = width(said, FONT_SIZE) + 8
        to_right = x + long <= WIDTH - MARGIN
        start, end = (x, x + long) if to_right else (x - long, x)
        crossed = [placed[1] for first, last, placed in found if first < end and start < last]
        row = 1 + max(crossed, default=-1)
        wordless = not said or row >= MOST_ROWS
        found.append((x, x, (x, 0, "", True)) if wordless else (start, end, (x, row, said, to_right)))
    return [placed for _, _, placed in found]


def rows_high(rows: Sequence[MarkRow]) -> float:
    """Return the room that the words of marks take above a plot."""
    return LINE * max((1 + row for _, row, said, _ in rows if said), default=0)


def draw_marks(rows: Sequence[MarkRow], at: Plot) -> list[Shape]:
    """Draw a line down through the plot for each mark, and its words above."""
    shapes: list[Shape] = []
    for x, row, said, to_right in rows:
        y = at.top - row * LINE
        line = ((x, y - 15 if said else y, x, at.bottom),)
        shapes += [Lines(((x, at.top, x, at.bottom - 1),), "halo"), Lines(line, "mark")]
        if said:
            shapes.append(Word(x + (4 if to_right else -4), y - 7, said, "ink", "start" if to_right else "end"))
    return shapes
