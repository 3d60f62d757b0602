"""Lines over rounds or over the values of a setting, with a band for the spread where there is one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedrela.errors import ArgumentError
from fedrela.report.charts.canvas import MARGIN, WIDTH, head, label, page, sentence
from fedrela.report.charts.key import key, marker
from fedrela.report.charts.line_names import Line, entries, named_beside, names_beside, room_beside
from fedrela.report.charts.numbers import Number, figure, floats, percentage
from fedrela.report.charts.plot import Mark, MarkRow, Plot, draw_marks, left_of, mark_rows, rows_high, x_axis, y_axis
from fedrela.report.charts.ticks import Axis, axis, inner_axis, value_axis
from fedrela.report.figures.palette import SERIES
from fedrela.report.figures.shapes import Disc, Drawing, Shape, Trace
from fedrela.report.figures.text import printable

HEIGHT = 200.0
MOST_LINES = 24
STYLE = re.compile("c[0-5]|g[0-9]|ink")


@dataclass(frozen=True)
class Series:
    """A line.

    Attributes
    ----------
    name, x, y
        A value for each x; None leaves a gap.
    style
        ``c0`` to ``c5``, ``g0`` to ``g2`` for a group of classes, or ``ink``; the next free one where it is empty.
    low, high
        Ends of a band round the line.
    """

    name: str
    x: Sequence[float]
    y: Sequence[Number]
    style: str = ""
    low: Sequence[Number] | None = None
    high: Sequence[Number] | None = None


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    description: str = "",
    x_label: str = "",
    y_label: str = "",
    marks: Sequence[Mark] = (),
    percent: bool = True,
    markers: bool = False,
) -> Drawing:
    """Draw series as lines, told apart by colour and dashes, named at their ends where there is room.

    Parameters
    ----------
    series
        At most 24 are drawn, and a sentence says so.
    title, description
        What stands above, and what a reader hears who does not see the chart; made from the numbers where empty.
    x_label, y_label
        What the axes are.
    marks
        Places across with words, each a line down through the chart.
    percent
        Whether values are shares, to be written as percentages.
    markers
        Whether each value gets a marker, and the axis across has its signs at the values.

    Examples
    --------
    >>> chart = line_chart([Series("all", [1, 2, 3], [0.1, None, 0.5])], title="Accuracy")
    >>> chart.description
    'all: from 10.0% at 1 to 50.0% at 3, at most 50.0%.'
    """
    lines = _lines(series)
    said = description or " ".join(_in_words(line, percent) for line in lines)
    if not lines:
        return sentence(title, said, "There are no values to draw.")
    caption = [f"{MOST_LINES} of {len(lines)} lines are shown."] if len(lines) > MOST_LINES else []
    lines = lines[:MOST_LINES]
    shapes, y = head(title, caption, y_label)
    places = np.concatenate([line.x for line in lines])
    across = value_axis(places) if markers and np.unique(places).size <= 12 else inner_axis(places)
    at, rows = _plot(lines, across, marks, percent, y)
    below, end = x_axis(at, f"{x_label} (logarithmic)" if across.logarithmic and x_label else x_label)
    shapes += [*y_axis(at), *below, *draw_marks(rows, at)]
    shapes += [shape for line in lines for shape in _band(line, at)]
    beside = named_beside(lines)
    shapes += names_beside(beside, at)
    shapes += [shape for line in reversed(lines) for shape in _drawn(line, at, markers, percent)]
    names, end = key(entries([line for line in lines if line not in beside], markers), end + 2)
    groups = max((int(line.style[1:]) + 1 for line in lines if line.style.startswith("g")), default=0)
    return page([*shapes, *names], end, title, said, groups=groups)


def _plot(
    lines: Sequence[Line], across: Axis, marks: Sequence[Mark], percent: bool, top: float
) -> tuple[Plot, list[MarkRow]]:
    values = np.concatenate([part for line in lines for part in (line.y, line.low, line.high)])
    up = axis(values, percent=percent)
    left, right = left_of(up), WIDTH - MARGIN - room_beside(named_beside(lines))
    rows = mark_rows(marks, across, left, right)
    top += 8 + rows_high(rows)
    return Plot(left, top, right, top + HEIGHT, across, up), rows


def _lines(series: Sequence[Series]) -> list[Line]:
    """Clean the numbers, leave out series without any, and give each its style."""
    found: list[Line] = []
    for one in series:
        if len(one.x) != len(one.y) or any(
            ends is not None and len(ends) != len(one.x) for ends in (one.low, one.high)
        ):
            raise ArgumentError(f"series {label(one.name)}: as many values as places are needed; give both alike")
        x, y = floats(one.x), floats(one.y)
        low, high = (np.full(y.size, np.nan) if e is None else floats(e) for e in (one.low, one.high))
        order = np.argsort(x, kind="stable")
        order = order[~np.isnan(x[order])]
        if not np.isnan(y[order]).all():
            turn, colour = (0, 0) if one.style else divmod(len(found), SERIES)
            style = one.style or f"c{colour}"
            if not STYLE.fullmatch(style):
                raise ArgumentError(f"style: expected c0 to c5, g0 to g2 or ink, got {printable(style)}")
            found.append(Line(one.name, x[order], y[order], low[order], high[order], style, turn))
    return found


def _runs(there: np.ndarray) -> list[np.ndarray]:
    """Return stretches of neighbouring positions that are there."""
    places = np.flatnonzero(there)
    return [run for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if run.size]


def _band(line: Line, at: Plot) -> list[Shape]:
    shapes: list[Shape] = []
    for run in _runs(~np.isnan(line.low) & ~np.isnan(line.high)):
        upper = [(at.x(line.x[k]), at.y(line.high[k])) for k in run]
        lower = [(at.x(line.x[k]), at.y(line.low[k])) for k in run[::-1]]
        shapes.append(Trace((*upper, *lower), f"{line.style}-band", closed=True))
    return shapes


def _drawn(line: Line, at: Plot, markers: bool, percent: bool) -> list[Shape]:
    shapes: list[Shape] = []
    for run in _runs(~np.isnan(line.y)):
        points = tuple((at.x(line.x[k]), at.y(line.y[k])) for k in run)
        if len(points) > 1:
            shapes.append(Trace(points, line.stroke, tip="" if markers else label(line.name)))
        elif not markers:
            shapes.append(Disc(*points[0], 2.4, line.style))
    if markers:
        for k in np.flatnonzero(~np.isnan(line.y)):
            tip = f"{label(line.name)}, {figure(line.x[k])}: {_value(line.y[k], percent)}"
            shapes.append(marker(at.x(line.x[k]), at.y(line.y[k]), line.form, f"{line.style}-edged", tip))
    return shapes


def _value(value: float, percent: bool) -> str:
    return percentage(value) if percent else figure(value)


def _in_words(line: Line, percent: bool) -> str:
    there = ~np.isnan(line.y)
    x, y = line.x[there], line.y[there]
    first, last, most = (_value(float(v), percent) for v in (y[0], y[-1], y.max()))
    return f"{label(line.name)}: from {first} at {figure(x[0])} to {last} at {figure(x[-1])}, at most {most}."
