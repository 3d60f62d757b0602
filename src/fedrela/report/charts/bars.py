"""Bars: a number a class or a client, with what was expected and the limit it had to keep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrela.errors import ArgumentError
from fedrela.report.charts.canvas import LINE, head, label, page, sentence
from fedrela.report.charts.key import Entry, key, swatch
from fedrela.report.charts.lanes import Lanes, banded, few, lying, standing, stands, value_words
from fedrela.report.charts.numbers import Floats, Number, figure, floats, means
from fedrela.report.charts.plot import draw_marks, mark_rows
from fedrela.report.charts.ticks import Axis, axis
from fedrela.report.figures.palette import FONT_SIZE
from fedrela.report.figures.shapes import Boxes, Drawing, Lines, Shape, Word
from fedrela.report.figures.text import width

FAR = 5.0  # a limit so many times beyond all values would leave no room for them


def bar_chart(
    names: Sequence[str],
    values: Sequence[Number],
    *,
    title: str,
    description: str = "",
    y_label: str = "",
    expected: Sequence[Number] | None = None,
    limit: float | None = None,
    limit_name: str = "",
) -> Drawing:
    """Draw a bar for each name; beyond 125 names a bar is the mean of neighbours, and a sentence says so.

    Parameters
    ----------
    names, values
        What each bar is, and how long; None draws none.
    title, description
        What stands above, and what a reader hears who does not see the chart; made from the numbers where empty.
    y_label
        What the values are.
    expected
        A value for each name that a stroke across its bar shows.
    limit, limit_name
        A line across all bars, and its name; a limit far beyond all bars is named in words only.

    Examples
    --------
    >>> bar_chart(["cat", "dog"], [3, 5], title="Moved", y_label="labels").description
    'labels: from 3 (cat) to 5 (dog), 8 in all.'
    """
    found, hoped = floats(values), floats(expected if expected is not None else [None] * len(values))
    if not len(names) == found.size == hoped.size:
        raise ArgumentError(f"values: {len(names)} are needed, one a name, got {found.size} and {hoped.size} expected")
    said = description or _in_words(names, found, y_label)
    if np.isnan(found).all():
        return sentence(title, said, "There are no values to draw.")
    stretches, shown = few(names)
    found, hoped = means(found, stretches), means(hoped, stretches)
    caption, reach = banded(stretches), np.concatenate([found, hoped])
    line = float(floats([limit])[0])
    if line > FAR * max(float(np.nanmax(np.abs(reach))), 1e-9):
        caption.append(f"Beyond this chart: {label(limit_name or 'limit')} {figure(line)}.")
        line = np.nan
    shapes, y = head(title, caption, y_label)
    up = axis(np.append(reach, line), zero=True)
    texts = ["" if np.isnan(value) else figure(value) for value in found]
    lanes, frame, end = _lanes(shown, up, y, texts, not np.isnan(line))
    shapes += [*frame, *_bars(lanes, shown, found), *_strokes(lanes, hoped), lanes.zero()]
    shapes += value_words(lanes, np.fmax(np.fmax(found, hoped), 0.0).tolist(), texts)
    shapes += [] if np.isnan(line) else _limit(lanes, line, limit_name)
    names_below, end = key(_entries(y_label) if expected is not None else [], end)
    return page([*shapes, *names_below], end, title, said)


def _lanes(
    names: Sequence[str], up: Axis, y: float, texts: Sequence[str], limited: bool
) -> tuple[Lanes, list[Shape], float]:
    if stands(names):
        return standing(names, up, y + LINE / 2)
    room = max(width(text, FONT_SIZE) for text in texts) + 8
    return lying(names, up, y + (LINE if limited else 0), room)


def _bars(lanes: Lanes, names: Sequence[str], values: Floats) -> list[Shape]:
    share = 0.72 if lanes.pitch > 5 else 1.0
    return [
        Boxes((lanes.bar(k, 0.0, float(value), share),), "c0", f"{label(names[k])}: {figure(value)}")
        for k, value in enumerate(values)
        if not np.isnan(value)
    ]


def _strokes(lanes: Lanes, values: Floats) -> list[Shape]:
    reach = 0.46 * lanes.pitch
    segments = [
        lanes.stroke(lanes.middle(k) - reach, lanes.middle(k) + reach, float(value))
        for k, value in enumerate(values)
        if not np.isnan(value)
    ]
    around = [Lines(tuple(segments), "halo")] if lanes.pitch > 10 else []
    return [*around, Lines(tuple(segments), "c1-stroke")] if segments else []


def _limit(lanes: Lanes, value: float, name: str) -> list[Shape]:
    at, said = lanes.at, figure(value)
    name = name if said in name else f"{name} {said}".strip()
    if lanes.upright:
        said = label(name, at.right - at.left)
        words = Word(at.right, lanes.along(value) - 4, said, "ink", "end")
        line = (lanes.stroke(at.left, at.right, value),)
        return [Lines(line, "halo"), Lines(line, "mark"), words]
    return draw_marks(mark_rows([(value, name)], at.across, at.left, at.right), at)


def _entries(y_label: str) -> list[Entry]:
    stroke = Entry("expected", lambda x, y: [Lines(((x - 7, y, x + 7, y),), "c1-stroke")], 7.0)
    return [swatch(y_label or "found", "c0"), stroke]


def _in_words(names: Sequence[str], values: Floats, y_label: str) -> str:
    if np.isnan(values).all():
        return ""
    low, high = int(np.nanargmin(values)), int(np.nanargmax(values))
    ends = f"from {figure(values[low])} ({label(names[low])}) to {figure(values[high])} ({label(names[high])})"
    return f"{label(y_label or 'values')}: {ends}, {figure(float(np.nansum(values)))} in all."
