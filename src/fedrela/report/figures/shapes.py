"""A drawing as plain shapes, which SVG and PNG are made of alike.

Each shape names a style, which is an entry of `paints`; a tip is what a reader sees who points at the
shape. Coordinates run to the right and down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Rectangle = tuple[float, float, float, float]  # left, top, width, height
Segment = tuple[float, float, float, float]  # from x, y to x, y
Point = tuple[float, float]


@dataclass(frozen=True)
class Disc:
    """A circle round x, y."""

    x: float
    y: float
    radius: float
    style: str
    tip: str = ""


@dataclass(frozen=True)
class Boxes:
    """Rectangles of one style."""

    places: tuple[Rectangle, ...]
    style: str
    tip: str = ""


@dataclass(frozen=True)
class Lines:
    """Straight lines of one style."""

    segments: tuple[Segment, ...]
    style: str


@dataclass(frozen=True)
class Trace:
    """A line through points; a closed one goes back to the first and may be filled."""

    points: tuple[Point, ...]
    style: str
    closed: bool = False
    tip: str = ""


@dataclass(frozen=True)
class Word:
    """A line of text whose base line begins, is centred or ends at x, y; an upright one is read from below."""

    x: float
    y: float
    text: str
    style: str = "ink"
    anchor: Literal["start", "middle", "end"] = "start"
    upright: bool = False


Shape = Disc | Boxes | Lines | Trace | Word


@dataclass(frozen=True)
class Drawing:
    """A figure: its size, its shapes from back to front, how many groups it colours, and what it says in words."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    groups: int
    title: str
    description: str
