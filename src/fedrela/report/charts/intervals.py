"""Differences with their intervals, and the zero that an interval may hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrela.report.charts.canvas import HALF, LINE, MARGIN, WIDTH, head, label, page, sentence
from fedrela.report.charts.key import Entry, key
from fedrela.report.charts.lanes import Lanes, lying
from fedrela.report.charts.numbers import Floats, Number, figure, floats, percentage
from fedrela.report.charts.ticks import axis
from fedrela.report.figures.palette import FONT_SIZE
from fedrela.report.figures.shapes import Disc, Drawing, Lines, Shape, Word
from fedrela.report.figures.text import width

MOST_ROWS = 80
DOT = 3.6

Row = tuple[str, Number, Number, Number]  # name, mean, lower end, upper end


def interval_chart(
    rows: Sequence[Row], *, title: str, description: str = "", x_label: str = "", percent_points: bool = True
) -> Drawing:
    """Draw a row for each difference: a dot, its interval, and both as numbers.

    A dot is filled where its interval leaves out zero, and open where it does not, or where there is no interval.

    Parameters
    ----------
    rows
        Name, mean, and the ends of the interval, None where there is none; at most 80 are drawn.
    title, description
        What stands above, and what a reader hears who does not see the chart; made from the numbers where empty.
    x_label
        What is compared.
    percent_points
        Whether numbers are differences of shares, to be written as percentage points.

    Examples
    --------
    >>> interval_chart([("minority", 0.12, 0.05, 0.19)], title="Gain").description
    'minority: +12.0 [+5.0, +19.0].'
    """
    found = np.array([floats(row[1:]) for row in rows], np.float64).reshape(-1, 3)
    there = np.flatnonzero(~np.isnan(found[:, 0])).tolist()
    names, found = [label(rows[k][0]) for k in there], found[there]
    texts = [_text(row, percent_points) for row in found]
    said = description or " ".join(f"{name}: {text}." for name, text in zip(names, texts, strict=True))
    if not names:
        return sentence(title, said, "There are no differences to draw.")
    caption = [f"{MOST_ROWS} of {len(names)} rows are shown."] if len(names) > MOST_ROWS else []
    names, found, texts = names[:MOST_ROWS], found[:MOST_ROWS], texts[:MOST_ROWS]
    shapes, y = head(title, caption)
    unit = 100 if percent_points else 1
    room = max(width(text, FONT_SIZE) for text in texts) + 10
    lanes, frame, end = lying(names, axis(found * unit, zero=True, most=5, signed=True), y, room)
    zero = lanes.along(0.0)
    shapes += [*frame, Lines(((zero, lanes.at.top - 2, zero, lanes.at.bottom),), "axis"), *_rows(lanes, found * unit)]
    shapes += [Word(WIDTH - MARGIN, lanes.middle(k) + HALF, text, "ink", "end") for k, text in enumerate(texts)]
    if x_label:
        end += LINE
        shapes.append(Word(lanes.at.right, end - 4, label(x_label), "muted", "end"))
    below, end = key(_entries(found), end)
    return page([*shapes, *below], end, title, said)


def clear(row: Floats) -> bool:
    """Return whether an interval (mean, low, high) leaves out zero."""
    return bool(row[1] > 0 or row[2] < 0)


def _rows(lanes: Lanes, found: Floats) -> list[Shape]:
    shapes: list[Shape] = []
    for k, (mean, low, high) in enumerate(found.tolist()):
        y = lanes.middle(k)
        if not (np.isnan(low) or np.isnan(high)):
            shapes += _whisker(lanes.along(low), lanes.along(high), y)
        shapes.append(Disc(lanes.along(mean), y, DOT, "c0" if clear(found[k]) else "c0-open"))
    return shapes


def _whisker(left: float, right: float, y: float, there: bool = True) -> list[Shape]:
    ends = ((left, y, right, y), (left, y - 3.5, left, y + 3.5), (right, y - 3.5, right, y + 3.5))
    return [Lines(ends, "c0-stroke")] if there else []


def _text(row: Floats, percent_points: bool) -> str:
    mean, low, high = (_signed(value, percent_points) for value in row)
    return f"{mean} [{low}, {high}]" if low and high else mean


def _signed(value: float, percent_points: bool) -> str:
    if np.isnan(value):
        return ""
    if percent_points:
        return percentage(value, signed=True, unit="")
    return ("+" if value > 0 else "") + figure(value).replace("-", "−")


def _entries(found: Floats) -> list[Entry]:
    """Say what filled and open dots mean, where there are such."""
    intervals = ~np.isnan(found[:, 1:]).any(axis=1)
    filled = np.array([clear(row) for row in found])
    kinds = [
        ("c0", "interval without zero", filled.any()),
        ("c0-open", "within noise: interval holds zero", (intervals & ~filled).any()),
        ("c0-open", "no interval", (~intervals).any()),
    ]
    return [_dot(style, text, text != "no interval") for style, text, there in kinds if there]


def _dot(style: str, text: str, whole: bool) -> Entry:
    def drawn(x: float, y: float) -> list[Shape]:
        return [*_whisker(x - 9, x + 9, y, whole), Disc(x, y, DOT, style)]

    return Entry(text, drawn, 10.0)
