"""From numbers to colours of a heat map: where each colour begins, and the bar that says so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrela.report.charts.canvas import LINE, MARGIN, ROOM, WIDTH
from fedrela.report.charts.numbers import Floats, figure
from fedrela.report.charts.ticks import round_step, tick_sign
from fedrela.report.figures.palette import FONT_SIZE, SIDE_STEPS, STEPS
from fedrela.report.figures.scales import colour_step, steps
from fedrela.report.figures.shapes import Boxes, Shape, Word
from fedrela.report.figures.text import width

SHARES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75)  # where colours begin for shares that reach down to nothing
SIDE = (0.5, 1.0, 2.0, 4.0)  # the same for each side of a diverging scale, in units of a round number
PIECE = 40.0


@dataclass(frozen=True)
class Scale:
    """Colours of a heat map, from the lowest numbers to the highest.

    Attributes
    ----------
    limits
        Where each colour begins; on a diverging scale those of falls, negative and ascending, come first.
    signs
        The same in writing.
    styles
        The colours.
    blank
        Whether zero, and what lies between falls and rises, has no colour.
    """

    limits: tuple[float, ...]
    signs: tuple[str, ...]
    styles: tuple[str, ...]
    blank: bool

    def of(self, values: Floats) -> NDArray[np.int64]:
        """Return the position of each number's colour, -1 for none."""
        if self.styles[0].startswith("n"):
            rise = np.searchsorted(self.limits[SIDE_STEPS:], values, side="right") - 1
            fall = SIDE_STEPS - np.searchsorted(-np.array(self.limits[SIDE_STEPS - 1 :: -1]), -values, side="right")
            found = np.where(rise >= 0, rise + SIDE_STEPS, np.where(fall < SIDE_STEPS, fall, -1))
        else:
            found = np.maximum(np.searchsorted(self.limits, values, side="right") - 1, 0)
            found = np.where((values == 0) & self.blank, -1, found)
        return np.where(np.isnan(values), -1, found)


def scale(values: Floats, *, percent: bool, diverging: bool) -> Scale:
    """Choose colours for numbers: of two sides, by ratio where they reach down to nothing, else in even steps."""
    there = values[~np.isnan(values)]
    low, high = float(there.min()), float(there.max())
    if diverging:
        return _diverging(max(-low, high), percent)
    if low < 0 or low > 0.3 * high:
        return _even(low, high, percent)
    if percent and high <= 1:
        limits = [limit for limit in SHARES if limit < max(high, 0.011)]
        signs = tuple(f"{100 * limit:g}%" if limit else ">0" for limit in limits)
        return _rising(limits, signs, blank=True)
    if not percent and (there == np.round(there)).all():
        whole = list(range(1, int(high) + 1)) if 1 <= high <= STEPS else steps(high)
        return _rising([float(limit) for limit in whole], tuple(map(figure, whole)), blank=True)
    return _even(low, high, percent)


def _rising(limits: list[float], signs: tuple[str, ...], *, blank: bool) -> Scale:
    styles = tuple(f"s{colour_step(step, len(limits))}" for step in range(len(limits)))
    return Scale(tuple(limits), signs, styles, blank)


def _even(low: float, high: float, percent: bool) -> Scale:
    unit = round_step(max((high - low) / (STEPS - 1), 1e-3 if percent else 1e-9 * max(abs(high), 1.0)))
    first = np.floor(low / unit + 1e-9)
    limits = [float((first + k) * unit) for k in range(STEPS) if k == 0 or (first + k) * unit <= high]
    return _rising(limits, tuple(tick_sign(limit, unit, percent) for limit in limits), blank=False)


def _diverging(most: float, percent: bool) -> Scale:
    unit = round_step(max(most / 8, 1e-4 if percent else 1e-9))
    rises = [unit * times for times in SIDE]
    limits = (*(-limit for limit in reversed(rises)), *rises)
    signs = tuple(tick_sign(limit, unit / 2, percent, signed=True) for limit in limits)
    styles = [f"n{k}" for k in reversed(range(SIDE_STEPS))] + [f"p{k}" for k in range(SIDE_STEPS)]
    return Scale(limits, signs, tuple(styles), True)


def colour_bar(chosen: Scale, left: float, top: float) -> tuple[list[Shape], float]:
    """Draw the colours side by side, each with the number where it begins; also return where that ends."""
    shapes: list[Shape] = []
    falls = sum(style.startswith("n") for style in chosen.styles)
    wide = min(max(PIECE, *(width(text, FONT_SIZE) + 6 for text in chosen.signs)), (ROOM - 24) / len(chosen.signs))
    x, y = min(left, WIDTH - MARGIN - 24 - wide * len(chosen.signs)), top + 4
    if chosen.blank and not falls:
        shapes += [Boxes(((x, y, 12.0, 10.0),), "border"), Word(x + 6, y + 10 + LINE - 2, "0", "muted", "middle")]
        x += 24
    free = 0.0
    for k, (text, style) in enumerate(zip(chosen.signs, chosen.styles, strict=True)):
        if falls and k == falls:
            shapes += [Boxes(((x, y, 12.0, 10.0),), "border")]
            x += 12
        shapes.append(Boxes(((x, y, wide, 10.0),), style))
        start = x + wide - width(text, FONT_SIZE) if k < falls else x  # a fall begins at the right end of its colour
        if start >= free:
            shapes.append(Word(start, y + 10 + LINE - 2, text, "muted"))
            free = start + width(text, FONT_SIZE) + 2
        x += wide
    return shapes, y + 10 + LINE + 2
