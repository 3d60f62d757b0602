"""The key to a client-by-class picture: sizes of dots or steps of colour, and the groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fedrela.report.clients.axes import HALF
from fedrela.report.clients.frame import LINE, MARGIN, Frame
from fedrela.report.clients.marks import RING, SMALLEST_DOT, largest_dot
from fedrela.report.clients.view import View
from fedrela.report.figures.palette import FONT_SIZE
from fedrela.report.figures.scales import colour_step, dot_examples, radii, step_names, steps
from fedrela.report.figures.shapes import Boxes, Disc, Shape, Word
from fedrela.report.figures.text import width

Sign = Callable[[float, float], list[Shape]]  # what to draw round x, y


@dataclass(frozen=True)
class Entry:
    """Words with a sign before them, which reaches so far to every side."""

    text: str
    sign: Sign | None = None
    reach: float = 0.0

    @property
    def words_at(self) -> float:
        """Where the words begin."""
        return 2 * self.reach + 6 if self.sign else 0.0

    @property
    def width(self) -> float:
        """Room that it takes in a line."""
        return self.words_at + width(self.text, FONT_SIZE) + 12


def legend(shown: View, at: Frame, top: float) -> tuple[list[Shape], float]:
    """Draw the key below `top`; also return where it ends."""
    lines = [_dot_sizes(shown, at), _ringed(shown, at)] if shown.named else [_colour_steps(shown)]
    many = [f"{name}: {size:,} {'class' if size == 1 else 'classes'}" for name, size in shown.groups.items()]
    lines.append([_swatch(text, f"g{g}") for g, text in enumerate(many)])
    drawn: list[Shape] = []
    for line in filter(None, lines):
        shapes, top = _flow(line, at.width - MARGIN, top)
        drawn += shapes
    return drawn, top


def _dot_sizes(shown: View, at: Frame) -> list[Entry]:
    """Show a few numbers of samples as dots that can be seen without a ring."""
    most, largest = int(shown.cells.max()), largest_dot(at)
    entries = [Entry("samples in a cell, by area:")]
    for count in dot_examples(most):
        radius = float(radii(count, most, largest))
        if radius >= SMALLEST_DOT:
            entries.append(_discs(f"{count:,}", (radius, "muted")))
    return entries


def _ringed(shown: View, at: Frame) -> list[Entry]:
    """Say what a ring means, where there is one."""
    radius = radii(shown.cells, shown.cells.max(), largest_dot(at))
    inside = shown.cells[(shown.cells > 0) & (radius < SMALLEST_DOT)]
    if not inside.size:
        return []
    number = f"{inside.max():,.0f} or fewer" if inside.max() > 1 else "1"
    return [_discs(f"{number}, in a ring because the dot is too small to see", (0.5, "muted"), (RING, "ring"))]


def _colour_steps(shown: View) -> list[Entry]:
    limits = steps(shown.cells.max())
    whole = all(len(row.classes) == 1 for row in shown.rows)
    entries = [Entry("samples of a class at a client:"), _swatch("0", "border")]
    for s, text in enumerate(step_names(limits, whole)):
        entries.append(_swatch(text, f"s{colour_step(s, len(limits))}"))
    return entries


def _swatch(text: str, style: str) -> Entry:
    return Entry(text, lambda x, y: [Boxes(((x - 5, y - 5, 10.0, 10.0),), style)], 5)


def _discs(text: str, *discs: tuple[float, str]) -> Entry:
    return Entry(text, lambda x, y: [Disc(x, y, r, style) for r, style in discs], max(r for r, _ in discs))


def _flow(entries: list[Entry], right: float, top: float) -> tuple[list[Shape], float]:
    """Set entries side by side, and below each other where a line is full."""
    height = max(LINE + 3, *(2 * entry.reach + 4 for entry in entries))
    x, y = MARGIN, top + height / 2
    drawn: list[Shape] = []
    for entry in entries:
        if x > MARGIN and x + entry.width > right:
            x, y = MARGIN, y + height
        if entry.sign:
            drawn += entry.sign(x + entry.reach, y)
        drawn.append(Word(x + entry.words_at, y + HALF, entry.text))
        x += entry.width
    return drawn, y + height / 2
