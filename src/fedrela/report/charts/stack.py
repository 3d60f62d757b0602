"""Stacked bars: what a whole is made of, bar by bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedrela.errors import ArgumentError
from fedrela.report.charts.canvas import head, label, labels, page, sentence
from fedrela.report.charts.key import key, swatch
from fedrela.report.charts.lanes import Lanes, banded, few, lying, standing, stands, value_words
from fedrela.report.charts.numbers import Floats, Number, figure, floats, means
from fedrela.report.charts.ticks import axis
from fedrela.report.figures.palette import FONT_SIZE, SERIES
from fedrela.report.figures.shapes import Boxes, Drawing, Shape
from fedrela.report.figures.text import width


def stacked_bars(
    names: Sequence[str],
    parts: Mapping[str, Sequence[Number]],
    *,
    title: str,
    description: str = "",
    y_label: str = "",
) -> Drawing:
    """Draw a bar for each name, made of parts; beyond 125 names a bar is the mean of neighbours.

    Parameters
    ----------
    names
        What each bar is.
    parts
        Values of each part, one a name, none negative; None counts as nothing. The first part stands at the axis.
    title, description
        What stands above, and what a reader hears who does not see the chart; made from the numbers where empty.
    y_label
        What the values are.

    Examples
    --------
    >>> stacked_bars(["1", "2"], {"training": [3, 3], "scoring": [1, 1]}, title="Seconds").description
    'training: 6, 75% of all. scoring: 2, 25% of all.'
    """
    found = [floats(values) for values in parts.values()]
    if any(values.size != len(names) or (values < 0).any() for values in found):
        raise ArgumentError(f"parts: {len(names)} values of at least 0 are needed in each, one a name")
    sums = [float(np.nansum(values)) for values in found]
    shares = [f"{one / max(sum(sums), 1e-300):.0%}" for one in sums]
    words = list(zip(map(label, parts), sums, shares, strict=True))
    said = description or " ".join(f"{part}: {figure(one)}, {share} of all." for part, one, share in words)
    if not names or all(np.isnan(values).all() for values in found):
        return sentence(title, said, "There are no values to draw.")
    stretches, shown = few(names)
    tops = np.cumsum([means(np.nan_to_num(values), stretches) for values in found], axis=0)
    shapes, y = head(title, banded(stretches), y_label)
    texts = [figure(value) for value in tops[-1]]
    up = axis(tops[-1], zero=True)
    room = max(width(text, FONT_SIZE) for text in texts) + 8
    lanes, frame, end = standing(shown, up, y) if stands(shown) else lying(shown, up, y, room)
    shapes += [*frame, *_pieces(lanes, shown, labels(parts), tops), lanes.zero()]
    shapes += [] if lanes.upright else value_words(lanes, tops[-1].tolist(), texts)
    many = [swatch(f"{part} ({share})", f"c{k % SERIES}") for k, (part, _, share) in enumerate(words)]
    below, end = key(many, end)
    return page([*shapes, *below], end, title, said)


def _pieces(lanes: Lanes, names: Sequence[str], parts: Sequence[str], tops: Floats) -> list[Shape]:
    share, edge = (0.72, "-edged") if lanes.pitch > 5 else (1.0, "")
    shapes: list[Shape] = []
    for k, part in enumerate(parts):
        floor = tops[k - 1] if k else np.zeros_like(tops[k])
        for lane, (low, high) in enumerate(zip(floor.tolist(), tops[k].tolist(), strict=True)):
            if high > low:
                tip = f"{label(names[lane])}, {part}: {figure(high - low)}"
                shapes.append(Boxes((lanes.bar(lane, low, high, share),), f"c{k % SERIES}{edge}", tip))
    return shapes
