"""Tables of a sweep: one row a point, and the layout of a sensitivity analysis for one or two keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrela.report.page import Table
from fedrela.report.tables.arms import arm_words, score_words, seeds_words
from fedrela.report.tables.cells import NONE, Spread, spread_count, spread_percent
from fedrela.report.tables.values import Value, Values, counted, in_percent

Summary = Mapping[str, Any]
Point = Mapping[str, Any]
MOVED = "labels moved"
VALIDATION = "held back"  # balanced accuracy on what clients hold back
PARTS = ("mean", "deviation")


def sweep_tables(summary: Summary) -> list[Table]:
    """Return all tables of a sweep; the wide one only for one or two keys."""
    wide = wide_table(summary)
    return [sweep_table(summary), *([wide] if wide else [])]


def sweep_table(summary: Summary) -> Table:
    """Return one row a point: the values of the keys, all figures, and the labels moved."""
    keys, figures = summary["keys"], summary["figures"]
    validated = any(point["validation"] for point in summary["points"])
    words = [*_who(summary), *keys]
    columns = [*words, *figures, *([VALIDATION] if validated else []), MOVED]
    rows = [
        [
            *_who(summary, point["baseline"], point["arm"]),
            *(value_text(point["values"][key]) for key in keys),
            *(spread_percent(point["figures"][name]) for name in figures),
            *([_validation(point)] if validated else []),
            spread_count(point["figures"]["moved"]),
        ]
        for point in summary["points"]
    ]
    held = f"; {VALIDATION}: balanced accuracy on what clients hold back" if validated else ""
    return Table(columns, rows, words, f"{score_words(summary)}; {seeds_words(summary)}{held}.")


def wide_table(summary: Summary) -> Table | None:
    """Return a row a figure (and value of the first of two keys), a column a value of the last key; else None."""
    keys, figures = summary["keys"], [*summary["figures"], "moved"]
    if len(keys) not in (1, 2):
        return None
    *first, last = keys
    across = summary["values"][last]
    rows = []
    for baseline, arm in arms_of(summary):
        found = {address(point["values"], keys): point for point in points_of(summary, baseline, arm)}
        for figure in figures:
            for down in summary["values"][first[0]] if first else [None]:
                start = dict.fromkeys(first, down)
                cells = [found.get(address({**start, last: value}, keys)) for value in across]
                shown = (NONE if point is None else _cell(point["figures"][figure], figure) for point in cells)
                name = MOVED if figure == "moved" else figure
                rows.append([*_who(summary, baseline, arm), name, *map(value_text, start.values()), *shown])
    words = [*_who(summary), "figure", *first]
    columns = [*words, *map(value_text, across)]
    return Table(columns, rows, words, f"The same, with {last} from left to right.")


def sweep_values(summary: Summary) -> Values:
    """Return a sweep for machines: one row a point, shares in per cent."""
    keys, figures = summary["keys"], summary["figures"]
    names = [*figures, "validation", "moved"]
    columns = ["baseline", "arm", *keys, *(f"{name}_{part}" for name in names for part in PARTS), "seeds"]
    rows: list[list[Value]] = []
    for point in summary["points"]:
        found = point["figures"]
        shares = [*(found[name] for name in figures), point["validation"]]
        spreads = [value for share in shares for value in in_percent(share, PARTS)] + counted(found["moved"], PARTS)
        values = [_plain(point["values"][key]) for key in keys]
        rows.append([point["baseline"], point["arm"], *values, *spreads, len(summary["seeds"])])
    return Values(columns, rows)


def value_text(value: object) -> str:
    """Write a value that a key may have, as TOML does where that is short.

    >>> value_text(0.05), value_text(True), value_text("minmax"), value_text([1, 2])
    ('0.05', 'true', 'minmax', '[1, 2]')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def address(values: Mapping[str, object], keys: Sequence[str]) -> tuple[str, ...]:
    """Return what tells one point from the others of its baseline and arm."""
    return tuple(repr(values[key]) for key in keys)


def arms_of(summary: Summary) -> list[tuple[str, str]]:
    """Return every pair of baseline and arm, in the order of the points."""
    return list(dict.fromkeys((point["baseline"], point["arm"]) for point in summary["points"]))


def points_of(summary: Summary, baseline: str, arm: str) -> list[Point]:
    """Return the points of a baseline and arm."""
    return [point for point in summary["points"] if (point["baseline"], point["arm"]) == (baseline, arm)]


def _who(summary: Summary, baseline: str = "baseline", arm: str = "arm") -> list[str]:
    """Return baseline and arm, the names of their columns without any; a sweep without arms has no such column."""
    named = any(point["arm"] != "as given" for point in summary["points"])
    return [baseline, *([arm_words(arm)] if named else [])]


def _cell(spread: Spread, figure: str) -> str:
    return spread_count(spread) if figure == "moved" else spread_percent(spread)


def _validation(point: Point) -> str:
    return NONE if point["validation"] is None else spread_percent(point["validation"])


def _plain(value: object) -> Value:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number else value_text(value)  # type: ignore[return-value]
