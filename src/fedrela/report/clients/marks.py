"""What stands in the cells of a client-by-class picture: dots, or colours."""

from __future__ import annotations

import numpy as np

from fedrela.report.clients.frame import Frame
from fedrela.report.clients.view import View
from fedrela.report.figures.scales import colour_step, radii, step_of, steps
from fedrela.report.figures.shapes import Boxes, Disc

SMALLEST_DOT = 1.1  # radius below which the eye needs a ring to find a dot
RING = 2.5


def largest_dot(at: Frame) -> float:
    """Return the radius of the fullest cell's dot, which may reach over into the next cell where cells are long."""
    return min(0.45 * max(at.column, at.row), 0.8 * min(at.column, at.row))


def dots(shown: View, at: Frame) -> list[Disc]:
    """Draw a dot in every cell with samples, its area proportional to their number; a tiny one gets a ring.

    Large dots come first and have an edge, so that no dot is lost where two overlap.
    """
    radius = radii(shown.cells, shown.cells.max(), largest_dot(at))
    drawn = []
    for cell in np.argsort(-shown.cells, axis=None, kind="stable").tolist():
        i, k = divmod(cell, at.columns)
        x, y, r, count = at.x(k), at.y(i), float(radius[i, k]), int(shown.cells[i, k])
        if count == 0:
            break
        style = f"g{shown.rows[i].group}"
        edge = "-edged" if 2 * r > min(at.column, at.row) else ""
        drawn.append(Disc(x, y, r, style + edge, f"client {shown.clients[k]}, {at.labels[i]}: {count:,}"))
        if r < SMALLEST_DOT:
            drawn.append(Disc(x, y, RING, f"{style}-ring"))
    return drawn


def colours(shown: View, at: Frame) -> list[Boxes]:
    """Colour every cell with samples by the step of its number; each row tells its classes."""
    limits = steps(shown.cells.max())
    step = step_of(shown.cells, limits)
    drawn = []
    for i, row in enumerate(shown.rows):
        top = at.top + i * at.row
        for s in sorted(set(step[i].tolist()) - {-1}):
            clients = np.flatnonzero(step[i] == s).tolist()
            places = tuple((at.left + k * at.column, top, at.column, at.row) for k in clients)
            drawn.append(Boxes(places, f"s{colour_step(s, len(limits))}", row.label))
    return drawn
