"""A sweep as pictures: lines over one key, heat maps over two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fedrela.report.charts import Series, heat_map, line_chart
from fedrela.report.figures.shapes import Drawing
from fedrela.report.page import Block, Figure
from fedrela.report.run.words import name
from fedrela.report.tables.arms import arm_name
from fedrela.report.tables.sweep import VALIDATION, Point, address, arms_of, points_of, value_text

Summary = Mapping[str, Any]
BAND = "Mean over seeds; bands are one standard deviation."


def curves(summary: Summary) -> list[Block]:
    """Return the figures over one key: all of them in one chart for one arm, a chart each for several."""
    arms, figures = arms_of(summary), summary["figures"]
    shown: list[Block] = []
    if len(arms) == 1:
        points = points_of(summary, *arms[0])
        lines = {name(figure): (points, figure) for figure in figures}
        if all(point["validation"] for point in points):
            lines[VALIDATION] = (points, "")
        title = f"{name(arm_name(*arms[0]))}: test accuracy"
        shown.append(Figure("accuracy", _over(summary, lines, title), _band(summary)))
    else:
        for k, figure in enumerate(figures, 1):
            lines = {name(arm_name(*arm)): (points_of(summary, *arm), figure) for arm in arms}
            shown.append(Figure(f"accuracy-{k}", _over(summary, lines, f"{name(figure)} accuracy"), _band(summary)))
    moved = {name(arm_name(*arm)): (points_of(summary, *arm), "moved") for arm in arms}
    return [*shown, Figure("moved", _over(summary, moved, "Labels moved"), "All clients, mean over seeds.")]


def heat_maps(summary: Summary) -> list[Block]:
    """Return for each arm the headline, the rarest classes and the labels moved over two keys."""
    first, last = summary["keys"]
    rows, columns = summary["values"][first], summary["values"][last]
    figures = dict.fromkeys([summary["figures"][-1], summary["figures"][max(len(summary["figures"]) - 2, 0)], "moved"])
    shown: list[Block] = []
    for k, arm in enumerate(arms_of(summary), 1):
        points = points_of(summary, *arm)
        for j, figure in enumerate(figures, 1):
            matrix = [
                [_mean(points, {first: row, last: column}, summary["keys"], figure) for column in columns]
                for row in rows
            ]
            words = "labels moved" if figure == "moved" else f"{name(figure)} accuracy"
            drawing = heat_map(
                matrix, [value_text(row) for row in rows], [value_text(column) for column in columns],
                title=f"{name(arm_name(*arm))}: {words}", row_label=first, column_label=last, percent=figure != "moved",
            )  # fmt: skip
            shown.append(Figure(f"map-{k}-{j}", drawing, "Mean over seeds."))
    return shown


def _over(summary: Summary, lines: Mapping[str, tuple[Sequence[Point], str]], title: str) -> Drawing:
    """Draw lines over the only key where its values are numbers, else a row of cells for each value."""
    key, moved = summary["keys"][0], any(figure == "moved" for _, figure in lines.values())
    values = summary["values"][key]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        series = [_series(words, key, *line) for words, line in lines.items()]
        label = "labels" if moved else "test accuracy"
        return line_chart(series, title=title, x_label=key, y_label=label, percent=not moved, markers=True)
    matrix = [
        [_mean(points, {key: value}, summary["keys"], figure) for points, figure in lines.values()] for value in values
    ]
    return heat_map(
        matrix, [value_text(value) for value in values], list(lines), title=title, row_label=key, percent=not moved
    )


def _mean(points: Sequence[Point], values: Mapping[str, Any], keys: Sequence[str], figure: str) -> float | None:
    found = [point for point in points if address(point["values"], keys) == address(values, keys)]
    return _spread(found[0], figure)["mean"] if found else None


def _spread(point: Point, figure: str) -> Mapping[str, Any]:
    """Return a figure of a point; without a name that on what clients hold back."""
    spread: Mapping[str, Any] = point["figures"][figure] if figure else point["validation"]
    return spread


def _series(words: str, key: str, points: Sequence[Point], figure: str) -> Series:
    spreads = [_spread(point, figure) for point in points]
    most = math.inf if figure == "moved" else 1.0
    low, high = ([_end(spread, side, most) for spread in spreads] for side in (-1, 1))
    return Series(words, [point["values"][key] for point in points], [s["mean"] for s in spreads], "", low, high)


def _end(spread: Mapping[str, Any], side: int, most: float) -> float | None:
    if spread["mean"] is None or spread["deviation"] is None:
        return None
    return min(max(float(spread["mean"] + side * spread["deviation"]), 0.0), most)


def _band(summary: Summary) -> str:
    return BAND if len(summary["seeds"]) > 1 else "One seed."
