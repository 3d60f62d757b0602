"""Bars beside each other: upright with names below, or lying with names at the left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedrela.report.charts.canvas import HALF, LINE, MARGIN, WIDTH, label, labels
from fedrela.report.charts.numbers import bands, floats
from fedrela.report.charts.plot import Plot, left_of, x_axis, y_axis
from fedrela.report.charts.ticks import Axis, inner_axis
from fedrela.report.figures.palette import FONT_SIZE
from fedrela.report.figures.shapes import Lines, Rectangle, Segment, Shape, Word
from fedrela.report.figures.text import width

MOST_ROWS = 40
MOST_COLUMNS = 125
ROW = 17.0
HEIGHT = 170.0
LONGEST_NAME = 140.0


@dataclass(frozen=True)
class Lanes:
    """A plot cut into as many lanes as there are bars; values run along them."""

    at: Plot
    number: int
    upright: bool

    @property
    def pitch(self) -> float:
        """Width of a lane."""
        return ((self.at.right - self.at.left) if self.upright else (self.at.bottom - self.at.top)) / self.number

    def middle(self, lane: int) -> float:
        """Return the middle of a lane."""
        return (self.at.left if self.upright else self.at.top) + (lane + 0.5) * self.pitch

    def along(self, value: float) -> float:
        """Return where a value lies along the lanes."""
        return self.at.y(value) if self.upright else self.at.x(value)

    def bar(self, lane: int, low: float, high: float, share: float = 0.7) -> Rectangle:
        """Return the box between two values, as wide as a share of the lane."""
        start, end = sorted((self.along(low), self.along(high)))
        side, wide = self.middle(lane) - share * self.pitch / 2, share * self.pitch
        return (side, start, wide, end - start) if self.upright else (start, side, end - start, wide)

    def stroke(self, first: float, last: float, value: float) -> Segment:
        """Return a line at a value, from a place across the lanes to another."""
        place = self.along(value)
        return (first, place, last, place) if self.upright else (place, first, place, last)

    def zero(self) -> Lines:
        """Return the line at which bars begin."""
        at = self.at
        first, last = (at.left, at.right) if self.upright else (at.top, at.bottom)
        return Lines((self.stroke(first, last, 0.0),), "axis")


def stands(names: Sequence[str]) -> bool:
    """Return whether bars stand: where names are numbers, or more than can lie below each other."""
    return len(names) > MOST_ROWS or all(name.isdecimal() for name in names)


def standing(names: Sequence[str], up: Axis, top: float) -> tuple[Lanes, list[Shape], float]:
    """Lay out upright bars; also return their axes and where these end."""
    left = left_of(up)
    at = Plot(left, top + 8, WIDTH - MARGIN, top + 8 + HEIGHT, Axis(0.0, len(names), _name_ticks(names)), up)
    below, end = x_axis(at, ticks=False)
    return Lanes(at, len(names), True), [*y_axis(at), *below], end


def _name_ticks(names: Sequence[str]) -> tuple[tuple[float, str], ...]:
    """Return a sign for each lane, or, for many numbers in their order, at round ones."""
    if len(names) > 20 and all(name.isdecimal() and len(name) < 9 for name in names):
        values = [int(name) for name in names]
        if values == sorted(values):
            return tuple(
                (max(k for k, value in enumerate(values) if value <= place) + 0.5, text)
                for place, text in inner_axis(floats(values)).ticks
            )
    return tuple((lane + 0.5, label(name, 70)) for lane, name in enumerate(names))


def lying(names: Sequence[str], across: Axis, top: float, right: float = 0.0) -> tuple[Lanes, list[Shape], float]:
    """Lay out lying bars, with room at their right; also return names and axis, and where these end."""
    written = labels(names, LONGEST_NAME)
    left = MARGIN + max(width(name, FONT_SIZE) for name in written) + 8
    at = Plot(left, top + 2, WIDTH - MARGIN - max(right, 8.0), top + 2 + ROW * len(names), across, Axis(0.0, 1.0, ()))
    lanes = Lanes(at, len(names), False)
    below, end = x_axis(at, guides=True)
    words = [Word(left - 8, lanes.middle(k) + HALF, name, "ink", "end") for k, name in enumerate(written)]
    return lanes, [*below, *words], end


def few(names: Sequence[str]) -> tuple[list[tuple[int, int]], list[str]]:
    """Cut names into at most as many stretches as there is room for bars, and name each stretch."""
    stretches = bands(len(names), MOST_COLUMNS)
    return stretches, [names[start] for start, _ in stretches]


def banded(stretches: Sequence[tuple[int, int]]) -> list[str]:
    """Return the sentence that bars of several things need."""
    most = max((end - start for start, end in stretches), default=1)
    return [f"Each bar is the mean of {most} neighbouring values."] if most > 1 else []


def value_words(lanes: Lanes, places: Sequence[float], texts: Sequence[str]) -> list[Shape]:
    """Write numbers: above upright bars where all have room, else in a column at the right."""
    if not lanes.upright:
        return [Word(WIDTH - MARGIN, lanes.middle(k) + HALF, text, "ink", "end") for k, text in enumerate(texts)]
    if max((width(text, FONT_SIZE) for text in texts), default=0) > lanes.pitch - 2:
        return []
    spots = [(lanes.middle(k), min(lanes.along(place), lanes.along(0.0)) - 4) for k, place in enumerate(places)]
    return [
        Word(x, max(y, lanes.at.top - LINE / 2), text, "ink", "middle")
        for (x, y), text in zip(spots, texts, strict=True)
    ]
