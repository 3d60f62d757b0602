"""The key to a chart: signs with words, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedrela.report.charts.canvas import HALF, LINE, MARGIN, ROOM, WIDTH, label
from fedrela.report.figures.palette import FONT_SIZE
from fedrela.report.figures.shapes import Boxes, Disc, Shape, Trace, Word
from fedrela.report.figures.text import width

Sign = Callable[[float, float], list[Shape]]  # what to draw round x, y

# Corners of markers, round their middle; the first marker is a disc.
CORNERS: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0.0, -1.15), (1.1, 0.8), (-1.1, 0.8)),
    ((0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)),
    ((0.0, 1.15), (1.1, -0.8), (-1.1, -0.8)),
    ((-0.45, -1.1), (0.45, -1.1), (1.1, 0.0), (0.45, 1.1), (-0.45, 1.1), (-1.1, 0.0)),
)


@dataclass(frozen=True)
class Entry:
    """Words with a sign before them that reaches so far to either side."""

    text: str
    sign: Sign
    reach: float = 5.0


def key(entries: Sequence[Entry], top: float) -> tuple[list[Shape], float]:
    """Draw entries below `top`, in as many lines as they need; also return where they end."""
    if not entries:
        return [], top
    x, y = MARGIN, top + LINE / 2 + 2
    drawn: list[Shape] = []
    for entry in entries:
        before = 2 * entry.reach + 6
        words = label(entry.text, ROOM - before)
        long = before + width(words, FONT_SIZE)
        if x > MARGIN and x + long > WIDTH - MARGIN:
            x, y = MARGIN, y + LINE + 2
        drawn += [*entry.sign(x + entry.reach, y), Word(x + before, y + HALF, words)]
        x += long + 14
    return drawn, y + LINE / 2 + 2


def swatch(text: str, style: str) -> Entry:
    """Return an entry with a little square."""
    return Entry(text, lambda x, y: [Boxes(((x - 5, y - 5, 10.0, 10.0),), style)])


def marker(x: float, y: float, kind: int, style: str, tip: str = "", size: float = 3.4) -> Shape:
    """Return a marker whose form, not only its colour, tells series apart."""
    corners = CORNERS[kind % len(CORNERS)]
    if not corners:
        return Disc(x, y, size, style, tip)
    return Trace(tuple((x + size * across, y + size * down) for across, down in corners), style, True, tip)
