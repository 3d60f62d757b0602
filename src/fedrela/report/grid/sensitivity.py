"""A table of the paper that runs over the values of one setting, as the paper's figure of tau: lines over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrela.report.charts import Series, line_chart
from fedrela.report.page import Block, Figure
from fedrela.report.run.words import name
from fedrela.report.tables.reproduce import figure_of

Summary = Mapping[str, Any]
FEWEST = 3  # values that make a line


def sensitivity_figures(summary: Summary) -> list[Block]:
    """Return accuracy and labels moved over a table's only axis, where its values are numbers; else nothing."""
    axes = {axis for entry in summary["entries"] for axis in entry["at"]}
    if len(axes) != 1:
        return []
    axis = next(iter(axes))
    placed = [(number(entry["at"][axis]), entry) for entry in summary["entries"]]
    points = [(value, entry) for value, entry in placed if value is not None]
    if len(points) < FEWEST:
        return []
    percent = any("%" in entry["at"][axis] for entry in summary["entries"])
    shown: list[Block] = []
    for source in ("measured", "published"):
        for moved in (False, True):
            figures = [figure for figure in summary["figures"] if (figure["of"] == "moved") == moved]
            series = [
                Series(name(f["name"]), [x for x, _ in points], [figure_of(e, f["of"], source) for _, e in points])
                for f in figures
            ]
            if any(value is not None for one in series for value in one.y):
                title = f"{'Labels moved' if moved else 'Test accuracy'}, {source}"
                label = f"{name(axis)}{', per cent' if percent else ''}"
                drawing = line_chart(series, title=title, x_label=label, percent=not moved, markers=True)
                shown.append(Figure(f"{source}-{'moved' if moved else 'accuracy'}", drawing))
    return shown


def number(text: str) -> float | None:
    """Return the number that an axis states, or None for a word.

    >>> number("5%"), number("0.3"), number("Original")
    (5.0, 0.3, None)
    """
    try:
        return float(text.removesuffix("%"))
    except ValueError:
        return None
