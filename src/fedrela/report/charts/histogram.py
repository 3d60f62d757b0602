"""Histograms: how often values fall between edges, and where thresholds lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrela.errors import ArgumentError
from fedrela.report.charts.canvas import MARGIN, WIDTH, head, page, sentence
from fedrela.report.charts.numbers import Floats, Number, figure, floats
from fedrela.report.charts.plot import Mark, Plot, draw_marks, left_of, mark_rows, rows_high, x_axis, y_axis
from fedrela.report.charts.ticks import Axis, axis, inner_axis, log_axis
from fedrela.report.figures.shapes import Boxes, Drawing, Shape

HEIGHT = 170.0
APART = 0.02  # gap before the bars of what lies beyond the edges, in widths of the plot


def histogram(
    edges: Sequence[float],
    counts: Sequence[Number],
    *,
    title: str,
    description: str = "",
    x_label: str = "",
    marks: Sequence[Mark] = (),
    log: bool = True,
) -> Drawing:
    """Draw counts as bars from edge to edge.

    Parameters
    ----------
    edges
        Ascending ends of the bins.
    counts
        One number a bin; two more, before and behind, are of what lies below the first and above the last edge.
    title, description
        What stands above, and what a reader hears who does not see the chart; made from the numbers where empty.
    x_label
        What is counted.
    marks
        Values with words, each a line down through the chart.
    log
        Whether counts are spaced by ratio, so that rare values can be seen beside frequent ones.

    Examples
    --------
    >>> histogram([0, 1, 2], [3, 5], title="Deviations").description
    '8 values, most of them, 5, from 1 to 2.'
    """
    ends, found = _checked(edges, counts)
    said = description or _in_words(ends, found)
    if not found.any():
        return sentence(title, said, "There is nothing to count.")
    open_ends = found.size == ends.size + 1 and bool(found[0] or found[-1])
    caption = ["Bars that stand apart count what lies beyond the edges."] if open_ends else []
    shapes, y = head(title, caption, "number, logarithmic" if log else "number")
    up = log_axis(float(found.max())) if log else axis(found, zero=True)
    lefts, rights = _sides(ends, found)
    inside = inner_axis(ends)
    across = Axis(float(lefts[0]), float(rights[-1]), inside.ticks)
    left, right = left_of(up), WIDTH - MARGIN
    rows = mark_rows(marks, across, left, right)
    top = y + 8 + rows_high(rows)
    at = Plot(left, top, right, top + HEIGHT, across, up)
    below, end = x_axis(at, x_label)
    shapes += [*y_axis(at), *_bars(at, lefts, rights, found), *below, *draw_marks(rows, at)]
    return page(shapes, end, title, said)


def _checked(edges: Sequence[float], counts: Sequence[Number]) -> tuple[Floats, Floats]:
    ends, found = floats(edges), np.nan_to_num(floats(counts))
    if found.size == 0 and ends.size == 0:
        return ends, found
    if found.size - ends.size not in (-1, 1):
        raise ArgumentError(f"counts: {ends.size - 1} numbers, or 2 more, are needed for these edges, got {found.size}")
    if not (np.diff(ends) > 0).all() or ends.size < 2 or (found < 0).any():
        raise ArgumentError("edges: two or more ascending numbers are needed, with counts of at least 0")
    return ends, found


def _sides(ends: Floats, found: Floats) -> tuple[Floats, Floats]:
    """Return where each bar begins and ends; those of what lies beyond the edges stand apart."""
    if found.size == ends.size - 1:
        return ends[:-1], ends[1:]
    gap, wide = APART * (ends[-1] - ends[0]), float(np.median(np.diff(ends)))
    before, behind = ends[0] - gap, ends[-1] + gap
    return np.concatenate([[before - wide], ends[:-1], [behind]]), np.concatenate([[before], ends[1:], [behind + wide]])


def _bars(at: Plot, lefts: Floats, rights: Floats, found: Floats) -> list[Shape]:
    shapes: list[Shape] = []
    for k in np.flatnonzero(found):
        start, end, top = at.x(lefts[k]), at.x(rights[k]), at.y(found[k])
        place = (start, top, end - start, at.bottom - top)
        shapes.append(Boxes((place,), "c0-edged", f"{figure(lefts[k])} to {figure(rights[k])}: {figure(found[k])}"))
    return shapes


def _in_words(ends: Floats, found: Floats) -> str:
    inner = found if found.size < ends.size else found[1:-1]
    if not found.any():
        return ""
    most = int(inner.argmax())
    peak = f"most of them, {figure(inner[most])}, from {figure(ends[most])} to {figure(ends[most + 1])}"
    return f"{figure(found.sum())} values, {peak}."
