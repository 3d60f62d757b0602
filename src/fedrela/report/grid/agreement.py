"""Published gains against measured ones: a dot a place of the table, on the diagonal where both agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrela.report.charts.canvas import MARGIN, WIDTH, head, page, sentence
from fedrela.report.charts.key import Entry, key, marker
from fedrela.report.charts.plot import Plot, left_of, x_axis, y_axis
from fedrela.report.charts.ticks import axis
from fedrela.report.figures.palette import SERIES
from fedrela.report.figures.shapes import Drawing, Lines, Shape
from fedrela.report.run.words import name
from fedrela.report.tables.cells import points
from fedrela.report.tables.reproduce import MACHINE, TREATED, figure_of

HEIGHT = 300.0
TITLE = "Gains by FedReLa, in points"


@dataclass(frozen=True)
class Gain:
    """What FedReLa added to a figure at one place, as shares."""

    place: str
    figure: str
    published: float
    measured: float


def gains(summary: Mapping[str, Any]) -> list[Gain]:
    """Return the gains of all places and figures that were both published and measured."""
    arms: dict[str, dict[str, Mapping[str, Any]]] = {}
    for entry in summary["entries"]:
        arms.setdefault(", ".join(map(str, entry["at"].values())), {})[entry["arm"]] = entry
    found = [
        (place, figure["name"], *(_gain(both, figure, source) for source in ("published", "measured")))
        for place, both in arms.items()
        for figure in summary["figures"]
        if figure["of"] != "moved"
    ]
    return [
        Gain(place, words, published, measured)
        for place, words, published, measured in found
        if published is not None and measured is not None
    ]


def _gain(arms: Mapping[str, Mapping[str, Any]], figure: Mapping[str, Any], source: str) -> float | None:
    """Return what FedReLa added; some tables of the paper print that instead of accuracies."""
    if TREATED not in arms:
        return None
    treated = figure_of(arms[TREATED], figure["of"], source)
    if figure.get("gain"):
        return treated
    baseline = figure_of(arms[MACHINE], figure["of"], source) if MACHINE in arms else None
    return None if baseline is None or treated is None else treated - baseline


def agreement_words(found: Sequence[Gain]) -> str:
    """Say how often published and measured gains have one sign."""
    if not found:
        return "No gain was both published and measured."
    same = sum((gain.published > 0) == (gain.measured > 0) for gain in found)
    distance = float(np.mean([abs(gain.published - gain.measured) for gain in found]))
    apart = points(distance).lstrip("+")
    return f"{same} of {len(found)} gains have the published sign; on average they lie {apart} points apart."


def agreement_chart(found: Sequence[Gain]) -> Drawing:
    """Draw published gains across and measured ones upwards, with the diagonal."""
    said = agreement_words(found)
    if not found:
        return sentence(TITLE, "", said)
    values = 100 * np.array([value for gain in found for value in (gain.published, gain.measured)])
    both = axis(values, zero=True, signed=True)
    shapes, y = head(TITLE, ["On the dashed line both agree."], "measured")
    left = left_of(both)
    at = Plot(left, y + 6, WIDTH - MARGIN - 6, y + 6 + HEIGHT, both, both)
    below, end = x_axis(at, "published", guides=True)
    zero = ((at.left, at.y(0), at.right, at.y(0)), (at.x(0), at.top, at.x(0), at.bottom))
    shapes += [*y_axis(at), *below, Lines(zero, "border")]
    shapes.append(Lines(((at.x(both.low), at.y(both.low), at.x(both.high), at.y(both.high)),), "mark"))
    figures = list(dict.fromkeys(gain.figure for gain in found))
    shapes += [_dot(gain, at, figures.index(gain.figure)) for gain in found]
    names, end = key([_entry(words, k) for k, words in enumerate(figures)], end + 2)
    return page([*shapes, *names], end, TITLE, said)


def _dot(gain: Gain, at: Plot, kind: int) -> Shape:
    tip = (
        f"{name(gain.place)}, {name(gain.figure)}: published {points(gain.published)}, measured {points(gain.measured)}"
    )
    return marker(at.x(100 * gain.published), at.y(100 * gain.measured), kind, f"c{kind % SERIES}-edged", tip, 4.5)


def _entry(words: str, kind: int) -> Entry:
    return Entry(name(words), lambda x, y: [marker(x, y, kind, f"c{kind % SERIES}-edged", size=4.0)])
