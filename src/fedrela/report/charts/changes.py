"""What changed, class by class: a dot before, a dot after, and the way between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedrela.errors import ArgumentError
from fedrela.metrics.groups import Groups
from fedrela.report.charts.canvas import HALF, MARGIN, WIDTH, head, label, page, sentence
from fedrela.report.charts.key import Entry, key, swatch
from fedrela.report.charts.lanes import MOST_ROWS, Lanes, lying
from fedrela.report.charts.numbers import Number, floats, percentage
from fedrela.report.charts.ticks import axis
from fedrela.report.figures.shapes import Disc, Drawing, Lines, Shape, Trace, Word

EXTREMES = 12  # classes with the largest rises, and as many with the largest falls, where there are too many for all
DOT = 3.8


@dataclass(frozen=True)
class Row:
    """A class, or the mean of a group."""

    name: str
    before: float
    after: float
    group: int
    mean: bool = False


def change_chart(
    names: Sequence[str],
    before: Sequence[Number],
    after: Sequence[Number],
    *,
    groups: Groups | None = None,
    title: str,
    description: str = "",
    words: tuple[str, str] = ("before", "after"),
) -> Drawing:
    """Draw shares of each class before and after, with the difference in percentage points.

    Of more than 40 classes, the means of the groups are drawn, then the 12 largest rises and the 12 largest falls.

    Parameters
    ----------
    names, before, after
        Classes with their shares; a class without one of the two is left out.
    groups
        Colours the classes, and sets those of one group together.
    title, description
        What stands above, and what a reader hears who does not see the chart; made from the numbers where empty.
    words
        What the two dots are called.

    Examples
    --------
    >>> change_chart(["cat", "dog"], [0.5, 0.5], [0.7, 0.4], title="Accuracy").description
    '1 of 2 classes rose, 1 fell. Largest rise: cat, +20.0 points. Largest fall: dog, −10.0 points.'
    """
    first, last = floats(before), floats(after)
    if not len(names) == first.size == last.size or (groups is not None and groups.of_class.size != first.size):
        raise ArgumentError(f"before, after, groups: {len(names)} values are needed in each, one a class")
    of_class = np.zeros(first.size, np.int64) if groups is None else groups.of_class
    there = np.flatnonzero(~np.isnan(last - first)).tolist()
    classes = [Row(label(names[c]), float(first[c]), float(last[c]), int(of_class[c])) for c in there]
    said = description or _in_words(classes)
    if not classes:
        return sentence(title, said, "There are no classes with a value before and after.")
    rows, caption = _chosen(classes, groups)
    shapes, y = head(title, caption)
    values = np.array([[row.before, row.after] for row in rows])
    lanes, frame, end = lying([row.name for row in rows], axis(values.ravel(), percent=True, most=6), y, 48.0)
    shapes += [*frame, *_means_apart(lanes, rows)]
    for k, row in enumerate(rows):
        shapes += _row(lanes, k, row)
    below, end = key(_entries(words, rows, groups), end)
    return page([*shapes, *below], end, title, said, groups=0 if groups is None else len(groups.names))


def _chosen(classes: list[Row], groups: Groups | None) -> tuple[list[Row], list[str]]:
    """Return all classes by group, or means and extremes of many, and the sentence that these need."""
    if len(classes) <= MOST_ROWS:
        return sorted(classes, key=lambda row: row.group), []
    names = ["all classes"] if groups is None else [f"mean of {name}" for name in groups.names]
    means = []
    for group, name in enumerate(names):
        values = np.array([[row.before, row.after] for row in classes if groups is None or row.group == group])
        if values.size:
            first, last = values.mean(axis=0).tolist()
            means.append(Row(label(name), first, last, group, True))
    ranking = sorted(classes, key=lambda row: row.before - row.after)
    what = f"the {EXTREMES} classes that rose most and the {EXTREMES} that fell most, of {len(classes):,}"
    return [*means, *ranking[:EXTREMES], *ranking[-EXTREMES:]], [f"Means first, then {what}."]


def _means_apart(lanes: Lanes, rows: Sequence[Row]) -> list[Shape]:
    """Draw a line below the means."""
    means = sum(row.mean for row in rows)
    y = lanes.at.top + means * lanes.pitch
    return [Lines(((MARGIN, y, WIDTH - MARGIN, y),), "border")] if means else []


def _row(lanes: Lanes, k: int, row: Row) -> list[Shape]:
    y, colour = lanes.middle(k), f"g{row.group}"
    start, end = lanes.along(row.before), lanes.along(row.after)
    tip = f"{row.name}: {percentage(row.before)} to {percentage(row.after)}"
    return [
        Trace(((start, y), (end, y)), f"{colour}-stroke"),
        Disc(start, y, DOT, f"{colour}-open", tip),
        Disc(end, y, DOT, colour, tip),
        Word(WIDTH - MARGIN, y + HALF, points(row.after - row.before), "ink", "end"),
    ]


def points(difference: float) -> str:
    """Write a difference of shares in percentage points."""
    return percentage(difference, signed=True, unit="")


def _entries(words: tuple[str, str], rows: Sequence[Row], groups: Groups | None) -> list[Entry]:
    dots = [Entry(words[0], lambda x, y: [Disc(x, y, DOT, "ink-open")], 4.5)]
    dots.append(Entry(words[1], lambda x, y: [Disc(x, y, DOT, "ink")], 4.5))
    shown = {row.group for row in rows} if groups is not None else set()
    return [*dots, *(swatch(groups.names[g], f"g{g}") for g in sorted(shown) if groups is not None)]


def _in_words(classes: Sequence[Row]) -> str:
    if not classes:
        return ""
    changes = np.array([row.after - row.before for row in classes])
    said = [f"{(changes > 0).sum()} of {len(classes)} classes rose, {(changes < 0).sum()} fell."]
    for what, at in (("rise", int(changes.argmax())), ("fall", int(changes.argmin()))):
        if changes[at] * (1 if what == "rise" else -1) > 0:
            said.append(f"Largest {what}: {classes[at].name}, {points(changes[at])} points.")
    return " ".join(said)
