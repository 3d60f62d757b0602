"""Which line is which: names at their right ends, or in a key below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedrela.report.charts.canvas import HALF, labels
from fedrela.report.charts.key import Entry, marker
from fedrela.report.charts.numbers import Floats
from fedrela.report.charts.plot import Plot
from fedrela.report.figures.palette import FONT_SIZE, SERIES
from fedrela.report.figures.shapes import Shape, Trace, Word
from fedrela.report.figures.text import width

LONGEST_BESIDE = 112.0
MOST_BESIDE = 10
LEADER = 14.0  # from the end of a line to its name
APART = 13.0


@dataclass(frozen=True, eq=False)
class Line:
    """A series that is ready to be drawn: numbers cleaned, style chosen."""

    name: str
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    style: str
    turn: int = 0  # how often its colour came before

    @property
    def form(self) -> int:
        """Which marker it has."""
        return (int(self.style[1:]) + self.turn) % SERIES if self.style[1:].isdigit() else 0

    @property
    def stroke(self) -> str:
        """Style of its line."""
        return f"{self.style}-line{self.turn or ''}"

    @property
    def last(self) -> int:
        """Position of its last value."""
        return int(np.flatnonzero(~np.isnan(self.y))[-1])


def named_beside(lines: Sequence[Line]) -> list[Line]:
    """Return the lines whose names stand right of the plot: those that reach its end, if names are short and few."""
    begin, end = min(float(line.x.min()) for line in lines), max(float(line.x.max()) for line in lines)
    reaching = [line for line in lines if line.x[line.last] >= end - 0.05 * (end - begin)]
    return reaching if len(reaching) <= MOST_BESIDE and _longest(reaching) <= LONGEST_BESIDE and end > begin else []


def room_beside(lines: Sequence[Line]) -> float:
    """Return the room that these names need right of the plot."""
    return LEADER + 4 + _longest(lines) if lines else 6.0


def _longest(lines: Sequence[Line]) -> float:
    return max((width(name, FONT_SIZE) for name in labels(line.name for line in lines)), default=0.0)


def names_beside(lines: Sequence[Line], at: Plot) -> list[Shape]:
    """Write names right of the plot, apart from each other, each joined to the end of its line."""
    ends = [(at.y(float(line.y[line.last])), line) for line in lines]
    ends.sort(key=lambda end: end[0])
    places = spread([y for y, _ in ends], at.top, at.bottom)
    shapes: list[Shape] = []
    for (y, line), place in zip(ends, places, strict=True):
        points = ((at.x(line.x[line.last]), y), (at.right + 4, y), (at.right + LEADER - 2, place))
        shapes.append(Trace(points, f"{line.style}-leader"))
        shapes.append(Word(at.right + LEADER, place + HALF, labels([line.name])[0]))
    return shapes


def spread(wanted: Sequence[float], top: float, bottom: float) -> list[float]:
    """Return ascending places at least a line of text apart, near the ascending wanted ones, within top and bottom.

    >>> spread([10.0, 11.0, 60.0], 0.0, 60.0)
    [4.0, 17.0, 60.0]
    """
    blocks: list[list[float]] = []  # of neighbours that touch: where the first one lies, and how many they are
    for k, want in enumerate(wanted):
        start, size = want - k * APART, 1.0
        while blocks and blocks[-1][0] > start:
            before, many = blocks.pop()
            start, size = (before * many + start * size) / (many + size), many + size
        blocks.append([start, size])
    starts = [start for start, size in blocks for _ in range(int(size))]
    highest = max(bottom - (len(wanted) - 1) * APART, top)
    return [min(max(start, top), highest) + k * APART for k, start in enumerate(starts)]


def entries(lines: Sequence[Line], markers: bool) -> list[Entry]:
    """Return the key to lines: a piece of each, with its dashes and marker."""
    return [_entry(line, markers) for line in lines]


def _entry(line: Line, markers: bool) -> Entry:
    def piece(x: float, y: float) -> list[Shape]:
        drawn: list[Shape] = [Trace(((x - 14, y), (x + 14, y)), line.stroke)]
        return [*drawn, marker(x, y, line.form, f"{line.style}-edged")] if markers else drawn

    return Entry(labels([line.name])[0], piece, 14.0)
